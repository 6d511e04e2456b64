from tests.analysis.fact_rows import elected_uncleanly, replica, state
from tests.analysis.protocol_rows import appended, topic, waited_for
from tests.checks.answers import POWER_LOSS, UNCLEAN, UNHEARD, excused, fails, passes, table_of, unknown

STATE = state(0, leader=1, epoch=0, isr=[1, 2])
KEPT = [replica(1, 5), replica(2, 5)]
WROTE = [appended(1, 0, 4), appended(2, 0, 4)]
LOST = [STATE, *WROTE, waited_for([1, 2], 5), replica(1, 5), replica(2, 3)]
LATER_LINE = '"high_watermark":5,"leader_epoch":0,"broker":1,"incarnation":"inc-1","seq":1'
"""Of two lines with the highest high watermark, always the same one, and all that it takes to look it up."""

CASES = {
    "every member of ZooKeeper's ISR had it": passes(STATE, *KEPT, *WROTE, waited_for([1, 2], 5)),
    "one had not, and the leader did not wait for it": fails(
        STATE,
        *KEPT,
        appended(1, 0, 4),
        appended(2, 0, 2),
        waited_for([1], 5),
        waited_for([1, 3], 3),
        offsets=[3],
        text="under version 0 with ISR [1, 2], and the log of broker 2 had come to 3",
    ),
    "one that is not in ZooKeeper's ISR need not": passes(
        state(0, leader=1, epoch=0, isr=[1]), *KEPT, appended(1, 0, 4), waited_for([1], 5)
    ),
    "in the end one has it no more": fails(*LOST, offsets=[3], text="the log of broker 2 ends at 3"),
    "in the end one has what was committed first only": fails(*LOST, waited_for([1], 2), offsets=[3]),
    "in the end one that has left the ISR has it no more": passes(*LOST, state(1, leader=1, epoch=0, isr=[1])),
    "its topic was deleted, and the replica was there again": passes(*LOST, topic(present=False)),
    "its topic is being deleted": passes(*LOST, topic(present=True, deletion_pending=True)),
    "its topic stays": fails(*LOST, topic(present=True), offsets=[3]),
    "a broker's log has holes": unknown(*LOST, UNHEARD),
    "the dump of an ISR member is missing": unknown(*LOST[:-1], text="its dump is missing"),
    "an unclean election gave it up": excused(*LOST, elected_uncleanly(2, 1), settings=UNCLEAN),
    "an unclean election was before the high watermark's last leader": fails(
        *LOST, waited_for([1, 2], 5, leader_epoch=2), elected_uncleanly(1, 1), settings=UNCLEAN
    ),
    "the same, in another order": fails(
        waited_for([1, 2], 5, leader_epoch=2), *LOST, elected_uncleanly(1, 1), settings=UNCLEAN
    ),
    "two lines have the highest high watermark": fails(*LOST, waited_for([1, 2], 5, seq=1), shown=LATER_LINE),
    "they have it in another order": fails(waited_for([1, 2], 5, seq=1), *LOST, shown=LATER_LINE),
    "the power was cut": excused(*LOST, settings=POWER_LOSS),
    "an older broker does not say the version": unknown(
        STATE, *KEPT, *WROTE, waited_for([1, 2], 5, version=None), text="do not say zk_version"
    ),
    "no high watermark ever rose": unknown(STATE, *KEPT, *WROTE, text="leader_isrs"),
}

CASES |= CASES["every member of ZooKeeper's ISR had it"].without_each(
    "leader_isrs", "appends", "partition_states", "replicas"
)

test_what_zookeepers_isr_has = table_of("I6", CASES)
