"""A member's side of the group protocol: joining, synchronising, heartbeats, leaving, as Kafka's clients do it.

After Kafka's `AbstractCoordinator` and `ConsumerCoordinator` (3.9). Joining goes on beside the polls, and one of them
takes its outcome; heartbeats go on beside both, but not while a JoinGroup or SyncGroup waits for its answer.
"""

import asyncio
from collections.abc import Sequence

from harness.broker.coordinator.subscription import CONSUMER_PROTOCOL
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from harness.broker.wire.sentinels import NO_GENERATION
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.assignors import (
    ASSIGNORS,
    Candidate,
    Subscription,
    decoded_assignment,
    decoded_subscription,
    encoded_assignment,
    encoded_subscription,
)
from harness.client_rules.steps import RETRY_S
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.coordinator import OwnCoordinator
from harness.simulation.clients.metadata import METADATA_VERSION, metadata_request, now_s
from harness.simulation.clients.refusals import Refused
from harness.store.recording import Identity
from harness.values import TopicPartition

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 7, 5, 4, 4
JOIN_MARGIN_S = 5.0
"""For how much longer than the rebalance may take a JoinGroup is waited for."""

_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})
"""The group goes on without this member."""
_COORDINATOR_IS_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupMembership:
    """One member's place in its group."""

    def __init__(self, plan: ClientPlan, coordinator: OwnCoordinator) -> None:
        parameters = plan.parameters
        self.must_rejoin = True
        """Whether it is to join, as soon as it polls."""
        self.thrown_out = False
        """Whether another member may own its partitions by now."""
        self.fenced = False
        """Whether another one has its instance: it may never join again."""
        self.member_id = ""
        self.generation = NO_GENERATION
        self._instance_id: str = parameters["instance"]
        self._group: str = parameters["group"]
        self._assignor: str = parameters["assignor"]
        self._session_timeout_ms: int = parameters["session_timeout_ms"]
        self._max_poll_s = parameters["max_poll_interval_ms"] / 1000
        self._heartbeat_s = parameters["heartbeat_interval_ms"] / 1000
        self._topics = dict(plan.topics)
        self._coordinator = coordinator
        self._joining: asyncio.Task[tuple[TopicPartition, ...] | None] | None = None
        self._polled_s = now_s()
        self._heart = asyncio.ensure_future(self._beat())

    @property
    def identity(self) -> Identity:
        """Its identity in the group now."""
        return Identity(member=self.member_id, instance=self._instance_id, generation=self.generation)

    @property
    def joining(self) -> bool:
        """Whether its share in the next generation is still unknown."""
        return self._joining is not None and not self._joining.done()

    def polled(self) -> tuple[TopicPartition, ...] | None:
        """Take note of a poll; return what a generation gives it that it has joined since, None for no such."""
        self._polled_s = now_s()
        if self._joining is None or not self._joining.done():
            return None
        joined, self._joining = self._joining, None
        return joined.result()

    def join(self, owned: Sequence[TopicPartition]) -> None:
        """Begin to join; what it owns meanwhile is what it keeps."""
        self.must_rejoin = False
        self._joining = asyncio.ensure_future(self._joined(tuple(owned)))

    def refused(self, code: int) -> None:
        """Take what the coordinator said instead of doing what it was asked."""
        if code in _COORDINATOR_IS_ELSEWHERE:
            self._coordinator.forget()
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.must_rejoin = True
        elif code in _FORGOTTEN:
            self.must_rejoin = self.thrown_out = True
            self.generation = NO_GENERATION
            self.fenced = self.fenced or code == ErrorCode.FENCED_INSTANCE_ID
            if code != ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""

    async def leave(self) -> None:
        """Be no member any more; a static one goes without a word."""
        self.stop()
        if self.member_id and not self._instance_id:
            member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=None)
            try:
                await self._ask(LeaveGroupRequest(group_id=self._group, members=[member]), LEAVE_VERSION)
            except (PeerError, Refused):
                self._coordinator.forget()
        self.member_id, self.generation = "", NO_GENERATION

    def stop(self) -> None:
        """Do nothing any more, and say nothing."""
        self._heart.cancel()
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
            self._coordinator.forget()  # its answer would be taken for that to the next request

    # --- joining ---

    async def _joined(self, owned: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...] | None:
        """Return what the next generation gives it; None when it has to begin anew, without what it owns."""
        while not self.thrown_out:
            try:
                joined = await self._join(owned)
                if joined.error_code == ErrorCode.NONE:
                    self.member_id, self.generation = joined.member_id, joined.generation_id
                    synced = await self._sync(joined)
                    if synced.error_code == ErrorCode.NONE:
                        return decoded_assignment(bytes(synced.assignment))
                    self.refused(synced.error_code)
                elif joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                    self.member_id = joined.member_id
                    continue
                else:
                    self.refused(joined.error_code)
            except (PeerError, Refused):
                self._coordinator.forget()
            self.must_rejoin = self.thrown_out
            await asyncio.sleep(RETRY_S)
        return None

    async def _join(self, owned: tuple[TopicPartition, ...]) -> Message:
        subscription = Subscription(topics=tuple(sorted(self._topics)), owned=owned, generation=self.generation)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=round(self._max_poll_s * 1000),
            member_id=self.member_id,
            group_instance_id=self._instance_id or None,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[protocol(name=self._assignor, metadata=encoded_subscription(subscription))],
        )
        return await self._ask(request, JOIN_VERSION, timeout_s=self._max_poll_s + JOIN_MARGIN_S)

    async def _sync(self, joined: Message) -> Message:
        assignments = {}
        if joined.leader == joined.member_id:
            # As librdkafka does: what it keeps it commits meanwhile, in a generation that assigns nothing yet.
            await self._ask(metadata_request(sorted(self._topics)), METADATA_VERSION)
            assignments = self._assigned(joined.members)
        of_member = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self._instance_id or None,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=[
                of_member(member_id=member_id, assignment=encoded_assignment(partitions))
                for member_id, partitions in assignments.items()
            ],
        )
        return await self._ask(request, SYNC_VERSION, timeout_s=self._max_poll_s + JOIN_MARGIN_S)

    def _assigned(self, members: Sequence[Message]) -> dict[str, list[TopicPartition]]:
        candidates = [
            Candidate(
                member_id=each.member_id,
                instance_id=each.group_instance_id,
                subscription=decoded_subscription(bytes(each.metadata)),
            )
            for each in members
        ]
        return ASSIGNORS[self._assignor](candidates, self._topics)

    # --- heartbeats ---

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            if self.generation == NO_GENERATION or self.joining:
                continue
            if now_s() - self._polled_s > self._max_poll_s:
                await self._give_up()
                continue
            request = HeartbeatRequest(
                group_id=self._group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance_id or None,
            )
            await self._heard(request)

    async def _heard(self, request: HeartbeatRequest) -> None:
        generation = self.generation
        try:
            answer = await self._ask(request, HEARTBEAT_VERSION)
        except (PeerError, Refused):
            if not self.joining:
                self._coordinator.forget()
            return
        if generation == self.generation:
            self.refused(answer.error_code)

    async def _give_up(self) -> None:
        """Leave, as the application has not polled for too long."""
        member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=None)
        self.refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if not self._instance_id:
            try:
                await self._ask(LeaveGroupRequest(group_id=self._group, members=[member]), LEAVE_VERSION)
            except (PeerError, Refused):
                self._coordinator.forget()

    async def _ask(self, request: Message, version: int, *, timeout_s: float | None = None) -> Message:
        return await self._coordinator.ask(request, version, timeout_s=timeout_s)
