"""Kills a broker and removes or tears what its disk had not synced. Heals by starting it again.

With `protect_committed` it begins when every record has another complete replica, and the broker starts when the ISR is
without it, so that a loss is a violation. Of Kafka, everything behind the last recovery point is lost, which is an
upper bound; with `traced` also what is before it and was never synced.

Confirmed by: the process and its registration are gone, and what is left on the disk.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanCutPower
from harness.contracts.data_loss import LosesData, missed
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    MayLoseData,
    confirmed_once,
    not_running,
)


class Parameters(MayLoseData):
    """Parameters of a power loss."""

    torn: Annotated[
        bool, Field(description="A part of the unsynced bytes may be left, with a garbled end; drawn from the seed")
    ] = True
    traced: Annotated[
        bool,
        Field(
            description="Of Kafka on `process`, segments and checkpoints that it never synced are lost too; strace"
            " records its syncs from its start, so it cannot have a slow-sync or disk-error"
        ),
    ] = False


class PowerLoss(LosesData):
    """Cuts brokers' power, waits until ZooKeeper notices, and starts them with what is left on their disks."""

    name: ClassVar[str] = "power-loss"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("power",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Cut the power of all at once."""
        driver = context.driver
        assert isinstance(driver, CanCutPower)
        before = {str(broker): await driver.bytes_on_disk(broker) for broker in injection.state["running"]}
        for broker in injection.state["running"]:
            await driver.cut_power(broker, torn=injection.parameters["torn"])
        return injection.with_state(bytes=before)

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until every process is gone, and its registration too; report what the disks have lost."""
        driver = context.driver
        assert isinstance(driver, CanCutPower)
        if idle := not_running(injection, "cut off"):
            return idle
        before = injection.state["bytes"]
        lost = {broker: before[str(broker)] - await driver.bytes_on_disk(broker) for broker in injection.targets}
        details = [f"broker {broker} is gone, and {size} unsynced bytes" for broker, size in lost.items()]
        return await confirmed_once(missed(context, injection), "; ".join(details))


PLUGIN: type[Fault] = PowerLoss
