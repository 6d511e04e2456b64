"""Limits brokers in containers: by the engine; for open files, by a process of the container's own user."""

import asyncio
import contextlib
import sys

from harness.cluster.containers import guard, plans
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.unlimit import ALL_FILES, SERVER, in_python, lift
from harness.cluster.layout import ClusterLayout, broker_process, resource_name
from harness.cluster.limits import descriptors, pressure
from harness.cluster.limits.resources import Resource, Usage
from harness.cluster.supervised_driver import SupervisedDriver
from harness.cluster.supervision.supervision import LAST_STAGE
from harness.errors import ClusterError
from harness.store.folder import RunFolder

_BEYOND = 64 * plans.MIB
"""How much more memory than is left to take."""
_TRIES = 32
"""How often to try a memory limit, each time one MiB higher, until the kernel can enforce it."""


class ContainerLimits(SupervisedDriver):
    """Implements CanLimit. A child of the supervisor lifts each limit at the end."""

    async def limit(self, broker_id: int, resource: Resource, amount: float, *, at_most_s: float) -> None:
        """Limit the container, or in open files the process in it."""
        layout = self._layout_with(broker_id)
        await self.lift(broker_id, resource)
        before = (await self.usage(broker_id, resource)).limit or _at_first(layout, resource)
        container, name = resource_name(self._root, broker_process(broker_id)), _lifter(broker_id, resource)
        what = [container, resource, str(before), str(at_most_s)]
        argv = [sys.executable, "-m", guard.__name__, guard.LIFT, *what]
        log = RunFolder(self._root).cluster / f"{name}.log"
        await self._supervision.spawn(name, argv, log, LAST_STAGE, guard.GRACE_S)
        await asyncio.to_thread(_limit, container, resource, amount)

    async def lift(self, broker_id: int, resource: Resource) -> None:
        """Restore the earlier limit; no-op if it was restored already."""
        layout = self._layout_with(broker_id)
        ended_well = await self._supervision.end_child(_lifter(broker_id, resource), guard.GRACE_S)
        if resource is not Resource.FILES or not ended_well:  # a limit may have come after the watchdog's end
            container = resource_name(self._root, broker_process(broker_id))
            await asyncio.to_thread(_lift, container, resource, _at_first(layout, resource))

    async def usage(self, broker_id: int, resource: Resource) -> Usage:
        """Return the kernel's counters of the limit."""
        self._layout_with(broker_id)
        return await asyncio.to_thread(_usage, resource_name(self._root, broker_process(broker_id)), resource)


def _limit(container: str, resource: Resource, amount: float) -> None:
    with Engine.connect() as engine:
        match resource:
            case Resource.CPU:
                engine.limit_cpus(container, amount)
            case Resource.MEMORY:
                _limit_memory(engine, container, round(amount))
                size = str(round(amount) + _BEYOND)
                with contextlib.suppress(ClusterError):  # the kernel may kill the engine's own starter
                    engine.run_inside(container, in_python(pressure.__name__, SERVER, size))
            case Resource.FILES:
                spare = str(round(amount))
                engine.run_inside(container, in_python(descriptors.__name__, SERVER, "--spare", spare))


def _limit_memory(engine: Engine, container: str, spare: int) -> None:
    """Leave a container this much memory more than it uses, or the least above that which the kernel allows."""
    least = engine.memory_used(container) + spare
    for more in range(_TRIES):
        try:
            engine.limit_memory(container, least + more * plans.MIB)
        except ClusterError:
            if more == _TRIES - 1:
                raise
        else:
            return


def _at_first(layout: ClusterLayout, resource: Resource) -> float:
    """Return a broker's limits at its start."""
    limits = plans.broker_limits(layout)
    amounts = {Resource.CPU: limits.cpus, Resource.MEMORY: limits.memory_bytes, Resource.FILES: ALL_FILES}
    return amounts[resource]


def _lift(container: str, resource: Resource, before: float) -> None:
    with Engine.connect() as engine:
        lift(engine, container, resource, before)


def _usage(container: str, resource: Resource) -> Usage:
    with Engine.connect() as engine:
        state = engine.state(container)
        if state is None:
            return Usage(limit=None)
        match resource:
            case Resource.CPU:
                return Usage(limit=engine.cpus(container), hits=engine.times_throttled(container))
            case Resource.MEMORY:
                return Usage(limit=engine.memory_limit(container), hits=int(state.out_of_memory))
            case Resource.FILES:
                if not state.runs:
                    return Usage(limit=None)
                printed = engine.run_inside(container, in_python(descriptors.__name__, SERVER))
                return Usage(limit=int(printed))


def _lifter(broker_id: int, resource: Resource) -> str:
    """Return the name of the child that lifts a limit."""
    return f"limit-{resource}-{broker_id}"
