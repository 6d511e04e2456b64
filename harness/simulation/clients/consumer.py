"""A consumer: reads every partition, commits what it read, and in the end reads to the end and reads its commits back.

Positions are validated against the leader's epochs after every change of leader (KIP-320), so a truncation is noticed.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from harness.broker.fetcher_messages import (
    EARLIEST,
    FETCH_VERSION,
    LATEST,
    LIST_OFFSETS_VERSION,
    OFFSET_FOR_LEADER_EPOCH_VERSION,
    Asked,
    list_offsets_request,
    offset_for_leader_epoch_request,
)
from harness.broker.log.batch import iter_batches, parse_records
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from harness.broker.wire.transport import Message, PeerError
from harness.history import Operation, OpKind, OpType, Record
from harness.simulation.clients.metadata import NOBODY, ClusterClient, Place
from harness.simulation.clients.outcomes import commit_outcome, described
from harness.simulation.evidence import Recorder
from harness.simulation.transport import MemoryTransport
from harness.workloads import ClientPlan

CONSUMER = -1
POLL_S = 0.25
"""How long one poll collects records."""
FETCH_WAIT_MS = 500
FETCH_BYTES = 1 << 20
RETRY_S = 0.1
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


class Refused(Exception):
    """A broker answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(described(code))
        self.code = code


@dataclass(slots=True)
class _Position:
    """Where a partition is read next."""

    offset: int = 0
    last_epoch: int = -1
    """Leader epoch of the record before; -1 when none was read."""
    validated_in: int = -1
    """The leader's epoch in which the position was found to be right."""
    buffered: bool = False
    """Whether records wait for the next poll: until then nothing more is fetched."""


