"""Breaks a broker's ZooKeeper connection instead of answering a write, which was carried out or not.

Confirmed by: the write, and a connection that was lost and made again.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanLoseReplies
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed_once,
    inconclusive,
)
from harness.contracts.parameters import Strict
from harness.errors import DeadlineError
from harness.system.waiting import until


class Parameters(Strict):
    """Parameters of a lost reply."""

    carried_out: Annotated[bool, Field(description="Whether the write was carried out")] = True
    write: Annotated[
        Literal["registration", "next"],
        Field(description="registration: the session is ended, and the write follows that; next: a write of any kind"),
    ] = "registration"
    answered: Annotated[int, Field(ge=0, le=100, description="Writes that are answered first")] = 0
    wait_s: Annotated[float, Field(gt=0, le=100, description="How long to wait for the write")] = 20.0


class LoseZookeeperReply(Fault):
    """Leaves a broker without knowing whether its write was carried out."""

    name: ClassVar[str] = "lose-zookeeper-reply"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    zookeeper: ClassVar[bool] = True
    requires: ClassVar[tuple[str, ...]] = ("zookeeper-replies",)
    witnesses: ClassVar[tuple[str, ...]] = ("zk_session",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the sessions, and where the brokers' logs end."""
        registered = await context.view.registrations()
        return {
            "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
            "log_ends": {str(broker): await context.state_changes.end_of(broker) for broker in brokers},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Arm the loss, and provoke a write if the scenario says so."""
        assert isinstance(context.driver, CanLoseReplies)
        parameters = injection.parameters
        for broker in injection.targets:
            await context.driver.lose_reply(
                broker,
                carried_out=parameters["carried_out"],
                answered=parameters["answered"],
                at_most_s=parameters["wait_s"],
            )
            session = injection.state["sessions"].get(str(broker))
            if session is not None and parameters["write"] == "registration":
                await context.zookeeper.expire(session)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that a reply was lost, that the broker lost its connection, and that it is registered."""
        wait_s = injection.parameters["wait_s"]
        try:
            writes = [await self._lost(context, broker, wait_s) for broker in injection.targets]
        except DeadlineError as error:
            return inconclusive(str(error))
        noticed = until(
            lambda: _unnoticed(context, injection),
            lambda seen: not seen,
            what="every broker reconnected and registered",
            timeout_s=wait_s,
        )
        return await confirmed_once(noticed, "; ".join(writes))

    async def _lost(self, context: FaultContext, broker: int, wait_s: float) -> str:
        driver = context.driver
        assert isinstance(driver, CanLoseReplies)
        write = await until(
            lambda: driver.last_lost_reply(broker),
            lambda seen: seen is not None,
            what=f"a write of broker {broker}",
            timeout_s=wait_s,
        )
        return f"broker {broker} got no answer to {write}"

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Disarm the loss."""
        assert isinstance(context.driver, CanLoseReplies)
        for broker in injection.targets:
            await context.driver.cancel_reply_loss(broker)


async def _unnoticed(context: FaultContext, injection: Injection) -> list[str]:
    registered = await context.view.registrations()
    problems = [f"broker {broker} is not registered" for broker in injection.targets if broker not in registered]
    for broker in injection.targets:
        log_end = injection.state["log_ends"][str(broker)]
        events, _ = await context.state_changes.after(broker, log_end, "zk_session")
        states = [event["state"] for event in events]
        if "suspended" not in states or "connected" not in states[states.index("suspended") :]:
            problems.append(f"broker {broker} has not lost its connection and made another")
    return problems


PLUGIN: type[Fault] = LoseZookeeperReply
