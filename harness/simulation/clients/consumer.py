"""A consumer: reads every partition, commits what it read; in the end reads to the end and its commits back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import LATEST
from harness.broker.wire.transport import PeerError
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.fetching import RETRY_S, Fetching, list_offset
from harness.simulation.clients.metadata import ClusterClient, Place
from harness.simulation.clients.offsets import GroupOffsets
from harness.simulation.clients.outcomes import Refused
from harness.simulation.transport import MemoryTransport
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder

POLL_S = 0.25
"""How long one poll collects records."""
SETTLE_S = 0.5
"""The end has settled when it stays where it is for this long."""
LIVE, AGAIN = "assign", "reread"


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
        self._offsets = GroupOffsets(plan.process, self._client, recorder)

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
            await self._ask(OpKind.FETCH_COMMITTED, place, self._offsets.committed, deadline_s)
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
            self._committing = asyncio.ensure_future(self._offsets.commit(self._offsets.invoke_commit(moved)))

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
                self._offsets.forget_coordinator()
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

    def _invoke(self, kind: OpKind, place: Place) -> Operation:
        group = self._plan.process if kind is OpKind.FETCH_COMMITTED else ""
        return self.recorder.invoke(kind, topic=place[0], partition=place[1], group=group)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
