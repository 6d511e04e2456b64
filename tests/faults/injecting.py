"""Carrying one fault out on a cluster in memory."""

from harness.contracts import registry
from harness.contracts.faults import Effect, Injection
from harness.contracts.targets import parse_target
from tests.fake_cluster import FakeCluster

DURATION_S = 1.5


async def injected(
    cluster: FakeCluster,
    name: str,
    *brokers: int,
    target: str = "leader(orders,0)",
    duration_s: float = DURATION_S,
    **parameters: object,
) -> tuple[Injection, Effect]:
    """Carry a fault out, up to its proof."""
    plugin = registry.fault(name)
    injection = await prepared(cluster, name, *brokers, target=target, duration_s=duration_s, **parameters)
    injection = await plugin.inject(cluster.context, injection)
    return injection, await plugin.confirm(cluster.context, injection)


async def prepared(
    cluster: FakeCluster,
    name: str,
    *brokers: int,
    target: str = "leader(orders,0)",
    duration_s: float = DURATION_S,
    **parameters: object,
) -> Injection:
    """Return what would be done, of which nothing is."""
    plugin = registry.fault(name)
    values = plugin.Parameters.model_validate(parameters)
    return await plugin.prepare(cluster.context, parse_target(target), brokers, values, duration_s=duration_s)


async def heal(cluster: FakeCluster, injection: Injection) -> None:
    """Undo it."""
    await registry.fault(injection.fault).heal(cluster.context, injection)
