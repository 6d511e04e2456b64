"""A consumer: reads every partition, commits what it read; in the end reads to the end and its commits back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from harness.broker.fetcher_messages import LATEST
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from harness.broker.wire.transport import Message, PeerError
from harness.history import Operation, OpKind, OpType
from harness.simulation.clients.fetching import RETRY_S, Fetching, list_offset
from harness.simulation.clients.metadata import NOBODY, ClusterClient, Place
from harness.simulation.clients.outcomes import Refused, commit_outcome, described
from harness.simulation.evidence import Recorder
from harness.simulation.transport import MemoryTransport
from harness.workloads import ClientPlan

POLL_S = 0.25
"""How long one poll collects records."""
SETTLE_S = 0.5
"""The end has settled when it stays where it is for this long."""
COMMIT_DEADLINE_S = 5.0
FIND_COORDINATOR_VERSION, OFFSET_COMMIT_VERSION, OFFSET_FETCH_VERSION = 2, 7, 5
LIVE, AGAIN = "assign", "reread"
_AGAIN_SOON = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class SimulatedConsumer:
    """One consumer process, in a group of its own."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self.recorder = recorder
        self._plan = plan
        self._places = [(topic, p) for topic, count in sorted(plan.topics.items()) for p in range(count)]
        self._mode = LIVE
        self._polled: dict[Place, int] = {}
        """Next offset that a poll will hand out."""
        self._committed: dict[Place, int] = {}
        self._coordinator = NOBODY
        self._committing: asyncio.Task[None] | None = None
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=max(1.0, plan.parameters["request_timeout_ms"] / 1000),
            changed=lambda: self._fetching.look_again(),
        )
        self._fetching = Fetching(self._client, self._places)

    async def run(self, stop: asyncio.Event) -> None:
        """Poll and commit until `stop` is set; then read to the end, commit, and read the commits back."""
        parameters = self._plan.parameters
        commit_due_s = _now_s() + parameters["commit_interval_s"]
        while not stop.is_set():
            await self._poll()
            if _now_s() >= commit_due_s:
                self._commit()
                commit_due_s = _now_s() + parameters["commit_interval_s"]
        deadline_s = _now_s() + parameters["final_read_timeout_s"]
        if parameters["reread"]:
            self._mode = AGAIN
            self._read_from_the_start()
        await self._read_to_the_end(deadline_s)
        await self._commit_the_rest(deadline_s)
        for place in self._places:
            await self._ask(OpKind.FETCH_COMMITTED, place, self._committed_offset, deadline_s)
        self._fetching.stop()
        self._client.close()

    def _read_from_the_start(self) -> None:
        """Let the next poll give each partition's first records."""
        self._polled = {}
        self._fetching.from_the_start()

    # --- operations ---

    async def _poll(self) -> None:
        """Take what there is after a moment."""
        invoked = self.recorder.invoke(OpKind.POLL, mode=self._mode)
        await asyncio.sleep(POLL_S)
        records = self._fetching.take()
        for record in records:
            self._polled[record.topic, record.partition] = record.offset + 1
        self.recorder.end(invoked, OpType.OK, records=records)

    def _commit(self) -> None:
        """Ask for a commit of the positions that have moved on, unless one is still on its way."""
        moved = {place: to for place, to in sorted(self._polled.items()) if to > self._committed.get(place, -1)}
        if moved and (self._committing is None or self._committing.done()):
            self._committed |= moved
            invoked = {place: self._invoke(OpKind.COMMIT, place, to) for place, to in moved.items()}
            self._committing = asyncio.ensure_future(self._carry_out(invoked))

    async def _carry_out(self, invoked: dict[Place, Operation]) -> None:
        """Send a commit until it is decided or the time is up."""
        deadline_s = _now_s() + COMMIT_DEADLINE_S
        left = dict(invoked)
        while left:
            try:
                errors = await self._send_commit(left)
            except (PeerError, Refused) as error:
                code = error.code if isinstance(error, Refused) else ErrorCode.NETWORK_EXCEPTION
                errors = dict.fromkeys(left, code)
            for place, code in errors.items():
                if code == ErrorCode.NONE:
                    self.recorder.end(left.pop(place), OpType.OK)
                elif code not in _AGAIN_SOON or _now_s() >= deadline_s:
                    self.recorder.end(left.pop(place), commit_outcome(code), error=described(code))
            if left:
                self._coordinator = NOBODY
                await asyncio.sleep(RETRY_S)

    async def _send_commit(self, left: dict[Place, Operation]) -> dict[Place, int]:
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        topics = [
            of_topic(
                name=topic,
                partitions=[
                    of_topic.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=operation.offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                ],
            )
            for (topic, partition), operation in left.items()
        ]
        request = OffsetCommitRequest(group_id=self._plan.process, topics=topics)
        answer = await self._client.ask(await self._find_coordinator(), request, OFFSET_COMMIT_VERSION)
        return {
            (topic.name, told.partition_index): told.error_code for topic in answer.topics for told in topic.partitions
        }

    async def _commit_the_rest(self, deadline_s: float) -> None:
        """Commit the last positions and wait for the answers."""
        for last in (False, True):
            while self._committing is not None and not self._committing.done() and _now_s() < deadline_s:
                await self._poll()
            if not last:
                self._commit()

    async def _read_to_the_end(self, deadline_s: float) -> None:
        """Read until the ends of all partitions are reached and stay where they are."""
        settled: dict[Place, int | None] = {}
        while _now_s() < deadline_s:
            ends = {
                place: await self._ask(OpKind.END_OFFSET, place, self._end_offset, deadline_s) for place in self._places
            }
            if None not in ends.values() and ends == settled:
                return
            settled = ends
            settle_s = _now_s() + SETTLE_S
            while _now_s() < deadline_s and (_now_s() < settle_s or self._is_behind(ends)):
                await self._poll()

    def _is_behind(self, ends: dict[Place, int | None]) -> bool:
        return any(end is not None and self._polled.get(place, 0) < end for place, end in ends.items())

    async def _ask(
        self, kind: OpKind, place: Place, ask: Callable[[Place], Awaitable[int]], deadline_s: float
    ) -> int | None:
        """Ask until there is an answer or the deadline has passed; every try is an operation."""
        while True:
            invoked = self._invoke(kind, place)
            try:
                offset = await ask(place)
            except (PeerError, Refused) as error:
                self.recorder.end(invoked, OpType.FAIL, error=str(error))
                self._coordinator = NOBODY
                self._client.refresh_soon()
            else:
                self.recorder.end(invoked, OpType.OK, offset=offset)
                return offset
            if _now_s() >= deadline_s:
                return None
            await asyncio.sleep(RETRY_S)

    async def _end_offset(self, place: Place) -> int:
        leader = self._client.leaders.get(place)
        if leader is None:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        return await list_offset(self._client, leader.broker_id, place, LATEST)

    async def _committed_offset(self, place: Place) -> int:
        asked = OffsetFetchRequest.OffsetFetchRequestTopic(name=place[0], partition_indexes=[place[1]])
        request = OffsetFetchRequest(group_id=self._plan.process, topics=[asked])
        answer = await self._client.ask(await self._find_coordinator(), request, OFFSET_FETCH_VERSION)
        told = _partition_of(answer)
        code = answer.error_code or told.error_code
        if code != ErrorCode.NONE:
            raise Refused(code)
        offset: int = max(-1, told.committed_offset)
        return offset

    async def _find_coordinator(self) -> int:
        """Return the broker that coordinates the group; raises PeerError or Refused."""
        if self._coordinator == NOBODY:
            known = self._client.broker_ids
            if not known:
                raise PeerError("no broker is known")
            request = FindCoordinatorRequest(key=self._plan.process, key_type=0)
            broker_id = known[self.recorder.next_index % len(known)]
            answer = await self._client.ask(broker_id, request, FIND_COORDINATOR_VERSION)
            if answer.error_code != ErrorCode.NONE:
                raise Refused(answer.error_code)
            self._coordinator = answer.node_id
        return self._coordinator

    def _invoke(self, kind: OpKind, place: Place, offset: int = -1) -> Operation:
        group = "" if kind is OpKind.END_OFFSET else self._plan.process
        return self.recorder.invoke(kind, topic=place[0], partition=place[1], offset=offset, group=group)


def _partition_of(answer: Message) -> Message:
    if not answer.topics:
        raise Refused(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
    return answer.topics[0].partitions[0]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
