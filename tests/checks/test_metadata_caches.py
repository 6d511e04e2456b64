from typing import Any

from tests.analysis.fact_rows import Row, controller, state
from tests.analysis.protocol_rows import cached, injected, registered, topic
from tests.checks.answers import Case, fails, noted, passes, table_of, unknown

REGISTERED = [registered(1), registered(2)]
STATE = state(0, leader=1, epoch=0, isr=[1, 2], time_ns=1)
RUN = [*REGISTERED, STATE, topic(present=True)]


def known(*rows: Row, run: list[Row] = RUN) -> Case:
    return passes(*run, *rows)


def unknown_to_one(*rows: Row, run: list[Row] = RUN, **wanted: Any) -> Case:
    return fails(*run, cached(), *rows, **wanted)


def moved(epoch: int, at_s: float) -> list[Row]:
    """The same cluster, whose leader became broker 2 then."""
    return [*RUN, state(epoch, leader=2, epoch=epoch, isr=[1, 2], time_ns=int(at_s * 1e9))]


EMPTY: dict[str, Any] = {"topic": None, "partition": None, "seq": None, "leader": None, "leader_epoch": None}

CASES = {
    "all know what ZooKeeper has": known(cached(), cached(2)),
    "the brokers are named in another order": known(cached(live_brokers=[2, 1]), cached(2)),
    "one takes a live broker for dead": unknown_to_one(
        cached(2, live_brokers=[2]), text="broker 2 has [2], and [1, 2] are registered"
    ),
    "one takes a dead broker for alive": unknown_to_one(cached(2, live_brokers=[1, 2, 3])),
    "it is wrong about two partitions' leaders too": unknown_to_one(
        cached(2, live_brokers=[2], leader=2), severities=["violation"] * 2
    ),
    "one was never told": unknown_to_one(
        cached(2, live_brokers=None, **EMPTY),
        severities=["violation"] * 2,
        text=("broker 2 has ?, and [1, 2] are registered"),
    ),
    "one knows no partition": unknown_to_one(
        cached(2, **EMPTY), text="for orders-0 broker 2 has nothing, and ZooKeeper has leader 1 in epoch 0", epochs=[0]
    ),
    "one knows another leader, and a topic was deleted": unknown_to_one(
        cached(2, leader=2), topic("gone", present=False), text="for orders-0 broker 2 has leader 2"
    ),
    "one knows another leader": unknown_to_one(cached(2, leader=2), text="broker 2 has leader 2 in epoch 0"),
    "one knows an older epoch": unknown_to_one(
        cached(2),
        run=[*REGISTERED, STATE, state(1, leader=1, epoch=1, isr=[1, 2], time_ns=1), topic(present=True)],
        severities=["violation"] * 2,
    ),
    "one knows another partition only": unknown_to_one(cached(2, partition=1)),
    "the leader moved long before the end": fails(
        *moved(1, 98), cached(leader=2, leader_epoch=1), cached(2), text="ZooKeeper has leader 2 in epoch 1"
    ),
    "the leader moved long before the end, and so did the ISR": fails(
        *RUN,
        state(1, leader=2, epoch=1, isr=[2], time_ns=80 * 10**9),
        cached(leader=2, leader_epoch=1, isr=[2]),
        cached(2),
        text="for orders-0 broker 2 has leader 1 in epoch 0",
    ),
    "the leader moved just before the end": passes(*moved(1, 98.1), cached(leader=2, leader_epoch=1), cached(2)),
    "the leader moved after the end": passes(*moved(1, 101), cached(), cached(2)),
    "the ISR changed long before the end": fails(
        *RUN,
        state(1, leader=1, epoch=0, isr=[1], time_ns=85 * 10**9),
        cached(isr=[1]),
        cached(2),
        text="for orders-0 broker 2 has [1, 2], and ZooKeeper has had [1] for 15.0 s",
        epochs=[0],
        facts=["metadata_caches", "partition_states"],
    ),
    "the ISR changed not so long before it": known(
        cached(isr=[1]), cached(2), run=[*RUN, state(1, leader=1, epoch=0, isr=[1], time_ns=86 * 10**9)]
    ),
    "another ISR changed not so long before it": known(
        cached(isr=[1]),
        cached(2),
        cached(partition=1),
        cached(2, partition=1),
        run=[*RUN, state(0, leader=1, epoch=0, isr=[1, 2], partition=1, time_ns=86 * 10**9)],
    ),
    "the ISR is in another order": known(cached(isr=[2, 1]), cached(2)),
    "the last fault was healed not so long before the end": known(cached(isr=[1]), cached(2), injected(healed_s=86)),
    "a broker is gone for good": known(
        cached(live_brokers=[1]), cached(2, leader=9), run=[registered(1), registered(2, until_zxid=70), *RUN[2:]]
    ),
    "a broker says itself that it registered": known(cached(), cached(2), registered(3, source="broker")),
    "a deleted topic is forgotten": known(cached(), cached(2), topic("gone", present=False)),
    "a deleted topic is remembered": unknown_to_one(
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
        text="broker 2 has leader 1 of gone-0",
        facts=["metadata_caches", "topics"],
    ),
    "a topic whose deletion had hardly begun when the load ended is remembered": known(
        *(cached(), cached(2), cached(2, topic="gone", leader=1), topic("gone", present=False)),
        state(2, leader=1, epoch=2, isr=[1], topic="gone", time_ns=1),
        state(3, leader=-1, epoch=3, isr=[1], topic="gone", time_ns=98_100_000_000),
    ),
    "a topic that was deleted long before the load ended is remembered": unknown_to_one(
        *(cached(2), cached(2, topic="gone", leader=1), topic("gone", present=False)),
        state(3, leader=-1, epoch=3, isr=[1], topic="gone", time_ns=98_000_000_000),
        text="broker 2 has leader 1 of gone-0",
    ),
    "it was deleted when the broker was away": noted(
        registered(1),
        registered(2, czxid=51),
        STATE,
        topic(present=True),
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
    ),
    "it was deleted in the transaction in which the broker came": fails(
        registered(1),
        registered(2, czxid=50),
        STATE,
        topic(present=True),
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
    ),
    "the broker came between the making of the topic and its deletion": fails(
        registered(1),
        registered(2, czxid=30),
        STATE,
        topic(present=True),
        cached(),
        cached(2),
        cached(2, topic="gone"),
        state(0, leader=1, epoch=0, isr=[1], topic="gone", zxid=20),
        state(1, leader=-1, epoch=1, isr=[1], topic="gone", zxid=49),
        topic("gone", present=False),
    ),
    "its deletion had begun when the broker came": noted(
        registered(1),
        registered(2, czxid=50),
        STATE,
        topic(present=True),
        cached(),
        cached(2),
        cached(2, topic="gone"),
        state(0, leader=-1, epoch=1, isr=[1], topic="gone", zxid=49),
        topic("gone", present=False),
    ),
    "another broker became controller after it was deleted": noted(
        *RUN,
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
        controller(1, 4, zxid=5),
        controller(2, 5, zxid=51),
    ),
    "a quorum chose another controller after it was deleted": fails(
        *RUN,
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
        controller(2, 5, zxid=51, source="quorum"),
    ),
    "another broker became controller before it was deleted": fails(
        *RUN,
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
        state(0, leader=-1, epoch=1, isr=[1], topic="gone", zxid=49),
        controller(2, 5, zxid=48),
        text="broker 2 has leader 1 of gone-0",
    ),
    "another broker became controller while it was deleted": noted(
        *RUN,
        cached(),
        cached(2),
        cached(2, topic="gone"),
        topic("gone", present=False),
        state(0, leader=-1, epoch=1, isr=[1], topic="gone", zxid=48),
        controller(2, 5, zxid=49),
    ),
    "a deleted topic's last state is no concern": known(
        cached(), cached(2), topic("gone", present=False), state(0, leader=1, epoch=0, isr=[1], topic="gone", time_ns=1)
    ),
    "a topic is about to go": known(
        cached(),
        cached(2),
        cached(2, topic="going"),
        topic("going", present=True, deletion_pending=True),
        state(0, leader=1, epoch=0, isr=[1], topic="going", time_ns=1),
    ),
    "the last fault was healed long before the end": unknown_to_one(
        cached(2, live_brokers=[2]),
        cached(2, topic="gone"),
        topic("gone", present=False),
        injected(healed_s=98),
        severities=["violation"] * 2,
    ),
    "the last fault was healed just before the end": known(
        cached(),
        cached(2, live_brokers=[2]),
        cached(2, topic="gone"),
        topic("gone", present=False),
        injected(healed_s=10),
        injected(healed_s=98.1),
    ),
    "a broker went long before the end": fails(
        *RUN, registered(3, until_zxid=20, until_ns=98 * 10**9), cached(live_brokers=[1, 2, 3]), cached(2)
    ),
    "a broker went just before the end, as in a shutdown": known(
        registered(3, until_zxid=20, until_ns=99 * 10**9), cached(live_brokers=[1, 2, 3]), cached(2)
    ),
    "a broker went just before the end, which had come long before, as had one that went long before": known(
        registered(3, time_ns=0, until_zxid=20, until_ns=99 * 10**9),
        registered(4, time_ns=0, until_zxid=15, until_ns=10 * 10**9),
        cached(live_brokers=[1, 2, 3]),
        cached(2),
    ),
    "a broker came just before the end, and another one long before": known(
        registered(3, time_ns=99 * 10**9),
        registered(4, time_ns=0, until_zxid=15, until_ns=10 * 10**9),
        cached(),
        cached(2),
    ),
    "a broker came just before the end": known(registered(3, time_ns=99 * 10**9), cached(), cached(2)),
    "a leader that moved long before is judged even then": unknown_to_one(cached(2, leader=2), injected(healed_s=98.1)),
    "a fault was never healed": unknown(
        *RUN, cached(), cached(2), injected(healed_s=None), text="kill was never healed"
    ),
    "a fault was never injected": known(cached(), cached(2), injected(injected_ns=None, healed_s=None)),
    "the logs are older": unknown(
        *RUN, cached(live_brokers=None, **EMPTY), cached(2, live_brokers=None, **EMPTY), text="do not say live_brokers"
    ),
}

CASES |= CASES["all know what ZooKeeper has"].without_each(
    "metadata_caches", "partition_states", "registrations", "topics"
)

test_what_brokers_know_in_the_end = table_of("I29", CASES)
