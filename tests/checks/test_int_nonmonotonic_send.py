from tests.analysis.fact_rows import sent
from tests.analysis.protocol_rows import overtaken
from tests.checks.answers import NOT_IDEMPOTENT, UNREADABLE, excused, fails, passes, table_of, unknown

SENT = [sent("a", 7), sent("b", 4)]
TOGETHER = overtaken(acknowledged_ns=5, invoke_ns=2)

CASES = {
    "they lie in order": passes(*SENT),
    "a retry overtakes an idempotent one": fails(*SENT, TOGETHER, offsets=[4]),
    "a retry overtakes without idempotence": excused(*SENT, TOGETHER, settings=NOT_IDEMPOTENT),
    "they were not under way together": passes(*SENT, overtaken(acknowledged_ns=2, invoke_ns=5)),
    "the clients' history has holes": unknown(*SENT, TOGETHER, UNREADABLE, text="unreadable line"),
    "nothing was sent": unknown(text="sends"),
}

test_order_of_sends_under_way_together = table_of("int-nonmonotonic-send", CASES)
