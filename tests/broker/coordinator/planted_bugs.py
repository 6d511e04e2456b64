"""What a group coordinator goes through, and how that ends with a planted bug and without."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from harness.broker.coordinator.coordinator import LATE_UNLOAD_S, CommitRequest, GroupCoordinator
from harness.broker.coordinator.records import CommittedOffset
from harness.broker.coordinator.requests import GroupLimits, Join, Sync
from harness.broker.coordinator.store import GroupStore
from harness.broker.rules import rules_with
from harness.broker.wire.error_codes import ErrorCode
from harness.events import BecomeLeader, Event
from harness.values import OFFSETS_TOPIC
from tests.broker.coordinator.coordinators import FakeTopic, coordinator_on, settled
from tests.broker.recording_state_log import RecordingStateLog

REFUSED, FENCED, TAKEN = ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.NONE
Play = Callable[[GroupCoordinator], Awaitable[Any]]


def a_join(instance: str | None = None) -> Join:
    return Join(
        member_id="",
        instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=10_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )


async def a_group(coordinating: GroupCoordinator, *, instance: str | None = None) -> tuple[str, int]:
    """A member joins; return its id and the generation, in which it has no assignment yet."""
    joined = await coordinating.members.join("g", a_join(instance))
    return joined.member_id, joined.generation


async def a_stable_group(coordinating: GroupCoordinator, *, instance: str | None = None) -> tuple[str, int]:
    member, generation = await a_group(coordinating, instance=instance)
    sync = Sync(generation=generation, member_id=member, instance_id=instance, assignments={member: b""})
    await coordinating.members.sync("g", sync)
    return member, generation


async def commits(
    coordinating: GroupCoordinator,
    member: str,
    generation: int,
    instance: str | None = None,
    partition: int = 0,
    offset: int = 7,
) -> ErrorCode:
    request = CommitRequest(
        group="g",
        generation=generation,
        member=member,
        instance=instance,
        offsets={("t", partition): CommittedOffset(offset=offset, timestamp_ms=1_000)},
        client="c",
        correlation_id=1,
    )
    (error,) = (await coordinating.commit(request)).values()
    return error


async def moves(coordinating: GroupCoordinator) -> None:
    """The coordinator loses its groups, and loads them again."""
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    log = coordinating.topic.log(0)
    assert log is not None
    coordinating.state_log.emit(
        BecomeLeader(
            topic=OFFSETS_TOPIC,
            partition=0,
            leader_epoch=5,
            previous_leader_epoch=4,
            log_start_offset=0,
            high_watermark=coordinating.topic.high_watermark(0),
            log_end_offset=log.log_end_offset,
            isr=[1],
            zk_version=5,
        )
    )
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 5)], [])
    await settled(coordinating)


async def commit_in_an_older_generation(coordinating: GroupCoordinator) -> Any:
    member, generation = await a_stable_group(coordinating)
    return await commits(coordinating, member, generation - 1)


async def commit_before_the_assignment(coordinating: GroupCoordinator) -> Any:
    return await commits(coordinating, *await a_group(coordinating))


async def former_life_of_an_instance(coordinating: GroupCoordinator) -> Any:
    former, generation = await a_stable_group(coordinating, instance="i")
    await a_stable_group(coordinating, instance="i")
    heartbeat = coordinating.members.heartbeat("g", generation, former, "i")
    return heartbeat, await commits(coordinating, former, generation, "i")


async def commits_after_a_failover(coordinating: GroupCoordinator) -> Any:
    for partition in range(4):
        await commits(coordinating, "", -1, partition=partition)
    await moves(coordinating)
    return coordinating.store.counts(0)


async def members_after_a_failover(coordinating: GroupCoordinator) -> Any:
    member, generation = await a_stable_group(coordinating)
    await moves(coordinating)
    return coordinating.members.heartbeat("g", generation, member, None)


async def groups_after_a_late_unload(coordinating: GroupCoordinator) -> Any:
    await commits(coordinating, "", -1)
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 2)])
    await asyncio.sleep(2 * LATE_UNLOAD_S)
    return coordinating.store.coordinator_error("g")


async def position_after_a_failover(coordinating: GroupCoordinator) -> Any:
    for offset in (3, 7):
        await commits(coordinating, "", -1, offset=offset)
    await moves(coordinating)
    committed = coordinating.store.get("g", "t", 0)
    return committed and committed.offset


async def first_generation_while_members_come(coordinating: GroupCoordinator) -> Any:
    coordinating.store.limits = GroupLimits(initial_rebalance_delay_ms=1_000)
    first = asyncio.create_task(coordinating.members.join("g", a_join()))
    others = []
    for _ in range(22):
        await asyncio.sleep(0.5)
        others.append(asyncio.create_task(coordinating.members.join("g", a_join())))
    generation = first.result().generation if first.done() else None
    for each in (first, *others):
        each.cancel()
    return generation


async def heartbeat_of_a_leader_that_never_syncs(coordinating: GroupCoordinator) -> Any:
    member, generation = await a_group(coordinating)
    for _ in range(12):
        await asyncio.sleep(1)
        error = coordinating.members.heartbeat("g", generation, member, None)
    return error


async def assignment_that_is_asked_for_again(coordinating: GroupCoordinator) -> Any:
    member, generation = await a_group(coordinating)
    sync = Sync(generation=generation, member_id=member, assignments={member: b"all"})
    await coordinating.members.sync("g", sync)
    return (await coordinating.members.sync("g", sync)).assignment


@dataclass(frozen=True, kw_only=True)
class Bug:
    play: Play
    right: Any
    wrong: Any
    found_by: str = ""
    """The check that finds it in what a coordinator tells; empty if it takes clients too, or time."""


BUGS = {
    "no-generation-check": Bug(play=commit_in_an_older_generation, right=REFUSED, wrong=TAKEN, found_by="I35"),
    "commits-while-completing": Bug(
        play=commit_before_the_assignment, right=ErrorCode.REBALANCE_IN_PROGRESS, wrong=TAKEN, found_by="I35"
    ),
    "static-member-not-fenced": Bug(
        play=former_life_of_an_instance, right=(FENCED, FENCED), wrong=(TAKEN, TAKEN), found_by="I35"
    ),
    "group-load-stops-early": Bug(play=commits_after_a_failover, right=(1, 4), wrong=(1, 2), found_by="I39"),
    "group-load-to-high-watermark": Bug(play=commits_after_a_failover, right=(1, 4), wrong=(1, 3), found_by="I39"),
    "member-forgotten-at-failover": Bug(
        play=members_after_a_failover, right=TAKEN, wrong=ErrorCode.UNKNOWN_MEMBER_ID, found_by="I34"
    ),
    "late-unload": Bug(play=groups_after_a_late_unload, right=TAKEN, wrong=ErrorCode.NOT_COORDINATOR, found_by="I39"),
    "first-position-loaded": Bug(play=position_after_a_failover, right=7, wrong=3),
    "first-rebalance-put-off": Bug(play=first_generation_while_members_come, right=1, wrong=None),
    "sync-never-times-out": Bug(
        play=heartbeat_of_a_leader_that_never_syncs, right=ErrorCode.UNKNOWN_MEMBER_ID, wrong=TAKEN
    ),
    "late-sync-without-assignment": Bug(play=assignment_that_is_asked_for_again, right=b"all", wrong=b""),
}


async def played(play: Play, *bugs: str) -> tuple[Any, list[Event]]:
    """Return how a play ends with these bugs, and what the coordinator told."""
    store = GroupStore(partitions=1, limits=GroupLimits(initial_rebalance_delay_ms=0), rules=rules_with([*bugs]))
    coordinating = coordinator_on(FakeTopic(committed=3), store)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    await settled(coordinating)
    end = await play(coordinating)
    await coordinating.stop()
    assert isinstance(coordinating.state_log, RecordingStateLog)
    return end, coordinating.state_log.events
