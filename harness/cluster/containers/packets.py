"""Drops packets of brokers in containers."""

import asyncio
import sys
from collections.abc import Callable
from typing import TypeVar

from harness.cluster.capabilities import Direction
from harness.cluster.containers import filters, guard
from harness.cluster.layout import broker_process, resource_name
from harness.cluster.supervised_driver import SupervisedDriver
from harness.cluster.supervision.supervision import LAST_STAGE
from harness.errors import ClusterError
from harness.store.folder import RunFolder

T = TypeVar("T")


class ContainerPackets(SupervisedDriver):
    """Implements CanDropPackets. A child of the supervisor removes the rule at the end."""

    async def drop_packets(self, broker_id: int, direction: Direction, *, at_most_s: float) -> None:
        """Drop packets of the running container; a restarted one drops nothing."""
        await self.pass_packets(broker_id)
        container, name = resource_name(self._root, broker_process(broker_id)), _watchdog(broker_id)
        argv = [sys.executable, "-m", guard.__name__, guard.UNFILTER, container, str(at_most_s)]
        log = RunFolder(self._root).cluster / f"{name}.log"
        await self._supervision.spawn(name, argv, log, LAST_STAGE, guard.GRACE_S)
        await self._in_its_network(broker_id, lambda pid: filters.drop(pid, direction))

    async def pass_packets(self, broker_id: int) -> None:
        """Stop dropping; no-op if nothing is dropped, or the container does not run."""
        await self._supervision.end_child(_watchdog(broker_id), guard.GRACE_S)
        if await self._pid(broker_id) is not None:
            await self._in_its_network(broker_id, filters.let_pass)

    async def dropped_packets(self, broker_id: int) -> int | None:
        """Return the number of packets dropped since `drop_packets`; None if nothing is dropped."""
        return await self._in_its_network(broker_id, filters.dropped)

    async def _in_its_network(self, broker_id: int, act: Callable[[int], T]) -> T:
        pid = await self._pid(broker_id)
        if pid is None:
            raise ClusterError(f"broker {broker_id} does not run")
        return await asyncio.to_thread(act, pid)

    async def _pid(self, broker_id: int) -> int | None:
        servers = await self._servers(self._layout_with(broker_id))
        return servers[broker_process(broker_id)].pid


def _watchdog(broker_id: int) -> str:
    """Return the name of the child that lets a broker's packets pass."""
    return f"packets-{broker_id}"
