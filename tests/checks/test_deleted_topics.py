from dataclasses import replace

from tests.analysis.fact_rows import replica, state
from tests.analysis.protocol_rows import S, put_aside, topic
from tests.checks.answers import STRICT, fails, noted, passes, table_of, unknown

OTHER = [topic("other", present=True), replica(1, 5, topic="other")]

CASES = {
    "it is there": passes(topic(present=True), replica(1, 5)),
    "it is gone altogether": passes(*OTHER, topic(present=False)),
    "a log is left": fails(*OTHER, topic(present=False), replica(2, 5), text="the log of partition 0 on broker 2"),
    "a log is left on the last replica": fails(
        *OTHER,
        topic(present=False),
        replica(2, 5),
        state(0, leader=1, epoch=0, isr=[1], assignment=[2, 1]),
        text="partition 0 on broker 2",
    ),
    "a log is left where the replica was moved away before": passes(
        *OTHER,
        topic(present=False),
        replica(2, 5),
        state(0, leader=2, epoch=0, isr=[2], assignment=[2, 1]),
        state(1, leader=1, epoch=1, isr=[1], assignment=[1, 3]),
    ),
    "a log is left of a partition that was being reassigned": noted(
        *OTHER, topic(present=False, reassigned=[0]), replica(2, 5), text="the log of partition 0 on broker 2"
    ),
    "a log is left of another partition than the one that was being reassigned": fails(
        *OTHER, topic(present=False, reassigned=[1]), replica(2, 5), text="the log of partition 0 on broker 2"
    ),
    "its configuration is left, and it was being reassigned": fails(
        *OTHER, topic(present=False, configured=True, reassigned=[0]), text="its configuration is still there"
    ),
    "its configuration is left": fails(
        *OTHER, topic(present=False, configured=True), text="its configuration is still there"
    ),
    "its deletion waits": passes(topic(present=False, deletion_pending=True), replica(2, 5)),
    "its folder is on the disk for too long": fails(
        *OTHER,
        topic(present=False),
        put_aside(),
        text="broker 1 still has orders-0.0-delete of orders-0, 5 s after the delay has ended",
        facts=["deleted_logs"],
    ),
    "its folder is a little late": passes(*OTHER, topic(present=False), put_aside(lived_ns=74 * S)),
    "its folder waits since a restart": passes(*OTHER, topic(present=False), put_aside(began_ns=11 * S)),
    "its folder has waited long enough since a restart": fails(
        *OTHER, topic(present=False), put_aside(stopped_ns=0, began_ns=10 * S)
    ),
    "its folder waits longer by the configuration": passes(
        *OTHER, topic(present=False), put_aside(), settings=replace(STRICT, delete_delay_ms=60_001)
    ),
    "its broker does not look before": passes(
        *OTHER, topic(present=False), put_aside(), settings=replace(STRICT, first_deletion_ms=75_001)
    ),
    "its broker has looked since": fails(
        *OTHER, topic(present=False), put_aside(), settings=replace(STRICT, first_deletion_ms=70_000)
    ),
    "a replica that was moved away is on the disk for too long": fails(*OTHER, topic(present=True), put_aside()),
    "a folder of another name than any replica's": passes(*OTHER, put_aside(stopped_ns=None)),
    "its broker is still starting": passes(*OTHER, topic(present=False), put_aside(began_ns=None)),
    "a folder on a disk that failed": passes(*OTHER, put_aside(disk_failed=True)),
    "no topic was ever seen": unknown(replica(2, 5), text="topics"),
}

CASES |= CASES["it is there"].without_each("topics", "replicas")

test_what_is_left_of_a_deleted_topic = table_of("I23", CASES)
