from dataclasses import replace

from tests.analysis.fact_rows import Row, controller, state
from tests.analysis.protocol_rows import S, gone_through, injected, registered, topic
from tests.checks.answers import STRICT, Case, fails, passes, table_of

SETTINGS = replace(STRICT, session_timeout_ms=4_000)


def cluster(*rows: Row, gone_s: float = 10, back_s: float | None = None, moved_s: float = 11) -> list[Row]:
    """Broker 1 leads from the beginning, and goes at `gone_s`; broker 2 leads from `moved_s` on."""
    first = state(0, leader=1, epoch=0, isr=[1, 2], zxid=100, time_ns=0)
    back = [registered(1, 30, time_ns=int(back_s * S))] if back_s is not None else []
    return [
        first,
        state(1, leader=2, epoch=1, isr=[2], zxid=200, time_ns=int(moved_s * S)),
        registered(1, 11, time_ns=0, until_ns=int(gone_s * S), until_zxid=20),
        registered(2, 12, time_ns=0, until_ns=60 * S, until_zxid=90),
        *back,
        controller(3, 1, zxid=5, time_ns=0),
        *rows,
    ]


def in_time(*rows: Row, **when: float) -> Case:
    return passes(*cluster(*rows, **when), settings=SETTINGS)


def late(*rows: Row, text: str = "", **when: float) -> Case:
    return fails(*cluster(*rows, **when), settings=SETTINGS, text=text)


