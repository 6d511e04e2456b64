"""Makes a broker's disk fail with I/O errors, or makes it read-only. Heals by ending that and restarting the broker.

Needs libfiu for the built-in broker on `process`, strace for Kafka on `process`, strace and root in containers. Kafka
3.9.1 with one data directory exits by itself.

Confirmed by: the replicas that the broker took offline, with the error.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanFailDisk
from harness.cluster.disks.disk_errors import DiskError
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.parameters import Strict
from harness.contracts.restoring import restart_unless_started
from harness.errors import DeadlineError
from harness.system.waiting import until

SEE_TIMEOUT_S = 30.0
"""In that time every broker writes to its disk, if only a checkpoint."""


class Parameters(Strict):
    """Parameters of the error."""

    error: Annotated[DiskError, Field(strict=False, description="The error: io or read-only")] = DiskError.IO


class FailingDisk(Fault):
    """Makes disks fail; the driver itself ends that after the fault's duration."""

    name: ClassVar[str] = "disk-error"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.DISKS, Disturbance.LEADERSHIP})
    requires: ClassVar[tuple[str, ...]] = ("disk-errors", "kill")
    witnesses: ClassVar[tuple[str, ...]] = ("log_dir_failure",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, how often each broker was started, and where its log ends."""
        starts = (await context.driver.status()).starts(brokers)
        ends = {str(broker): await context.state_changes.end_of(broker) for broker in brokers}
        return {"at_most_s": duration_s, "starts": starts, "ends": ends}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Make the disks fail."""
        assert isinstance(context.driver, CanFailDisk)
        error = DiskError(injection.parameters["error"])
        for broker in injection.targets:
            await context.driver.fail_disk(broker, error, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that every broker logs the failure of its disk, with the error."""
        try:
            failures = [await _failure(context, injection, broker) for broker in injection.targets]
        except DeadlineError as error:
            if injection.state["at_most_s"] < SEE_TIMEOUT_S:
                return inconclusive(f"{error}; it may have written nothing meanwhile")
            return mismatch(str(error))
        return confirmed("; ".join(failures))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Repair the disks, and restart each broker that met an error and was not restarted since."""
        assert isinstance(context.driver, CanFailDisk)
        for broker in injection.targets:
            await context.driver.mend_disk(broker)
        await restart_unless_started(context, injection)


async def _failure(context: FaultContext, injection: Injection, broker: int) -> str:
    """Wait for a broker to log an error, and return it as text; raises DeadlineError."""

    async def lines() -> list[dict[str, Any]]:
        return (await context.state_changes.after(broker, injection.state["ends"][str(broker)], "log_dir_failure"))[0]

    timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
    (line, *_) = await until(lines, bool, what=f"an error of broker {broker}'s disk", timeout_s=timeout_s)
    return f"broker {broker} took {line['replicas']} replicas offline: {line['error']}"


PLUGIN: type[Fault] = FailingDisk
