"""Injects a fault of your own on an existing cluster by three commands of the cluster file, named by `fault`.

`inject`, `confirm` and `heal` are carried out for each target. `heal` is carried out also when the harness dies.

Confirmed by: your command `confirm`, which fails until the effect is there.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanRunCommands
from harness.contracts.faults import Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.parameters import Strict
from harness.contracts.restoring import of_all
from harness.system.waiting import until

LOOK_EVERY_S = 0.5


class Parameters(Strict):
    """What the scenario may say about a fault of its own."""

    fault: Annotated[str, Field(min_length=1, description="Its name in `faults` of the cluster file")]
    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the command `confirm` to succeed")
    ] = 30.0


class Custom(Fault):
    """Carries out the commands of one fault."""

    name: ClassVar[str] = "custom"
    requires: ClassVar[tuple[str, ...]] = ("commands",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Carry out `inject`, on one target after the other."""
        for broker in injection.targets:
            await _of(context).inject_command(injection.parameters["fault"], broker)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Carry out `confirm` until it succeeds for each target."""
        name = injection.parameters["fault"]

        async def seen() -> bool:
            for broker in injection.targets:
                await _of(context).confirm_command(name, broker)
            return True

        timeout_s = injection.parameters["confirm_timeout_s"]
        effect = until(seen, bool, what=f"effect of {name}", timeout_s=timeout_s, every_s=LOOK_EVERY_S)
        return await confirmed_once(effect, f"the command that confirms {name} succeeds")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Carry out `heal` for each target on which it is in force."""
        name = injection.parameters["fault"]
        await of_all(_of(context).heal_command(name, broker) for broker in injection.targets)


def _of(context: FaultContext) -> CanRunCommands:
    assert isinstance(context.driver, CanRunCommands)
    return context.driver


PLUGIN: type[Fault] = Custom
