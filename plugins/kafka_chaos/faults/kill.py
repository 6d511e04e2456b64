"""Kills a broker with SIGKILL; its session times out unless `end_session`. Heals by starting it again.

A killed member is missed when its group session times out. A killed producer loses what it had not sent.

Confirmed by: the process and its registration are gone, or the process alone where no majority of controllers is left.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.driver import CanKill, ClusterStatus
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    confirmed_once,
    mismatch,
    not_running,
)
from harness.contracts.members import CLIENT, member_before
from harness.contracts.parameters import OfZookeeper, Strict
from harness.contracts.restoring import start_stopped
from harness.contracts.targets import CLIENTS, EVERY_ROLE, Role, Target
from harness.errors import DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until


class Parameters(Strict):
    """Parameters of a kill."""

    end_session: Annotated[
        bool,
        OfZookeeper(),
        Field(description="End its ZooKeeper session at once, which a dead broker leaves to time out"),
    ] = False
    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the end of the broker's registration")
    ] = 30.0


class Kill(Fault):
    """Kills brokers, waits until the controllers have noticed, and starts them again."""

    name: ClassVar[str] = "kill"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("kill",)
    controllers: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (*EVERY_ROLE, Role.MEMBER, Role.PRODUCER)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the session time-out, which the healing waits for; a client has none."""
        assert isinstance(parameters, Parameters)
        return 0.0 if target.role in CLIENTS or parameters.end_session else session_timeout_s

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record which targets run."""
        if target.role not in CLIENTS:
            return await super().prepare(context, target, brokers, parameters, duration_s=duration_s)
        state = await member_before(context.members, target, duration_s)
        return Injection(
            fault=self.name, targets=(), parameters=parameters.model_dump(mode="json"), state={**state, "running": []}
        )

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, and their sessions."""
        status = await context.driver.status()
        registered = await context.view.registrations()
        return {
            "running": status.alive(brokers),
            "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
            "log_ends": {str(broker): await context.state_changes.end_of(broker) for broker in brokers},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Kill those that run."""
        if context.members is not None and CLIENT in injection.state:
            await context.members.kill(injection.state[CLIENT])
            return injection
        assert isinstance(context.driver, CanKill)
        for broker in injection.state["running"]:
            await context.driver.kill_broker(broker)
        if injection.parameters["end_session"]:
            for session in injection.state["sessions"].values():
                await context.zookeeper.expire(session)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until each process is gone, and its registration too, or a new process has logged its start."""
        if CLIENT in injection.state:
            return await self._effect_on_client(context, injection)
        if idle := not_running(injection, "kill"):
            return idle
        seen = [await self._effect_on(context, injection, broker) for broker in injection.targets]
        return max(seen, key=lambda effect: effect.verdict)

    async def _effect_on_client(self, context: FaultContext, injection: Injection) -> Effect:
        members, process = context.members, injection.state[CLIENT]
        assert members is not None
        gone = until(
            lambda: members.state(process),
            lambda state: state == ProcessState.STOPPED,
            what=f"end of client {process}",
            timeout_s=injection.parameters["confirm_timeout_s"],
        )
        return await confirmed_once(gone, f"client {process} is gone")

    async def _effect_on(self, context: FaultContext, injection: Injection, broker: int) -> Effect:
        old_session = injection.state["sessions"].get(str(broker), "")
        log_end = injection.state["log_ends"][str(broker)]
        only_controller = any(each.broker_id == broker for each in (await context.driver.status()).quorum)
        restarted, ended = "a new process has started", "process gone"
        leaderless = "process gone, and without a majority of its controllers no registration ends"
        registration = f"registration of session {old_session}" if old_session else "registration of the life before"
        unregistered = f"process gone, {registration} gone"

        async def look() -> str:
            cluster = await context.driver.status()
            status = cluster.broker(broker)
            started, _ = await context.state_changes.after(broker, log_end, "broker_start")
            if started:
                return restarted
            if status.state != ProcessState.STOPPED:
                return f"process is {status.state}"
            if only_controller:
                return ended
            if _lacks_majority(cluster):
                return leaderless
            registration = (await context.view.registrations()).get(broker)
            if registration is not None and registration.session == old_session:
                return f"process gone, still registered by session {old_session}"
            return unregistered

        try:
            timeout_s = injection.parameters["confirm_timeout_s"]
            gone = {restarted, ended, unregistered, leaderless}
            seen = await until(look, gone.__contains__, what=f"end of broker {broker}", timeout_s=timeout_s)
        except DeadlineError as error:
            return mismatch(str(error))
        return confirmed(seen)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start what does not run."""
        process = injection.state.get(CLIENT)
        if (
            context.members is not None
            and process is not None
            and await context.members.state(process) == ProcessState.STOPPED
        ):
            await context.members.start_again(process)
        await start_stopped(context, injection.targets)


def _lacks_majority(cluster: ClusterStatus) -> bool:
    """Return whether so many controllers of a quorum stand still that it has no leader."""
    servers = (*cluster.brokers, *cluster.quorum)
    still = [each for each in servers if each.broker_id in cluster.controllers and each.state != ProcessState.RUNNING]
    return bool(still) and 2 * len(still) >= len(cluster.controllers)


PLUGIN: type[Fault] = Kill
