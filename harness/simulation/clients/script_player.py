"""A client that plays recorded scripts of calls to a broker, and compares the answers."""

import asyncio
from collections.abc import Iterable

from harness.client_rules.scripts.asking import Asking
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryTransport
from harness.store.recording import Recorder


class SimulatedScriptPlayer:
    """One process."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        host, port = next(iter(bootstrap))
        self._asking = Asking(plan, recorder)
        self._target = Target(transport, host, port, wall_ms)

    async def run(self, stop: asyncio.Event) -> None:
        """Play one script after the other until `stop` is set."""
        await self._asking.run(self._target, stop.is_set)
