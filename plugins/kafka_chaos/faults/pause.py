"""Pauses a process with SIGSTOP, with all its connections and locks. Heals by SIGCONT.

A paused member returns as a zombie after its session; a paused producer then retries what it had in flight; a paused
consumer stops fetching with its connections open.

Confirmed by: the state of the process.
"""

from typing import Any, ClassVar

from pydantic import BaseModel

from harness.cluster.driver import CanPause
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.members import CLIENT, member_before
from harness.contracts.targets import CLIENTS, EVERY_ROLE, Role, Target
from harness.system.process_state import ProcessState
from harness.system.waiting import until

SEE_TIMEOUT_S = 2.0


class Pause(Fault):
    """Pauses brokers for the fault's duration; the driver itself resumes them then."""

    name: ClassVar[str] = "pause"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("pause",)
    controllers: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (*EVERY_ROLE, Role.MEMBER, Role.PRODUCER, Role.CONSUMER)

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the targets and the duration."""
        if target.role not in CLIENTS:
            return await super().prepare(context, target, brokers, parameters, duration_s=duration_s)
        state = await member_before(context.members, target, duration_s)
        return Injection(fault=self.name, targets=(), state=state)

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration."""
        return {"at_most_s": duration_s}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Pause them."""
        if context.members is not None and CLIENT in injection.state:
            await context.members.pause(injection.state[CLIENT], at_most_s=injection.state["at_most_s"])
            return injection
        assert isinstance(context.driver, CanPause)
        for broker in injection.targets:
            await context.driver.pause_broker(broker, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Look at the states of the processes."""

        async def states() -> dict[int | str, ProcessState]:
            if context.members is not None and CLIENT in injection.state:
                return {CLIENT: await context.members.state(injection.state[CLIENT])}
            status = await context.driver.status()
            return {broker: status.broker(broker).state for broker in injection.targets}

        def all_paused(seen: dict[int | str, ProcessState]) -> bool:
            return all(state == ProcessState.PAUSED for state in seen.values())

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        paused = until(states, all_paused, what="every process paused", timeout_s=timeout_s, every_s=0.02)
        return await confirmed_once(paused, "process paused")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Resume them; no-op for those that run or have ended."""
        process = injection.state.get(CLIENT)
        if (
            context.members is not None
            and process is not None
            and await context.members.state(process) == ProcessState.PAUSED
        ):
            await context.members.resume(process)
        assert isinstance(context.driver, CanPause)
        status = await context.driver.status()
        for broker in injection.targets:
            if status.broker(broker).state == ProcessState.PAUSED:
                await context.driver.resume_broker(broker)


PLUGIN: type[Fault] = Pause
