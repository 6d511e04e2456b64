"""Base of faults of the network: the links that they mean, and a probe over each of them."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from harness.cluster.capabilities import CanProbe, Direction, Side
from harness.cluster.driver import ClusterDriver
from harness.contracts.faults import Effect, Injection, inconclusive
from harness.contracts.parameters import Strict
from harness.verdict import FaultVerdict

E = TypeVar("E", Side, Direction)

Sides = Annotated[
    list[Annotated[Side, BeforeValidator(lambda value: Side(value) if isinstance(value, str) else value)]],
    Field(min_length=1, description="peers, clients, zookeeper, controllers (that are no brokers)"),
]
Way = Annotated[Direction, BeforeValidator(lambda value: Direction(value) if isinstance(value, str) else value)]


class LinkParameters(Strict):
    """Selects links of a broker."""

    sides: Sides = list(Side)
    direction: Annotated[Way, Field(description="both, inbound (to the broker) or outbound (from it)")] = Direction.BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The result of a probe over one link, one way."""

    described: str
    taken_s: float | None
    """None if it did not arrive in time."""


def links_of(parameters: dict[str, Any]) -> tuple[tuple[Side, ...], Direction]:
    """Return the links that an injection's parameters select."""
    return tuple(map(Side, parameters["sides"])), Direction(parameters["direction"])


async def undisturbed(driver: ClusterDriver) -> str:
    """Return why brokers may still reach each other, whatever probes show; empty if every sender is known."""
    assert isinstance(driver, CanProbe)
    count = len(await driver.strangers())
    return f"it is not known which server has {count} of the connections to others, and they pass" if count else ""


async def sure(driver: ClusterDriver, injection: Injection, effect: Effect) -> Effect:
    """Return the probes' result; links between servers are confirmed only if every sender is known."""
    among_servers = not {Side.PEERS, Side.CONTROLLERS}.isdisjoint(links_of(injection.parameters)[0])
    shown = effect.verdict is FaultVerdict.CONFIRMED and among_servers
    return inconclusive(why) if shown and (why := await undisturbed(driver)) else effect


async def probe(driver: ClusterDriver, injection: Injection, *, timeout_s: float, size_bytes: int = 1) -> list[Probed]:
    """Send a probe over every link of an injection, all at once, and return the results."""
    assert isinstance(driver, CanProbe)
    sides, direction = links_of(injection.parameters)
    ways = [(broker, side, way) for broker in injection.targets for side in sides for way in direction.ways]
    probing = (driver.probe(*way, timeout_s=timeout_s, size_bytes=size_bytes) for way in ways)
    hosts = await asyncio.gather(*probing)
    return [
        Probed(
            described=f"{host} to broker {broker}" if way is Direction.INBOUND else f"broker {broker} to {host}",
            taken_s=taken_s,
        )
        for (broker, _, way), reached in zip(ways, hosts, strict=True)
        for host, taken_s in reached.items()
    ]
