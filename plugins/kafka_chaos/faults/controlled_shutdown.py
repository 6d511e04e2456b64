"""Stops a broker with SIGTERM, so that the controller moves its leaders first. Heals by starting it again.

Confirmed by: a clean stop in the broker's log, and another leader for every partition that it led.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.systems.system import system_named
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.contracts.restoring import end_of_late_stops, start_stopped
from harness.errors import DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.zookeeper.view import PartitionView


class Parameters(Strict):
    """Parameters of a controlled shutdown."""

    stop_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for the end of the process")] = 30.0
    hands_over: Annotated[bool, Field(description="Whether it must have handed its leads over before it stopped")] = (
        True
    )


class ControlledShutdown(Fault):
    """Stops brokers cleanly and starts them again."""

    name: ClassVar[str] = "controlled-shutdown"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.LEADERSHIP})
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which partitions each broker leads that another replica could lead."""
        status = await context.driver.status()
        partitions = await context.view.partitions()
        others = status.running(each.broker_id for each in status.brokers if each.broker_id not in brokers)
        return {
            "running": status.running(brokers),
            "others": status.starts(others),
            "controller": (await context.view.controller()).broker_id,
            "starts": status.starts(brokers),
            "log_ends": {str(broker): await context.state_changes.end_of(broker) for broker in brokers},
            "led": [
                {"topic": p.topic, "partition": p.partition, "leader_epoch": p.leader_epoch, "isr": list(p.isr)}
                for p in partitions
                if p.leader in brokers and set(p.isr) - set(brokers)
            ],
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Stop those that run, one after the other; record which are late, and why."""
        late: dict[str, str] = {}
        for broker in injection.state["running"]:
            try:
                await context.driver.stop_broker(broker, timeout_s=injection.parameters["stop_timeout_s"])
            except DeadlineError as error:
                late[str(broker)] = str(error)
        if await _tells_of_stops(context):
            return injection.with_state(late=late)
        # A dead broker stays leader until its session times out. If it leads nothing at its end, it has handed over.
        return injection.with_state(late=late, kept=_unmoved(injection, await context.view.partitions()))

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """See the clean stop, its registration gone, and its partitions led by others.

        A clean stop is in the broker's own log; without such a log, the leaders at its end show it. Whether a leader
        may come from outside the ISR depends on what is configured, which I4 judges.
        """
        if idle := not_running(injection, "stop"):
            return idle
        if late := injection.state["late"]:
            asking = [await _asked(context, injection, int(broker)) for broker in late]
            text = "; ".join(late.values())
            return inconclusive(f"{text}; it had asked the controller to let it go") if all(asking) else mismatch(text)
        if wrong := await self._not_controlled(context, injection):
            return wrong
        timeout_s = injection.parameters["stop_timeout_s"]
        try:
            await until(
                context.view.registrations,
                lambda seen: not set(injection.targets) & set(seen),
                what="end of the registration",
                timeout_s=timeout_s,
            )
            partitions = await until(
                lambda: _lasting(context, injection),
                lambda seen: not _unmoved(injection, seen),
                what="other leaders for the partitions it led",
                timeout_s=timeout_s,
            )
        except DeadlineError as error:
            return mismatch(str(error))
        pairs = _pairs(injection, partitions)
        moved = sum(view.leader not in (*injection.targets, NO_BROKER) for _, view in pairs)
        if not moved and "kept" in injection.state:
            return inconclusive("no other replica could lead what it led, and its system does not log stops")
        outside = "".join(f"; the ISR of {each} has no member from before" for each in _led_from_outside(pairs))
        return confirmed(f"clean stop after {moved} partitions changed their leader{outside}")

    async def _not_controlled(self, context: FaultContext, injection: Injection) -> Effect | None:
        """Return the evidence against a controlled shutdown: from the broker's log, or from the leaders at its end."""
        if "kept" in injection.state:
            if not injection.state["led"]:
                return inconclusive("it led nothing to hand over, and its system does not log stops")
            partitions = ", ".join(injection.state["kept"])
            return mismatch(f"it ended before others led {partitions}") if partitions else None
        for broker in injection.targets:
            log_end = injection.state["log_ends"][str(broker)]
            stops, _ = await context.state_changes.after(broker, log_end, "broker_stop")
            if not stops or not (stops[-1]["controlled"] or not injection.parameters["hands_over"]):
                logged = "a stop that was not controlled" if stops else "no clean stop"
                if why := await _hindrance(context, injection) or await _refusal(context, injection, broker):
                    return inconclusive(f"broker {broker} logged {logged}; {why}")
                return mismatch(f"broker {broker} logged {logged}")
        return None

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Wait for the end of brokers that were late, and start what does not run."""
        await end_of_late_stops(context, injection)
        await start_stopped(context, injection.targets)


async def _tells_of_stops(context: FaultContext) -> bool:
    return "broker_stop" in system_named((await context.driver.status()).system).emits


async def _hindrance(context: FaultContext, injection: Injection) -> str:
    """Return another cause of a stop that was not controlled: no replica to hand over to, or no controller."""
    status, before = await context.driver.status(), injection.state["others"]
    stayed = {
        each.broker_id
        for each in status.brokers
        if each.state == ProcessState.RUNNING and before.get(str(each.broker_id)) == each.starts
    }
    controller, now = injection.state["controller"], (await context.view.controller()).broker_id
    if not stayed:
        return "no other broker ran all the time that it could hand over to"
    if controller not in injection.targets and (controller not in stayed or controller != now):
        return f"the controller that it had to ask, broker {controller}, was away or deposed"
    stuck = [f"{led['topic']}-{led['partition']}" for led in injection.state["led"] if not stayed & set(led["isr"])]
    return f"no other member of the ISR of {', '.join(stuck)} ran all the time" if stuck else ""


async def _asked(context: FaultContext, injection: Injection, broker: int) -> list[dict[str, Any]]:
    """Return the requests of a broker to let it go, as it logged them since it was to stop."""
    log_end = injection.state["log_ends"][str(broker)]
    asked, _ = await context.state_changes.after(broker, log_end, "leave_request")
    return asked


async def _refusal(context: FaultContext, injection: Injection, broker: int) -> str:
    """Return that no controller let a broker go in any of its tries; empty if it has not asked so often."""
    asked = await _asked(context, injection, broker)
    return f"the controller did not let it go in {len(asked)} tries" if asked and not asked[-1]["tries_left"] else ""


async def _lasting(context: FaultContext, injection: Injection) -> list[PartitionView]:
    """Return all partitions but those of topics that are being deleted: these are led by none."""
    partitions = await context.view.partitions()
    led = {each["topic"] for each in injection.state["led"]}
    going = {topic for topic in sorted(led) if await context.view.deleting(topic)}
    return [each for each in partitions if each.topic not in going]


def _pairs(injection: Injection, seen: list[PartitionView]) -> list[tuple[dict[str, Any], PartitionView]]:
    """Return pairs of each partition's earlier and present state."""
    now = {(view.topic, view.partition): view for view in seen}
    led = [((before["topic"], before["partition"]), before) for before in injection.state["led"]]
    return [(before, now[partition]) for partition, before in led if partition in now]


def _unmoved(injection: Injection, seen: list[PartitionView]) -> list[str]:
    """Return the partitions that another member of the ISR could lead, and none does."""
    return [
        f"{view.topic}-{view.partition}"
        for _, view in _pairs(injection, seen)
        if view.leader in (*injection.targets, NO_BROKER) and set(view.isr) - set(injection.targets)
    ]


def _led_from_outside(pairs: list[tuple[dict[str, Any], PartitionView]]) -> list[str]:
    """Return partitions whose ISR has no member from before; new members beside old ones are fine."""
    return [f"{view.topic}-{view.partition}" for before, view in pairs if not set(view.isr) & set(before["isr"])]


PLUGIN: type[Fault] = ControlledShutdown
