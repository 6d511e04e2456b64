"""Faults that remove records spare committed ones by waiting until other brokers have them too."""

from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel

from harness.contracts.faults import Fault, FaultContext, Injection, MayLoseData
from harness.contracts.restoring import start_stopped, stopped_of
from harness.contracts.targets import Target
from harness.system.process_state import ProcessState
from harness.system.waiting import until


class LosesData(Fault):
    """Base of faults that kill brokers and remove records from their disks.

    Healing starts what does not run, once its absence was noticed.
    """

    Parameters: ClassVar[type[BaseModel]] = MayLoseData

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the session time-out, which it waits for."""
        return session_timeout_s

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """If committed records are spared, wait until other brokers have all of them."""
        assert isinstance(parameters, MayLoseData)
        if parameters.protect_committed:
            await replicated_on_others(context, brokers, parameters.whole_timeout_s)
        return await super().prepare(context, target, brokers, parameters, duration_s=duration_s)

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, and their sessions."""
        return await lives(context, brokers)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start the brokers that do not run; if committed records are spared, only those whose absence was noticed.

        This holds for failed injections and ended runs too, as records may have been removed.

        Raises:
            ClusterError: the absence was not noticed in time, and none was started; or one could not be started.
        """
        stopped = await stopped_of(context, injection.targets)
        if stopped and injection.parameters["protect_committed"]:
            await missed(context, replace(injection, targets=tuple(stopped)))
        await start_stopped(context, tuple(stopped))


async def lives(context: FaultContext, brokers: tuple[int, ...]) -> dict[str, Any]:
    """Return which brokers run, and their sessions: what `signs_of_life` compares with later."""
    status = await context.driver.status()
    registered = await context.view.registrations()
    return {
        "running": status.running(brokers),
        "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
    }


async def replicated_on_others(context: FaultContext, brokers: tuple[int, ...], timeout_s: float) -> None:
    """Return when other brokers have all data of these; raises DeadlineError."""
    await until(
        lambda: _at_stake(context, brokers),
        lambda seen: not seen,
        what="every partition whole, with a replica elsewhere",
        timeout_s=timeout_s,
    )


async def missed(context: FaultContext, injection: Injection) -> None:
    """Return when the cluster has noticed that brokers are dead, and does not rely on their data; or DeadlineError."""
    await until(
        lambda: _signs_of_life(context, injection),
        lambda seen: not seen,
        what="end of processes and registrations",
        timeout_s=injection.parameters["confirm_timeout_s"],
    )


async def _at_stake(context: FaultContext, brokers: tuple[int, ...]) -> list[str]:
    """Return the partitions with a replica out of sync, and those with replicas on these brokers only.

    A broker that runs and is not registered yet is as good as gone: the controller will take it from the ISR first.
    """
    running = {
        broker.broker_id for broker in (await context.driver.status()).brokers if broker.state == ProcessState.RUNNING
    }
    running &= (await context.view.registrations()).keys()
    return [
        f"{view.topic}-{view.partition}"
        for view in await context.view.partitions()
        if set(view.assignment) & set(brokers)
        and not (set(view.isr) == set(view.assignment) <= running and set(view.isr) - set(brokers))
    ]


async def _signs_of_life(context: FaultContext, injection: Injection) -> list[str]:
    status = await context.driver.status()
    registered = await context.view.registrations()
    sessions = injection.state["sessions"]
    alive = [
        f"broker {it} is not stopped" for it in injection.targets if status.broker(it).state != ProcessState.STOPPED
    ]
    if injection.parameters["protect_committed"]:
        # A broker that returns before any controller has noticed its death leads on with its damaged log, in the same
        # epoch, if the controller died with it and the next one sees it alive; Kafka has that hole too, up to KIP-966.
        alive += [
            f"{view.topic}-{view.partition} still has the ISR {list(view.isr)}"
            for view in await context.view.partitions()
            if set(view.isr) & set(injection.targets)
            and set(view.assignment) - set(injection.targets)  # else no other broker ever has its records
            and not await context.view.deleting(view.topic)  # its records are not needed
        ]
    return alive + [
        f"broker {it} is registered by session {sessions[str(it)]}"
        for it in injection.targets
        if it in registered and registered[it].session == sessions.get(str(it))
    ]
