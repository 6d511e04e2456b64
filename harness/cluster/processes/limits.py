"""How are brokers that are processes of this machine limited? By control groups, and in open files by the kernel."""

import sys

from harness.cluster.layout import broker_process
from harness.cluster.limits import control_groups, descriptors, limiter
from harness.cluster.limits.control_groups import group_of, groups_of
from harness.cluster.limits.resources import Resource, Usage
from harness.cluster.supervised_driver import SupervisedDriver
from harness.cluster.supervision.supervision import BROKER_STAGE
from harness.errors import ClusterError

GRACE_S = 5.0


class ProcessLimits(SupervisedDriver):
    """Implements CanLimit. A child of the supervisor has each limit in force, and lifts it in the end."""

    async def limit(self, broker_id: int, resource: Resource, amount: float, *, at_most_s: float) -> None:
        """Limit the process that runs; one that is started later is not."""
        layout = self._layout_with(broker_id)
        await self.lift(broker_id, resource)
        server = (await self._servers(layout))[broker_process(broker_id)]
        if server.pid is None:
            raise ClusterError(f"broker {broker_id} does not run")
        name = _limiter(broker_id, resource)
        what = [str(server.pid), resource, str(amount), str(at_most_s)]
        argv = [sys.executable, "-m", limiter.__name__, str(self._root.resolve()), broker_process(broker_id), *what]
        await self._supervision.spawn(name, argv, layout.folder / f"{name}.log", BROKER_STAGE, GRACE_S)

    async def lift(self, broker_id: int, resource: Resource) -> None:
        """Let it have what it wants; nothing happens when it may."""
        layout = self._layout_with(broker_id)
        orderly = await self._supervision.end_child(_limiter(broker_id, resource))
        server = (await self._servers(layout)).get(broker_process(broker_id))
        try:
            if resource in control_groups.RESOURCES:
                group_of(self._root, broker_process(broker_id), resource).remove()
            elif not orderly and server is not None and server.pid is not None:
                descriptors.lift(server.pid)
        except OSError as error:
            raise ClusterError(f"the limit of broker {broker_id}'s {resource} could not be lifted: {error}") from error

    async def usage(self, broker_id: int, resource: Resource) -> Usage:
        """Return the kernel's counters of the limit."""
        server = (await self._servers(self._layout_with(broker_id)))[broker_process(broker_id)]
        try:
            if resource in control_groups.RESOURCES:
                return group_of(self._root, broker_process(broker_id), resource).usage()
            return Usage(limit=None if server.pid is None else descriptors.limit_of(server.pid))
        except ProcessLookupError:
            return Usage(limit=None)
        except OSError as error:
            raise ClusterError(f"the limit of broker {broker_id}'s {resource} could not be read: {error}") from error

    async def stop(self) -> None:
        """Stop all processes, and remove what killed limiters have left."""
        await super().stop()
        try:
            for group in groups_of(self._root):
                group.remove()
        except OSError as error:
            raise ClusterError(f"a control group could not be removed: {error}") from error

    async def residue(self) -> list[str]:
        """Return a sentence for whatever is left, control groups included."""
        left = [f"the control group {group.folder} still exists" for group in groups_of(self._root)]
        return [*await super().residue(), *left]


def _limiter(broker_id: int, resource: Resource) -> str:
    """Return the name of the child that limits a broker."""
    return f"limit-{resource}-{broker_id}"
