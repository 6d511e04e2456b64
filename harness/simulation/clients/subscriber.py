"""Members of groups: what their rules say, in virtual time, with a group that speaks to them as they poll.

Automatic commits are librdkafka's (`enable.auto.commit`): every so often, beside the polls, one after the other, of
what was handed out before; and of what is given back.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from harness.broker.replicas.fetcher_messages import READ_COMMITTED
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.transport import PeerError
from harness.client_rules import steps
from harness.client_rules.subscribing import EAGER, Subscribing
from harness.simulation.clients.coordinator import OwnCoordinator
from harness.simulation.clients.fetching import Fetching
from harness.simulation.clients.group_member import POLL_S, SimulatedGroupMember, taken
from harness.simulation.clients.membership import GroupMembership
from harness.simulation.clients.metadata import now_s
from harness.simulation.clients.offsets import GroupOffsets
from harness.simulation.clients.refusals import Refused
from harness.values import TopicPartition

Decided = Callable[[TopicPartition, int, str], None]
"""Takes a partition, the error code of its commit, and what that means."""


class SimulatedSubscriber(SimulatedGroupMember):
    """One member."""

    _rules: Subscribing
    _membership: GroupMembership
    """Since it subscribed."""

    _coordinator: OwnCoordinator
    _fetching: Fetching
    _automatic: asyncio.Task[None] | None = None
    """The automatic commit that is on its way."""
    _due_s = 0.0

    async def _act(self, step: steps.Step) -> steps.StepResult:
        match step:
            case steps.Subscribe():
                self._membership = GroupMembership(self._plan, self._coordinator)
                self._open.callback(self._membership.stop)
            case steps.Poll():
                return await self._poll()
            case steps.Commit(positions, _):
                await self._commit(positions)
            case steps.Assign(positions):
                self._fetching.assign({key: await self._position(key, at) for key, at in positions.items()})
            case steps.Unassign(partitions):
                await self._commit_the_rest(partitions)
                self._fetching.unassign(partitions)
            case steps.Leave():
                await self._leave()
            case _:
                return await super()._act(step)
        return steps.DONE

    def _connect(self) -> None:
        super()._connect()
        self._coordinator = OwnCoordinator(
            self._rules.group, self._client, self._transport, client_id=self._plan.process
        )
        self._open.callback(self._coordinator.close)
        self._offsets = GroupOffsets(
            self._rules.group, self._coordinator, stable=self._isolation_level == READ_COMMITTED
        )
        self._fetching = Fetching(self._client, self._isolation_level)
        self._open.callback(self._fetching.stop)
        self._open.callback(self._abandon_commit)

    async def _poll(self) -> steps.StepResult:
        until_s = now_s() + POLL_S
        self._commit_now_and_then()
        await self._hear_the_group()
        await asyncio.sleep(max(0.0, until_s - now_s()))
        self._look_who_it_is()
        if self._membership.fenced:
            return steps.StepResult(error=described(ErrorCode.FENCED_INSTANCE_ID), is_over=True)
        return taken(self._fetching)

    async def _hear_the_group(self) -> None:
        """Let the rules know what the group has said since the last poll, and join it where that is due."""
        group = self._membership
        assigned = group.polled()
        if group.thrown_out:
            group.thrown_out = False
            if self._owned:
                await self._tell(self._rules.lost(self._owned))
        elif assigned is not None:
            await self._adopt(assigned)
        if group.must_rejoin and not group.joining and not group.fenced:
            if self._rules.protocol == EAGER and self._owned:
                await self._tell(self._rules.revoked(self._owned))
            group.join(self._owned)

    async def _adopt(self, assigned: tuple[TopicPartition, ...]) -> None:
        """Own what the generation gives; what it takes is given back first, and assigned again in the next one."""
        taken = [partition for partition in self._owned if partition not in assigned]
        if taken:
            await self._tell(self._rules.revoked(taken))
            self._membership.must_rejoin = True
        await self._tell(self._rules.assigned([partition for partition in assigned if partition not in self._owned]))

    @property
    def _owned(self) -> list[TopicPartition]:
        return sorted(self._rules.positions)

    async def _tell(self, script: steps.Script[None]) -> None:
        self._look_who_it_is()
        await steps.carry_out_async(script, self._act)

    def _look_who_it_is(self) -> None:
        self._rules.known_as(self._membership.member_id, self._membership.generation)

    # --- automatic commits ---

    def _commit_now_and_then(self) -> None:
        """Begin a commit of what was handed out before this poll, when it is time and none is on its way."""
        if not self._rules.library_commits or now_s() < self._due_s or self._is_committing():
            return
        self._due_s = now_s() + self._plan.parameters["commit_interval_s"]
        if moved := self._moved(self._owned):
            self._automatic = asyncio.ensure_future(self._commit(moved, self._telling(moved)))

    async def _commit_the_rest(self, partitions: Sequence[TopicPartition]) -> None:
        """Commit what is given back; lost partitions belong to another member, and nothing is committed for them."""
        if not self._rules.library_commits or self._membership.generation < 0:
            return
        if self._automatic is not None and self._is_committing():
            await self._automatic
        if moved := self._moved(partitions):
            await self._commit(moved, self._telling(moved))

    def _moved(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        acknowledged, positions = self._rules.commits.acknowledged, self._rules.positions
        return {each: positions[each] for each in partitions if positions[each] > acknowledged.get(each, -1)}

    def _telling(self, positions: Mapping[TopicPartition, int]) -> Decided:
        """Return what writes an automatic commit down, of which its member hears when it is decided."""
        return lambda partition, code, error: self._rules.commits.answered(partition, positions[partition], code, error)

    def _is_committing(self) -> bool:
        return self._automatic is not None and not self._automatic.done()

    def _abandon_commit(self) -> None:
        if self._automatic is not None:
            self._automatic.cancel()
            self._automatic = None

    # --- commits ---

    async def _commit(self, positions: Mapping[TopicPartition, int], write_down: Decided | None = None) -> None:
        """Commit as a member of a generation; a member without partitions has nothing to send while it joins.

        A member that keeps partitions goes on to commit in the generation that it knows, as librdkafka does.
        """
        group, write_down = self._membership, write_down or self._rules.commits.decided
        if group.generation < 0 or (group.joining and self._rules.protocol == EAGER):
            code = ErrorCode.REBALANCE_IN_PROGRESS if group.joining else ErrorCode.UNKNOWN_MEMBER_ID
            for partition in positions:
                write_down(partition, code, described(code))
            return
        generation = group.generation

        def decided(partition: TopicPartition, code: int, error: str) -> None:
            write_down(partition, code, error)
            if generation == group.generation and not group.joining:
                group.refused(code)

        await self._offsets.commit(positions, decided, group.identity)

    async def _position(self, partition: TopicPartition, at: int | None) -> int:
        """Return where to begin, asking until an answer has the group's committed offset."""
        while at is None:
            try:
                at = await self._offsets.committed(partition)
            except (PeerError, Refused):
                self._coordinator.forget()
                await asyncio.sleep(steps.RETRY_S)
        return at

    async def _leave(self) -> None:
        if self._owned:
            give_up = self._rules.lost if self._membership.thrown_out else self._rules.revoked
            await self._tell(give_up(self._owned))
        await self._membership.leave()
        self._open.close()
