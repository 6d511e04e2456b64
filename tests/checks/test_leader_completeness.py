from tests.analysis.fact_rows import elected_uncleanly, held, led, replica, sent, state
from tests.analysis.protocol_rows import superseded, topic
from tests.checks.answers import NOT_UNIQUE, POWER_LOSS, UNCLEAN, excused, fails, passes, table_of, unknown

LATER = [sent("a", 0), led(1, 0), led(2, 1), replica(1, 1), replica(2, 1), state(1, leader=2, epoch=1, isr=[2])]

CASES = {
    "the later leader has it": passes(*LATER, held(2, "a", 0)),
    "the later leader does not have it": fails(
        *LATER, text="a was acknowledged at orders-0 offset 0 in epoch 0, and is not there on broker 2"
    ),
    "another record is in its place": fails(*LATER, held(2, "b", 0)),
    "it is at another offset": fails(*LATER, held(2, "a", 1)),
    "the power was cut": excused(*LATER, settings=POWER_LOSS),
    "the election was unclean": excused(*LATER[:2], elected_uncleanly(2, 1), *LATER[3:], settings=UNCLEAN),
    "the partition was moved away from the later leader": passes(
        *LATER[:4], topic(present=True, assignment=[{"partition": 0, "replicas": [1]}]), *LATER[4:-1]
    ),
    "another partition was moved away from it": fails(
        *LATER,
        topic(present=True, assignment=[{"partition": 0, "replicas": [1, 2]}, {"partition": 1, "replicas": [1]}]),
    ),
    "acks=1 makes no such promise": passes(sent("a", 0, acks=1), *LATER[1:]),
    "an earlier leader need not have it": passes(
        sent("a", 0, leader_epoch=1), led(1, 0), led(2, 1), replica(1, 1), replica(2, 1), held(2, "a", 0)
    ),
    "a member of the last ISR does not have it": fails(
        sent("a", 0), led(1, 0), replica(1, 1), held(1, "a", 0), replica(2, 0), state(1, leader=1, epoch=0, isr=[1, 2])
    ),
    "an earlier and later leader does not have it": fails(
        sent("a", 0, leader_epoch=1), led(2, 0), led(1, 1), led(2, 2), replica(2, 1)
    ),
    "a cleaner may have taken it": passes(*LATER, superseded(0)),
    "a cleaner may have taken the one before it": fails(*LATER, superseded(1), superseded(0, partition=1)),
    "only a record that was lost with its leader replaces it": fails(*LATER, superseded(0, committed=False)),
    "an unclean election may have lost the record that replaces it": passes(
        *LATER, superseded(0, committed=False), settings=UNCLEAN
    ),
    "a power loss may have taken the record that replaces it": passes(
        *LATER, superseded(0, committed=False), settings=POWER_LOSS
    ),
    "retention has deleted it": passes(*LATER[:4], replica(2, 1, log_start_offset=1), LATER[-1]),
    "the dump of an ISR member is missing": unknown(*LATER[:4], LATER[-1], text="broker 2: its dump is missing"),
    "nothing was sent": unknown(),
    "an unclean election before it excuses nothing": fails(
        sent("a", 0, leader_epoch=1), elected_uncleanly(1, 1), led(2, 2), replica(2, 1), settings=UNCLEAN
    ),
    "an unclean election of another partition excuses nothing": fails(
        *LATER, elected_uncleanly(2, 1, partition=1), settings=UNCLEAN
    ),
    "a value was sent twice": unknown(*LATER, NOT_UNIQUE, text="value ids: 1 sent more than once"),
}

CASES |= CASES["the later leader has it"].without_each("sends", "replicas", "leader_epochs")
CASES |= CASES["the later leader has it"].with_unknown_cleaners()

test_acknowledged_records_in_the_logs_of_later_leaders = table_of("I10", CASES)
