"""What waits or runs in a broker without a reason in its state: nothing in a sound one, and each leftover is named."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.effects import JOIN_TIMER, CancelTimer, SetTimer, Timer, TimerKind
from harness.broker.metrics.held_back import due, stuck_transactions, timers_left, timers_missing, unclaimed
from harness.broker.replicas.appending import DelayedProduce, PendingAppend
from harness.broker.replicas.fetching import DelayedFetch, FetchLimits, PartitionFetch
from harness.broker.replicas.purgatory import Purgatory
from harness.broker.rules import RIGHT
from harness.broker.transactions.metadata import TransactionState
from harness.broker.wire.sentinels import NO_EPOCH
from tests.broker.coordinator.coordinators import FakeTopic, leading
from tests.broker.coordinator.test_members import JOIN, stable
from tests.broker.transactions.coordinating import ID, Coordinating


def of_groups(coordinating: GroupCoordinator) -> tuple[list[str], list[str], list[str]]:
    """Return the timers that are missing and those that are left, and the groups of unclaimed requests."""
    store, members = coordinating.store, coordinating.members
    return timers_missing(store, members), timers_left(store, members), unclaimed(store, members)


def without_session_timer(coordinating: GroupCoordinator, member_id: str) -> None:
    known = coordinating.store.create_group("g")
    coordinating.members.carry_out(known.membership, [CancelTimer(timer=Timer(TimerKind.SESSION, member_id))])


def with_join_timer(coordinating: GroupCoordinator, _member_id: str) -> None:
    known = coordinating.store.create_group("g")
    coordinating.members.carry_out(known.membership, [SetTimer(timer=JOIN_TIMER, after_ms=1_000)])


def without_waiting_member(coordinating: GroupCoordinator, member_id: str) -> None:
    coordinating.store.create_group("g").membership.group.members[member_id].joining = None


@pytest.mark.parametrize(
    ("broken", "waits", "held_back"),
    [
        pytest.param(None, False, ([], [], []), id="a stable group has its timers and no others"),
        pytest.param(None, True, ([], [], []), id="a group that waits for its members has its timers and no others"),
        pytest.param(without_session_timer, False, (["g session {}"], [], []), id="a member without a session timer"),
        pytest.param(with_join_timer, False, ([], ["g join"], []), id="a timer of a rebalance that is over"),
        pytest.param(without_waiting_member, True, ([], [], ["g"]), id="a JoinGroup that no member has"),
    ],
)
async def test_groups(
    *,
    broken: Callable[[GroupCoordinator, str], None] | None,
    waits: bool,
    held_back: tuple[list[str], list[str], list[str]],
) -> None:
    coordinating = await leading(FakeTopic())
    member_id = await stable(coordinating)
    joining = asyncio.create_task(coordinating.members.join("g", JOIN)) if waits else None
    await asyncio.sleep(0)
    if waits:
        known = coordinating.store.create_group("g").membership.group
        member_id = next(each for each in known.members if each != member_id)
    if broken is not None:
        broken(coordinating, member_id)
    expected = tuple([text.format(member_id) for text in texts] for texts in held_back)
    assert of_groups(coordinating) == expected
    if joining is not None:
        joining.cancel()
    await coordinating.stop()


async def test_a_transaction_between_two_states_is_stored_or_has_markers_on_their_way() -> None:
    here = Coordinating()
    await here.lead()
    producer = await here.begin(0, 1)
    here.topic.gate = asyncio.Event()
    ending = asyncio.create_task(here.coordinator.end(ID, producer, commit=True))
    await asyncio.sleep(1)
    assert stuck_transactions(here.coordinator) == []
    here.topic.gate.set()
    await ending
    assert stuck_transactions(here.coordinator) == []
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert (stuck_transactions(here.coordinator), here.coordinator.storing) == ([], {})
    here.coordinator.transactions()[0].pending = TransactionState.EMPTY
    assert stuck_transactions(here.coordinator) == [ID]
    await here.coordinator.stop()


def replica(*, leads: bool = True, committed: int = 0, end: int = 5) -> Any:
    log = SimpleNamespace(log_end_offset=end)
    offsets = {"high_watermark": committed, "last_stable_offset": committed, "log": log}
    return SimpleNamespace(key=("t", 0), is_leader=leads, offline=False, **offsets)


def produce(partition: Any) -> PendingAppend:
    return PendingAppend(partition=partition, required_offset=3, min_insync_replicas=1)


def fetch(replicas: Any, *, replica_id: int) -> DelayedFetch:
    wanted = PartitionFetch(("t", 0), NO_EPOCH, 3, 100)
    return DelayedFetch(replicas, replica_id, [wanted], FetchLimits(min_bytes=1, max_bytes=100, max_wait_s=1), RIGHT)


@pytest.mark.parametrize(
    ("partition", "kinds"),
    [
        pytest.param(replica(committed=2, end=3), [], id="what is waited for has not happened"),
        pytest.param(replica(committed=3, end=3), ["produce"], id="the records are committed"),
        pytest.param(replica(committed=2, end=4), ["fetch"], id="there are records for a follower"),
        pytest.param(replica(committed=4, end=4), ["produce", "fetch", "fetch"], id="there are records for a consumer"),
        pytest.param(replica(leads=False, end=3), ["produce", "fetch", "fetch"], id="the lead is lost"),
    ],
)
async def test_requests_that_are_due(partition: Any, kinds: list[str]) -> None:
    replicas: Any = SimpleNamespace(
        appends=Purgatory(), fetches=Purgatory(), deletions=Purgatory(), get=lambda _topic, _number: partition
    )
    waiting = [
        asyncio.create_task(replicas.appends.wait(DelayedProduce([produce(partition)]), [("t", 0)], 1)),
        *(
            asyncio.create_task(replicas.fetches.wait(fetch(replicas, replica_id=each), [("t", 0)], 1))
            for each in (-1, 2)
        ),
    ]
    await asyncio.sleep(0)
    assert due(replicas) == [f"{kind} t-0" for kind in kinds]
    await asyncio.gather(*waiting)
