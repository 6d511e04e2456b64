"""Sets a broker's wall clock ahead or back, or changes its rate. Heals by resetting it.

The monotonic clock, which time-outs use, is unchanged. Effects of a changed wall clock are expected: while it is ahead,
records older than `retention.ms` are deleted, and compaction and expiry come early. Needs libfaketime.

Confirmed by: the times in the broker's own log lines, compared with the harness's clock.
"""

import asyncio
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, model_validator

from harness.cluster.capabilities import CanSetClock
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
from harness.errors import DeadlineError
from harness.system.waiting import until

SEE_TIMEOUT_S = 15.0
EXACT_S = 0.02
"""Tolerance of a clock's setting: log lines have milliseconds, and a drift is exact to a few of them."""
LOADED_WITHIN_S = 1.0
"""How long a process on a busy machine takes to load libfaketime, which counts a drift from then on."""
DAY_S = 86_400.0
SLIGHTEST = 0.01
"""The smallest drift that shows within the time there is to see it."""


class Parameters(Strict):
    """Parameters of a clock; at least one is given."""

    step_s: Annotated[
        float, Field(ge=-DAY_S, le=DAY_S, description="Seconds by which the clock is set ahead; back if negative")
    ] = 0.0
    drift: Annotated[
        float, Field(ge=0.5, le=2, description="Seconds of the clock for each second that passes, for example 1.05")
    ] = 1.0

    @model_validator(mode="after")
    def _shows(self) -> Self:
        if abs(self.step_s) < 1 and abs(self.drift - 1) < SLIGHTEST:
            raise ValueError(f"a clock takes a step_s of 1 or more, or a drift by {SLIGHTEST} or more from 1")
        return self


class Clock(Fault):
    """Sets brokers' wall clocks; the driver itself sets them back after the fault's duration."""

    name: ClassVar[str] = "clock"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("clock",)
    may_overlap: ClassVar[bool] = True
    min_visible_s: ClassVar[float] = 2.0
    """The setting is read once a second."""
    witnesses: ClassVar[tuple[str, ...]] = ("append",)
    """A system that logs no appends may log nothing for longer than the fault waits."""
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, and which brokers run."""
        return {"at_most_s": duration_s, "running": (await context.driver.status()).alive(brokers)}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Set them, and record the harness's clock and the lengths of the brokers' logs."""
        assert isinstance(context.driver, CanSetClock)
        state, own = injection.state, injection.parameters
        driver = context.driver

        async def set_one(broker: int) -> int:
            await driver.set_clock(broker, step_s=own["step_s"], rate=own["drift"], at_most_s=state["at_most_s"])
            return context.state_changes.wall_ns()

        since = await asyncio.gather(*map(set_one, injection.targets))
        return injection.with_state(since_ns=dict(zip(map(str, injection.targets), since, strict=True)))

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Read new log lines: compare the times in them with the times at which they were written."""
        if idle := sorted(set(injection.targets) - set(injection.state["running"])):
            return inconclusive(f"broker {idle} did not run, and showed no time")
        seen = [await self._seen(context, injection, broker) for broker in injection.targets]
        return next((effect for effect in seen if isinstance(effect, Effect)), confirmed("; ".join(map(str, seen))))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Reset them; no-op for those that are reset."""
        assert isinstance(context.driver, CanSetClock)
        for broker in injection.targets:
            await context.driver.reset_clock(broker)

    async def _seen(self, context: FaultContext, injection: Injection, broker: int) -> Effect | str:
        """Return what shows that a broker's clock is set as requested, as text."""
        logs, own = context.state_changes, injection.parameters
        since_ns, position = logs.wall_ns(), await logs.end_of(broker)
        logged = False

        async def look() -> tuple[float, float] | None:
            """Return how far its clock was ahead at its last new line, at least and at most."""
            nonlocal since_ns, position, logged
            before_ns = logs.wall_ns()
            shown_ns, position = await logs.dated(broker, position)
            earliest_ns, since_ns = since_ns, before_ns
            if shown_ns is None:
                return None
            logged = True
            return (shown_ns - logs.wall_ns()) / 1e9, (shown_ns - earliest_ns) / 1e9

        def as_asked(ahead: tuple[float, float] | None) -> bool:
            passed_s = (logs.wall_ns() - injection.state["since_ns"][str(broker)]) / 1e9
            wanted_s = own["step_s"] + (own["drift"] - 1) * passed_s
            if ahead is None:
                return False
            exact_s = EXACT_S + abs(own["drift"] - 1) * LOADED_WITHIN_S
            least, most = ahead[0] - exact_s, ahead[1] + exact_s
            return least <= wanted_s <= most and not least <= 0 <= most

        what = f"broker {broker}'s lines as its clock was set"
        try:
            ahead = await until(
                look, as_asked, what=what, timeout_s=min(SEE_TIMEOUT_S, injection.state["at_most_s"]), every_s=0.05
            )
        except DeadlineError as error:
            return mismatch(str(error)) if logged else inconclusive(f"broker {broker} logged nothing new: {error}")
        assert ahead is not None
        return f"broker {broker}'s line was dated {ahead[0]:+.3f} s from when it was seen"


PLUGIN: type[Fault] = Clock
