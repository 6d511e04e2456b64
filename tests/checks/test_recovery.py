from tests.analysis.fact_rows import Row, sent, state
from tests.analysis.protocol_rows import injected, registered, topic
from tests.checks.answers import UNCLEAN, fails, noted, passes, table_of, unknown

THREE = [registered(1), registered(2), registered(3, until_zxid=None)]
OTHERS = [registered(2), registered(3)]
BEGUN = state(0, leader=1, epoch=0, isr=[1, 2, 3])
LOST = state(1, leader=1, epoch=0, isr=[1, 2], previous=BEGUN)
LEADERLESS = state(1, leader=-1, epoch=1, isr=[1])
UNANSWERED = sent("b", invoke_ns=1_000_000_000, complete_ns=None, index=7)

DIED = sent("b", invoke_ns=1_000_000_000, complete_ns=None, process="p1")


def ended(at_s: float) -> Row:
    return sent("a", 0, complete_ns=int(at_s * 1e9))


CASES = {
    "all live replicas are in sync": passes(*THREE, BEGUN, ended(5)),
    "a dead broker's replica is not missed": passes(
        registered(1), registered(2), registered(3, until_zxid=40), BEGUN, LOST, ended(5)
    ),
    "a live replica never came back": fails(
        *THREE, BEGUN, LOST, injected(healed_s=10), ended(80), text="leader 1 and ISR [1, 2]"
    ),
    "the run ended before the deadline": noted(*THREE, BEGUN, LOST, injected(healed_s=10), ended(20)),
    "without any fault there is nothing to wait for": fails(*THREE, BEGUN, LOST, ended(5)),
    "there is no leader": fails(
        *THREE, state(1, leader=-1, epoch=1, isr=[1, 2, 3]), ended(5), epochs=[1], text="no leader"
    ),
    "the leader is dead": fails(*OTHERS, state(0, leader=1, epoch=0, isr=[2, 3]), ended(5)),
    "the last of the ISR is down, so no replica may lead": noted(*OTHERS, LEADERLESS, ended(5)),
    "the last of the ISR is down, and unclean election is allowed": fails(
        *OTHERS, LEADERLESS, ended(5), settings=UNCLEAN
    ),
    "no replica is there that could lead": passes(registered(1, until_zxid=30), LEADERLESS, ended(5)),
    "the only replica that there is lives, and does not lead": fails(
        registered(1), state(1, leader=-1, epoch=1, isr=[1], assignment=[1]), ended(5)
    ),
    "the deadline is over": fails(*THREE, BEGUN, LOST, injected(healed_s=10), ended(70)),
    "the deadline is not quite over": noted(*THREE, BEGUN, LOST, injected(healed_s=10), ended(69.9)),
    "the deadline begins with the last of two faults": noted(
        *THREE, BEGUN, LOST, injected(healed_s=10), injected(healed_s=30), ended(80)
    ),
    "a broker that is dead logged its registration": passes(
        registered(1),
        registered(2),
        registered(3, until_zxid=40),
        registered(3, source="broker"),
        BEGUN,
        LOST,
        ended(5),
    ),
    "another topic is gone, and this one is there": fails(
        *THREE, BEGUN, LOST, topic(present=True), topic("other", present=False), ended(5)
    ),
    "a replica was moved away after the last state was written": passes(
        *THREE,
        BEGUN,
        LOST,
        topic(present=True, assignment=[{"partition": 0, "replicas": [1, 2]}]),
        injected(healed_s=10),
        ended(80),
    ),
    "a replica was assigned after the last state was written": fails(
        *THREE,
        state(0, leader=1, epoch=0, isr=[1, 2], assignment=[1, 2]),
        topic(present=True, assignment=[{"partition": 0, "replicas": [1, 2, 3]}]),
        injected(healed_s=10),
        ended(80),
        text="[1, 2, 3] are assigned",
    ),
    "a topic whose deletion waits needs no leader": passes(
        *THREE, LEADERLESS, topic(present=True, deletion_pending=True), ended(5)
    ),
    "a fault that never was injected needs no healing": passes(
        *THREE, BEGUN, ("fault_windows", injected(healed_s=None)[1] | {"injected_ns": None}), ended(80)
    ),
    "a long run in which every request had its end": passes(*THREE, BEGUN, sent("a", 0), ended(200)),
    "two clients are left without an answer, one of them twice": fails(
        *THREE,
        BEGUN,
        UNANSWERED,
        sent("c", invoke_ns=5_000_000_000, complete_ns=None, index=8),
        sent("d", invoke_ns=5_000_000_000, complete_ns=None, process="p1"),
        sent("e", 0, complete_ns=66_000_000_000, process="p1"),
        ended(70),
        text="2 of p0 to orders got no answer and did not fail, the oldest for 69 s",
        shown='"index":7,"number":2',
        severities=["violation", "violation"],
    ),
    "a topic that is gone needs no leader": passes(*THREE, LEADERLESS, topic(present=False), ended(5)),
    "a request never got an end": fails(*THREE, BEGUN, UNANSWERED, ended(61), text="1 of p0 to orders got no answer"),
    "a client that may have died with its request is not left without an answer": passes(
        *THREE, BEGUN, DIED, ended(200)
    ),
    "a client was killed with its request, and lives again": passes(
        *THREE, BEGUN, UNANSWERED, injected(healed_s=3, injected_ns=2_000_000_000, targets=["p0"]), ended(200)
    ),
    "a client was killed before its request": fails(
        *THREE, BEGUN, UNANSWERED, injected(healed_s=3, injected_ns=500_000_000, targets=["p0"]), ended(200)
    ),
    "another client was killed": fails(
        *THREE, BEGUN, UNANSWERED, injected(healed_s=3, injected_ns=2_000_000_000, targets=["p1"]), ended(200)
    ),
    "a client was paused during its request": fails(
        *THREE,
        BEGUN,
        UNANSWERED,
        injected(healed_s=3, injected_ns=2_000_000_000, targets=["p0"], fault="pause"),
        ended(200),
    ),
    "it does not excuse a replica that never came back": fails(*THREE, BEGUN, LOST, DIED, ended(200)),
    "a client that died a little before the end had its time": passes(*THREE, BEGUN, DIED, ended(60)),
    "the run ended before its deadline": passes(*THREE, BEGUN, UNANSWERED, ended(60)),
    "its deadline begins when all is healed": passes(*THREE, BEGUN, UNANSWERED, injected(healed_s=10), ended(69)),
    "it never got an end after all was healed": fails(*THREE, BEGUN, UNANSWERED, injected(healed_s=10), ended(70)),
    "a fault was never healed": unknown(*THREE, BEGUN, injected(healed_s=None), ended(80), text="never healed"),
    "ZooKeeper's history is empty": unknown(ended(5), text="partition_states"),
}

CASES |= CASES["all live replicas are in sync"].without_each("partition_states", "registrations", "sends")

test_what_is_whole_again_in_the_end = table_of("I20", CASES)
