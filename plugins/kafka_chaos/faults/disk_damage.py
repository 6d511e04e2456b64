"""Kills a broker and damages its disk. Heals by starting it with what is left, after the controller has missed it.

Damages the `log` that the scenario names, otherwise the target's partition, otherwise the largest log. A `bit-flip`
also removes the recovery points, because brokers do not read closed segments again otherwise. See `power-loss` for
`protect_committed`.

Confirmed by: files before and after, and what the broker logs about each log that it opens.
"""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, model_validator

from harness.cluster.capabilities import CanDamageDisk
from harness.cluster.disks.damage import Checkpoint, Damage, What, logs_in
from harness.cluster.driver import CanKill
from harness.contracts.data_loss import LosesData, missed
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    MayLoseData,
    confirmed,
    mismatch,
    not_running,
)
from harness.contracts.restoring import of_all, start_stopped
from harness.contracts.targets import ROLES_OF_A_PARTITION, Target

CHECKPOINT = Checkpoint.RECOVERY_POINTS
TAIL_BYTES = 1
NAMED = 4
"""Up to this many files are named; beyond it, only their number."""


class Parameters(MayLoseData):
    """Parameters of the damage."""

    what: Annotated[
        What,
        Field(
            strict=False,
            description="indexes of a log, a checkpoint, a log or the whole disk are gone, a bit-flip in a closed"
            " segment, or the tail of a log is gone",
        ),
    ] = What.TAIL
    log: Annotated[
        str, Field(description="The log, for example orders-0; empty: the partition of the target, or the largest log")
    ] = ""
    checkpoint: Annotated[Checkpoint, Field(strict=False, description="The checkpoint to remove")] = CHECKPOINT
    tail_bytes: Annotated[int, Field(ge=1, le=1_000_000_000, description="Bytes to remove from the tail of a log")] = (
        TAIL_BYTES
    )

    @model_validator(mode="after")
    def _belong(self) -> Self:
        if self.checkpoint != CHECKPOINT and self.what is not What.CHECKPOINT:
            raise ValueError(f"a checkpoint takes what: {What.CHECKPOINT}")
        if self.tail_bytes != TAIL_BYTES and self.what is not What.TAIL:
            raise ValueError(f"a tail_bytes takes what: {What.TAIL}")
        return self


class DiskDamage(LosesData):
    """Kills brokers, damages their disks, waits until the controller notices, and starts them."""

    name: ClassVar[str] = "disk-damage"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset(
        {Disturbance.DISKS, Disturbance.LEADERSHIP, Disturbance.FILES}
    )
    requires: ClassVar[tuple[str, ...]] = ("disk-files", "kill")
    witnesses: ClassVar[tuple[str, ...]] = ("recovery",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the log to damage too."""
        assert isinstance(parameters, Parameters)
        injection = await super().prepare(context, target, brokers, parameters, duration_s=duration_s)
        of_target = f"{target.topic}-{target.partition}" if target.role in ROLES_OF_A_PARTITION else ""
        return injection.with_state(log=parameters.log or of_target)

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Kill all at once, change their disks, wait until the controller notices, and start them."""
        driver, running = context.driver, injection.state["running"]
        assert isinstance(driver, CanDamageDisk)
        assert isinstance(driver, CanKill)
        await of_all(map(driver.kill_broker, running))
        seen = {str(broker): await _damaged(context, injection, broker) for broker in running}
        if running:
            await missed(context, injection)
        await start_stopped(context, injection.targets)
        return injection.with_state(seen=seen)

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Compare the disks before and after, and read the brokers' log lines about the logs that they opened."""
        if idle := not_running(injection, "damage"):
            return idle
        seen = [await _outcome(context, broker, injection.state["seen"][str(broker)]) for broker in injection.targets]
        return next((effect for effect in seen if isinstance(effect, Effect)), confirmed("; ".join(map(str, seen))))


async def _damaged(context: FaultContext, injection: Injection, broker: int) -> dict[str, Any]:
    """Damage one disk; return the changed files, the logs that are left and gone, and where the damaged log ends."""
    driver, own = context.driver, injection.parameters
    assert isinstance(driver, CanDamageDisk)
    before = await driver.files(broker)
    damage = Damage(
        what=What(own["what"]),
        log=injection.state["log"],
        checkpoint=Checkpoint(own["checkpoint"]),
        tail_bytes=own["tail_bytes"],
    )
    await driver.damage_disk(broker, damage)
    after = await driver.files(broker)
    changed = {path: f"{was}, now {after.get(path, 'gone')}" for path, was in before.items() if after.get(path) != was}
    return {
        "changed": changed,
        "left": sorted(logs_in(after)),
        "gone": sorted(logs_in(before) - logs_in(after)),
        "position": await context.state_changes.end_of(broker),
    }


async def _outcome(context: FaultContext, broker: int, seen: dict[str, Any]) -> Effect | str:
    """Return the state of a disk, and of its logs as the broker reported when it opened them, as text."""
    if not seen["changed"]:
        return mismatch(f"nothing on broker {broker}'s disk has changed")
    lines, _ = await context.state_changes.after(broker, seen["position"], "recovery")
    ends = {f"{line['topic']}-{line['partition']}": line["log_end_offset"] for line in lines}
    if silent := sorted(set(seen["left"]) - ends.keys()):
        return mismatch(f"broker {broker} logged no recovery of {', '.join(silent)}")
    if back := sorted(set(seen["gone"]) & ends.keys()):
        return mismatch(f"broker {broker} found {', '.join(back)}, which was gone")
    named = [f"{path}: {how}" for path, how in seen["changed"].items()]
    files = "; ".join(named) if len(named) <= NAMED else f"{len(named)} files differ from before"
    hit = sorted({path.rpartition("/")[0] for path in seen["changed"]} & ends.keys()) or sorted(ends)[:NAMED]
    opened = ", ".join(f"{log} up to offset {ends[log]}" for log in hit) or "no log"
    return f"broker {broker}: {files}; it opened {opened}"


PLUGIN: type[Fault] = DiskDamage
