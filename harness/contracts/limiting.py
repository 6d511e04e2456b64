"""Base of faults that limit a resource of brokers."""

from typing import Any, ClassVar

from harness.cluster.capabilities import CanLimit
from harness.cluster.limits.resources import Resource
from harness.contracts.faults import Effect, Fault, FaultContext, Injection, not_running


class Limiting(Fault):
    """Limits brokers; the driver itself lifts the limit after the fault's duration."""

    resource: ClassVar[Resource]

    def amount(self, parameters: dict[str, Any]) -> float:
        """Return the amount, as `Resource` defines it."""
        raise NotImplementedError

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, which brokers run, how often each was started, and the kernel's counters."""
        driver, status = context.driver, await context.driver.status()
        assert isinstance(driver, CanLimit)
        before = {broker: await driver.usage(broker, self.resource) for broker in brokers}
        return {
            "at_most_s": duration_s,
            "running": status.alive(brokers),
            "starts": status.starts(brokers),
            "limits": {str(broker): usage.limit for broker, usage in before.items()},
            "hits": {str(broker): usage.hits for broker, usage in before.items()},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Limit those that run."""
        driver, amount = context.driver, self.amount(injection.parameters)
        assert isinstance(driver, CanLimit)
        for broker in injection.state["running"]:
            await driver.limit(broker, self.resource, amount, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait for the effect on each."""
        return not_running(injection, "limit") or await self.seen(context, injection)

    async def seen(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait, within a bounded time, until the limit is in force and has shown."""
        raise NotImplementedError

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Lift the limits."""
        assert isinstance(context.driver, CanLimit)
        for broker in injection.targets:
            await context.driver.lift(broker, self.resource)
