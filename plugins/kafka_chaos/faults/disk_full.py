"""Fills a broker's disk. Heals by freeing the space and restarting the broker.

Each data directory is a file system of 128 MiB. Needs root on `process`.

Confirmed by: no space left on the disk.
"""

from typing import Any, ClassVar

from harness.cluster.capabilities import CanFillDisk
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.restoring import restart_unless_started
from harness.system.waiting import until

SEE_TIMEOUT_S = 30.0


class DiskFull(Fault):
    """Fills disks; the driver itself frees the space after the fault's duration."""

    name: ClassVar[str] = "disk-full"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.DISKS, Disturbance.LEADERSHIP})
    requires: ClassVar[tuple[str, ...]] = ("disk-space", "kill")

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, and how often each broker was started."""
        return {"at_most_s": duration_s, "starts": (await context.driver.status()).starts(brokers)}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Fill the disks."""
        assert isinstance(context.driver, CanFillDisk)
        for broker in injection.targets:
            await context.driver.fill_disk(broker, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that no disk has space left."""
        driver = context.driver
        assert isinstance(driver, CanFillDisk)

        async def with_space() -> list[int]:
            return [broker for broker in injection.targets if not await driver.disk_is_full(broker)]

        full = until(with_space, lambda seen: not seen, what="every disk full", timeout_s=SEE_TIMEOUT_S)
        return await confirmed_once(full, "nothing more fits on the disk")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Free the space, and restart each broker that met the full disk and was not restarted since."""
        driver = context.driver
        assert isinstance(driver, CanFillDisk)
        for broker in injection.targets:
            await driver.free_disk(broker)
        await restart_unless_started(context, injection)


PLUGIN: type[Fault] = DiskFull
