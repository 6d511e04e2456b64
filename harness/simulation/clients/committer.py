"""A committer: commits rising positions, and after each restart goes on from what it reads back."""

import asyncio
from collections.abc import Iterable

from harness.broker.wire.transport import PeerError
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.fetching import RETRY_S
from harness.simulation.clients.metadata import ClusterClient, Place
from harness.simulation.clients.offsets import GroupOffsets
from harness.simulation.clients.outcomes import Refused
from harness.simulation.transport import MemoryTransport
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder


class SimulatedCommitter:
    """One committing process, in a group of its own; it reads no records."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self._plan = plan
        self._recorder = recorder
        self._transport = transport
        self._bootstrap = tuple(bootstrap)
        self._positions: dict[Place, int] = {
            (topic, p): 0 for topic, count in sorted(plan.topics.items()) for p in range(count)
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Commit and restart until `stop` is set; then read everything back."""
        while True:
            client = self._connected()
            offsets = GroupOffsets(self._plan.process, client, self._recorder)
            await self._resume(offsets, _now_s() + self._plan.parameters["final_read_timeout_s"])
            if stop.is_set():
                client.close()
                return
            await self._commit(offsets, stop)
            client.close()

    def _connected(self) -> ClusterClient:
        return ClusterClient(
            self._transport,
            self._bootstrap,
            self._plan.topics,
            client_id=self._plan.process,
            timeout_s=max(1.0, self._plan.parameters["request_timeout_ms"] / 1000),
            changed=lambda: None,
        )

    async def _resume(self, offsets: GroupOffsets, deadline_s: float) -> None:
        """Read every position back, and go on from there; every try is an operation."""
        for place in self._positions:
            while _now_s() < deadline_s:
                invoked = self._recorder.invoke(
                    OpKind.FETCH_COMMITTED, topic=place[0], partition=place[1], group=self._plan.process
                )
                try:
                    committed = await offsets.committed(place)
                except (PeerError, Refused) as error:
                    self._recorder.end(invoked, OpType.FAIL, error=str(error))
                    offsets.forget_coordinator()
                    await asyncio.sleep(RETRY_S)
                else:
                    self._recorder.end(invoked, OpType.OK, offset=committed)
                    self._positions[place] = max(self._positions[place], committed)
                    break

    async def _commit(self, offsets: GroupOffsets, stop: asyncio.Event) -> None:
        """Commit one step further at every interval, until it is time to restart."""
        restart_s = _now_s() + self._plan.parameters["restart_interval_s"]
        while not stop.is_set() and _now_s() < restart_s:
            self._positions = {place: position + 1 for place, position in self._positions.items()}
            await offsets.commit(offsets.invoke_commit(self._positions))
            await asyncio.sleep(self._plan.parameters["commit_interval_s"])


def _now_s() -> float:
    return asyncio.get_running_loop().time()
