"""Wall clocks of brokers in containers; unlike for its children, the supervisor must be given their start times.

The container has a read-only folder with libfaketime and the setting of each clock.
"""

import time

from harness.cluster.containers.servers import started_ns
from harness.cluster.layout import ClusterLayout, broker_process
from harness.cluster.supervised_driver import SupervisedDriver


class ContainerClocks(SupervisedDriver):
    """Implements CanSetClock, if the cluster was started for that."""

    async def set_clock(self, broker_id: int, *, step_s: float, rate: float, at_most_s: float) -> None:
        """Set a broker's wall clock; the supervisor resets it after `at_most_s`."""
        layout = self._layout_with_clocks(broker_id)
        await self._supervision.call(
            "set_clock",
            name=broker_process(broker_id),
            step_s=step_s,
            rate=rate,
            at_most_s=at_most_s,
            started_ns=await self._started_ns(layout, broker_id),
        )

    async def reset_clock(self, broker_id: int) -> None:
        """Set a broker's wall clock to the machine's."""
        self._layout_with_clocks(broker_id)
        await self._supervision.call("reset_clock", name=broker_process(broker_id))

    async def _clock_started(self, layout: ClusterLayout, broker_id: int) -> None:
        """Give the supervisor the start of another process, from which its clock's setting counts."""
        if layout.clocks:
            began_ns = await self._started_ns(layout, broker_id)
            await self._supervision.call("clock_started", name=broker_process(broker_id), started_ns=began_ns)

    async def _started_ns(self, layout: ClusterLayout, broker_id: int) -> int:
        """Return when a broker's process was started; now, if it does not run."""
        pid = (await self._servers(layout))[broker_process(broker_id)].pid
        return time.monotonic_ns() if pid is None else started_ns(pid)
