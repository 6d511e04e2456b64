from tests.analysis.protocol_rows import served
from tests.checks.answers import fails, passes, table_of, unknown

CASES = {
    "below the high watermark": passes(served(4, high_watermark=5)),
    "at the high watermark": fails(
        served(5, high_watermark=5), offsets=[5], text="offset 5 while its high watermark was 5"
    ),
    "in the epoch that the consumer believes in": passes(served(4, high_watermark=5, believed=3)),
    "in another epoch": fails(served(4, high_watermark=5, believed=2), text="that stated epoch 2"),
    "no consumer was served": unknown(text="consumer_fetches"),
}

test_what_consumers_are_served = table_of("I24", CASES)