class SimulatedConsumer:
    """One consumer process, in a group of its own."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self.recorder = recorder
        self._plan = plan
        self._places = [(topic, p) for topic, count in sorted(plan.topics.items()) for p in range(count)]
        self._mode = LIVE
        self._positions: dict[Place, _Position] = {}
        self._polled: dict[Place, int] = {}
        """Next offset that a poll will hand out."""
        self._committed: dict[Place, int] = {}
        self._buffer: deque[Record] = deque()
        self._coordinator = NOBODY
        self._wake = asyncio.Event()
        self._fetchers: dict[int, asyncio.Task[None]] = {}
        self._committing: asyncio.Task[None] | None = None
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=max(1.0, plan.parameters["request_timeout_ms"] / 1000),
            changed=self._changed,
        )
        self._read_from_the_start()

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
        for task in self._fetchers.values():
            task.cancel()
        self._client.close()

    def _read_from_the_start(self) -> None:
        """Let the next poll give each partition's first records."""
        self._positions = {place: _Position() for place in self._places}
        self._polled = {}
        self._buffer.clear()
        self._wake_fetchers()

    # --- fetching ---

    def _changed(self) -> None:
        for broker_id in self._client.broker_ids:
            if broker_id not in self._fetchers:
                self._fetchers[broker_id] = asyncio.ensure_future(self._fetch_from(broker_id))
        self._wake_fetchers()

    def _wake_fetchers(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    async def _fetch_from(self, broker_id: int) -> None:
        while True:
            wake = self._wake
            led = self._client.led_by(broker_id, self._places)
            wanted = [place for place in led if not self._positions[place].buffered]
            if not wanted:
                await wake.wait()
                continue
            try:
                ready = [place for place in wanted if await self._is_valid(broker_id, place)]
                if ready:
                    await self._fetch(broker_id, ready)
                else:
                    await asyncio.sleep(RETRY_S)
            except (PeerError, Refused):
                self._client.refresh_soon()
                await asyncio.sleep(RETRY_S)

    async def _is_valid(self, broker_id: int, place: Place) -> bool:
        """Whether a position may be read from; after a change of leader the leader's epochs decide."""
        position, leader = self._positions[place], self._client.leaders[place]
        if position.last_epoch < 0 or position.validated_in == leader.leader_epoch:
            return True
        request = offset_for_leader_epoch_request(CONSUMER, [Asked(place, leader.leader_epoch, position.last_epoch)])
        answer = await self._client.ask(broker_id, request, OFFSET_FOR_LEADER_EPOCH_VERSION)
        told = answer.topics[0].partitions[0]
        if told.error_code != ErrorCode.NONE:
            self._client.refresh_soon()
            return False
        position.validated_in = leader.leader_epoch
        if told.end_offset < position.offset:
            position.offset, position.last_epoch = max(told.end_offset, 0), told.leader_epoch
        return True

    async def _fetch(self, broker_id: int, places: list[Place]) -> None:
        asked = {place: self._positions[place] for place in places}
        answer = await self._client.ask(broker_id, self._fetch_request(places), FETCH_VERSION)
        for topic in answer.responses:
            for told in topic.partitions:
                place = (topic.topic, told.partition_index)
                if self._positions[place] is not asked[place]:
                    continue  # it is read from the start again
                if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._reset(broker_id, place)
                elif told.error_code != ErrorCode.NONE:
                    self._client.refresh_soon()
                    await asyncio.sleep(RETRY_S)
                elif told.records:
                    self._take(place, bytes(told.records))

    def _fetch_request(self, places: list[Place]) -> FetchRequest:
        topic_type = FetchRequest.FetchTopic
        return FetchRequest(
            replica_id=CONSUMER,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[
                topic_type(
                    topic=topic,
                    partitions=[
                        topic_type.FetchPartition(
                            partition=partition,
                            current_leader_epoch=self._client.leaders[topic, partition].leader_epoch,
                            fetch_offset=self._positions[topic, partition].offset,
                            partition_max_bytes=FETCH_BYTES,
                        )
                    ],
                )
                for topic, partition in places
            ],
        )

    async def _reset(self, broker_id: int, place: Place) -> None:
        """Read a partition from its start, as its position is none any more."""
        position = self._positions[place]
        position.offset = await self._list_offset(broker_id, place, EARLIEST)
        position.last_epoch = -1

    def _take(self, place: Place, data: bytes) -> None:
        position = self._positions[place]
        topic, partition = place
        for header, batch in iter_batches(data):
            for record in parse_records(batch):
                if record.offset >= position.offset:
                    value, epoch = (record.value or b"").decode(), header.leader_epoch
                    self._buffer.append(
                        Record(topic=topic, partition=partition, offset=record.offset, value=value, leader_epoch=epoch)
                    )
                    position.buffered = True
            position.offset = max(position.offset, header.last_offset + 1)
            position.last_epoch = header.leader_epoch

    # --- operations ---

    async def _poll(self) -> None:
        """Take what there is after a moment."""
        invoked = self.recorder.invoke(self._operation(OpKind.POLL, mode=self._mode))
        await asyncio.sleep(POLL_S)
        records = tuple(self._buffer)
        self._buffer.clear()
        for record in records:
            self._polled[record.topic, record.partition] = record.offset + 1
        for position in self._positions.values():
            position.buffered = False
        if records:
            self._wake_fetchers()
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
        return await self._list_offset(leader.broker_id, place, LATEST)

    async def _list_offset(self, broker_id: int, place: Place, timestamp: int) -> int:
        request = list_offsets_request(CONSUMER, Asked(place, -1, timestamp))
        answer = await self._client.ask(broker_id, request, LIST_OFFSETS_VERSION)
        told = answer.topics[0].partitions[0]
        if told.error_code != ErrorCode.NONE:
            raise Refused(told.error_code)
        offset: int = told.offset
        return offset

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
        return self.recorder.invoke(self._operation(kind, topic=place[0], partition=place[1], offset=offset))

    def _operation(
        self, kind: OpKind, *, topic: str = "", partition: int = -1, offset: int = -1, mode: str = ""
    ) -> Operation:
        return Operation(
            index=-1,
            time_ns=0,
            process=self._plan.process,
            type=OpType.INVOKE,
            kind=kind,
            topic=topic,
            partition=partition,
            offset=offset,
            group="" if kind in (OpKind.POLL, OpKind.END_OFFSET) else self._plan.process,
            mode=mode,
        )


def _partition_of(answer: Message) -> Message:
    if not answer.topics:
        raise Refused(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
    return answer.topics[0].partitions[0]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
