from tests.analysis.fact_rows import replica
from tests.analysis.protocol_rows import topic
from tests.checks.answers import fails, passes, table_of, unknown

OTHER = [topic("other", present=True), replica(1, 5, topic="other")]

CASES = {
    "it is there": passes(topic(present=True), replica(1, 5)),
    "it is gone altogether": passes(*OTHER, topic(present=False)),
    "a log is left": fails(*OTHER, topic(present=False), replica(2, 5), text="the log of partition 0 on broker 2"),
    "its configuration is left": fails(
        *OTHER, topic(present=False, configured=True), text="its configuration is still there"
    ),
    "its deletion waits": passes(topic(present=False, deletion_pending=True), replica(2, 5)),
    "no topic was ever seen": unknown(replica(2, 5), text="topics"),
}

CASES |= CASES["it is there"].without_each("topics", "replicas")

test_what_is_left_of_a_deleted_topic = table_of("I23", CASES)