CASES = {
    "another one leads within the session time-out and 20 s": in_time(moved_s=34),
    "it takes a little longer": late(gone_s=9.999999999, moved_s=34),
    "it takes longer": late(
        moved_s=34.5,
        text="orders-0 had the dead leader 1 for 24.5 s, with broker 2 of its ISR [1, 2] alive and controller 3 in "
        "office, which elected none within the 24 s that it may take",
    ),
    "the leader comes back before": in_time(moved_s=40, back_s=33),
    "the leader comes back too late": late(moved_s=40, back_s=35, text="for 25.0 s"),
    "there is no leader for too long": late(
        state(2, leader=-1, epoch=2, isr=[2], zxid=300, time_ns=30 * S),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=55 * S),
        text="had no leader for 25.0 s",
    ),
    "none leads to the end": fails(
        state(0, leader=1, epoch=0, isr=[1, 2], zxid=100, time_ns=0),
        registered(1, 11, time_ns=0, until_ns=10 * S, until_zxid=20),
        registered(2, 12, time_ns=0),
        registered(3, 13, time_ns=0, until_ns=60 * S, until_zxid=90),
        controller(3, 1, zxid=5, time_ns=0),
        settings=SETTINGS,
        text="for 50.0 s",
    ),
    "one member of the ISR lives for longer than another": late(
        state(2, leader=-1, epoch=2, isr=[2, 4], zxid=300, time_ns=30 * S),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=60 * S),
        registered(4, 14, time_ns=35 * S, until_ns=60 * S, until_zxid=91),
        text="for 30.0 s, with broker 2",
    ),
    "no member of the ISR lives": in_time(
        state(2, leader=-1, epoch=2, isr=[1], zxid=300, time_ns=30 * S),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=55 * S),
    ),
    "no member of the ISR lives, and one had said that it registered": in_time(
        state(2, leader=-1, epoch=2, isr=[1], zxid=300, time_ns=30 * S),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=55 * S),
        registered(1, 11, source="broker"),
    ),
    "a disturbing fault is in force": in_time(
        injected(fault="isolate", targets=["3"], intended_ns=12 * S, healed_s=14), moved_s=40
    ),
    "a fault disturbed before": late(injected(fault="isolate", intended_ns=S, healed_s=7), moved_s=40),
    "a fault was healed just before": in_time(injected(fault="isolate", intended_ns=S, healed_s=8.5), moved_s=40),
    "a fault comes later": late(injected(fault="isolate", intended_ns=41 * S, healed_s=42), moved_s=40),
    "a fault that disturbs nothing is in force": late(
        injected(fault="kill", targets=["1"], intended_ns=9 * S, healed_s=39), moved_s=40
    ),
    "the only live member is leaving": in_time(
        injected(fault="controlled-shutdown", targets=["2"], intended_ns=9 * S, healed_s=39), moved_s=40
    ),
    "a broker is leaving that is not in the ISR": late(
        injected(fault="controlled-shutdown", targets=["3"], intended_ns=9 * S, healed_s=39), moved_s=40
    ),
    "the topic is deleted": in_time(topic(present=False), moved_s=40),
    "the topic is about to be deleted": in_time(topic(present=True, deletion_pending=True), moved_s=40),
    "another topic is deleted": late(topic("gone", present=False), moved_s=40),
    "the topic stays": late(topic(present=True), moved_s=40),
    "the controller was elected meanwhile": passes(
        *[row for row in cluster(moved_s=34.5) if row[0] != "controller_epochs"],
        controller(3, 1, zxid=5, time_ns=11 * S),
        settings=SETTINGS,
    ),
    "the controller left meanwhile": passes(
        *[row for row in cluster(moved_s=40) if row[0] != "controller_epochs"],
        controller(3, 1, zxid=5, time_ns=0, left_ns=33 * S),
        settings=SETTINGS,
    ),
    "a broker says itself that it is controller": passes(
        *[row for row in cluster(moved_s=40) if row[0] != "controller_epochs"],
        controller(3, 1, zxid=None, time_ns=0, source="broker"),
        settings=SETTINGS,
    ),
    "the controller has gone through the brokers and elected": in_time(gone_through([2, 3]), gone_s=9),
    "it has gone through the brokers and elected none": late(
        gone_through([2, 3]),
        gone_s=9,
        moved_s=11.2,
        text="which elected none in its BrokerChange, which read that [2, 3] are registered",
    ),
    "it has gone through the brokers, and the election was written just afterwards": in_time(
        gone_through([2, 3]), gone_s=9, moved_s=11.1
    ),
    "the election was written a little later": late(gone_through([2, 3]), gone_s=9, moved_s=11.100000001),
    "it went through the brokers when the leader was there": in_time(gone_through([1, 2, 3]), gone_s=9, moved_s=11.2),
    "no member of the ISR was there": in_time(gone_through([3]), gone_s=9, moved_s=11.2),
    "the leader before added the member while the controller went through": passes(
        state(0, leader=1, epoch=0, isr=[1], zxid=90, time_ns=0),
        state(1, leader=1, epoch=0, isr=[1, 2], zxid=110, time_ns=int(10.5 * S)),
        state(2, leader=-1, epoch=1, isr=[2], zxid=120, time_ns=int(10.8 * S)),
        state(3, leader=2, epoch=2, isr=[2], zxid=130, time_ns=12 * S),
        registered(1, 11, time_ns=0, until_ns=9 * S, until_zxid=20),
        registered(2, 12, time_ns=0, until_ns=60 * S, until_zxid=95),
        controller(3, 1, zxid=5, time_ns=0),
        gone_through([2, 3]),
        settings=SETTINGS,
    ),
    "the member had left the ISR in the instant in which the controller began, and was added again": passes(
        state(0, leader=1, epoch=0, isr=[1, 2], zxid=80, time_ns=0),
        state(1, leader=1, epoch=0, isr=[1], zxid=90, time_ns=10 * S),
        state(2, leader=1, epoch=0, isr=[1, 2], zxid=110, time_ns=int(10.5 * S)),
        state(3, leader=-1, epoch=1, isr=[2], zxid=120, time_ns=int(10.8 * S)),
        state(4, leader=2, epoch=2, isr=[2], zxid=130, time_ns=12 * S),
        registered(1, 11, time_ns=0, until_ns=9 * S, until_zxid=20),
        registered(2, 12, time_ns=0, until_ns=60 * S, until_zxid=95),
        controller(3, 1, zxid=5, time_ns=0),
        gone_through([2, 3]),
        settings=SETTINGS,
    ),
    "the member that was there was leaving": in_time(
        gone_through([2, 3]), injected(fault="rolling-restart", targets=["2"], healed_s=1), gone_s=9, moved_s=11.2
    ),
    "the controller took the leader away and elected none": fails(
        state(0, leader=-1, epoch=0, isr=[1, 2], zxid=100, time_ns=11 * S),
        state(1, leader=2, epoch=1, isr=[2], zxid=200, time_ns=12 * S),
        registered(2, 12, time_ns=0),
        controller(3, 1, zxid=5, time_ns=0),
        gone_through([2, 3]),
        settings=SETTINGS,
    ),
    "it elected none, and only the broker itself says that it registered": fails(
        state(0, leader=-1, epoch=0, isr=[1, 2], zxid=100, time_ns=11 * S),
        state(1, leader=2, epoch=1, isr=[2], zxid=200, time_ns=12 * S),
        registered(2, 12, source="broker"),
        controller(3, 1, zxid=5, time_ns=0),
        gone_through([2, 3]),
        settings=SETTINGS,
    ),
    "all that is alive of the ISR is a former replica": in_time(
        state(2, leader=-1, epoch=2, isr=[2], zxid=300, time_ns=30 * S, assignment=[1]),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=55 * S),
        gone_through([2, 3], began_ns=30 * S, time_ns=31 * S),
    ),
    "no assignment was seen": late(
        state(2, leader=-1, epoch=2, isr=[2], zxid=300, time_ns=30 * S, assignment=None),
        state(3, leader=2, epoch=3, isr=[2], zxid=400, time_ns=55 * S),
        text="had no leader for 25.0 s",
    ),
    "the state came when it was done": passes(
        state(0, leader=-1, epoch=0, isr=[1, 2], zxid=100, time_ns=11 * S + 1),
        state(1, leader=2, epoch=1, isr=[2], zxid=200, time_ns=12 * S),
        registered(2, 12, time_ns=0),
        controller(3, 1, zxid=5, time_ns=0),
        gone_through([2, 3]),
        settings=SETTINGS,
    ),
    "it went through the brokers twice and elected none, for long": late(
        gone_through([2, 3]), gone_through([2, 3], seq=9, began_ns=13 * S, time_ns=14 * S), gone_s=9, moved_s=45
    ),
}

CASES |= CASES["another one leads within the session time-out and 20 s"].without_each(
    "partition_states", "registrations", "controller_epochs"
)

test_when_partitions_have_leaders = table_of("leader-in-time", CASES)
