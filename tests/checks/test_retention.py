from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import deleted_segment
from tests.checks.answers import fails, passes, table_of

LED = claimed(1, 0, high_watermark=0, end=0)

CASES = {
    "nothing was deleted": passes(LED),
    "the youngest record is older than retention.ms": passes(LED, deleted_segment("age")),
    "it is as old": fails(
        LED,
        deleted_segment("age", now_ms=2_000),
        text=(
            "deleted offsets 3 to 6 of orders-0 for its age, and its youngest record is 1000 ms old, and "
            "retention.ms is 1000"
        ),
        offsets=[3],
        facts=["segment_deletions"],
    ),
    "the limit of age is 0": passes(LED, deleted_segment("age", retention_ms=0)),
    "its youngest record has the timestamp 0": passes(LED, deleted_segment("age", youngest_ms=0)),
    "there is no limit of age": fails(LED, deleted_segment("age", retention_ms=-1)),
    "its records have no timestamp": fails(LED, deleted_segment("age", youngest_ms=-1)),
    "it is empty": passes(LED, deleted_segment("age", youngest_ms=-1, segment_bytes=0)),
    "it is empty, and there is no limit": fails(LED, deleted_segment("age", retention_ms=-1, segment_bytes=0)),
    "the log has retention.bytes without it": passes(LED, deleted_segment("size")),
    "it has not": fails(
        LED,
        deleted_segment(("size"), log_bytes=299),
        text="without it the log has 199 bytes, and retention.bytes is 200",
        offsets=[3],
    ),
    "the limit of size is 0": passes(LED, deleted_segment("size", retention_bytes=0)),
    "there is no limit of size": fails(LED, deleted_segment("size", retention_bytes=-1)),
    "the log starts behind it": passes(LED, deleted_segment("start")),
    "the log starts within it": fails(LED, deleted_segment("start", log_start_offset=5), text="the log starts at 5"),
    "it is too young, and the log has retention.bytes without it": passes(LED, deleted_segment("size", now_ms=2_000)),
    "it is old, and the log has not retention.bytes without it and starts before": passes(
        LED, deleted_segment("age", log_bytes=299, log_start_offset=3)
    ),
    "it is not committed": fails(LED, deleted_segment("age", high_watermark=5), text="the high watermark is 5"),
    "it is not committed, and the log starts behind it": fails(LED, deleted_segment("start", high_watermark=5)),
}

CASES |= CASES["nothing was deleted"].without_each("leadership_claims")

test_when_segments_are_deleted = table_of("retention", CASES)
