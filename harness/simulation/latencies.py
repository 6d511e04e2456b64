"""How long do operations take in virtual time? Drawn from the seed for each, exponentially, with a bound.

One in 100 messages between a ZooKeeper server and another host takes up to 1.5 s instead, evenly distributed.
"""

import random
from collections.abc import Callable
from functools import partial

from harness.scenario.model import Latencies

LONGEST_READ_S = 2.0
LONGEST_ZOOKEEPER_S = 0.3
SYNC_FACTOR, STALL_FACTOR = 20.0, 10.0
"""Of the mean, the longest."""
STUCK_SHARE, STUCK_S = 0.01, 1.5
"""Share of the messages between a ZooKeeper server and another host that are stuck, and for how long at most."""
STALL_GAP_S = 0.5
"""Mean time between two stalls of a slow broker."""

Wait = Callable[[], float]
"""Returns how many seconds the next operation of a kind takes."""


def no_time() -> float:
    """Return 0.0."""
    return 0.0


def waits(rng: random.Random, mean_ms: float, longest_s: float) -> Wait:
    """Return what draws waits of a mean; without one nothing is drawn."""
    return partial(_drawn, rng, mean_ms / 1000, longest_s) if mean_ms else no_time


def _drawn(rng: random.Random, mean_s: float, longest_s: float) -> float:
    return min(rng.expovariate(1 / mean_s), longest_s)


def syncs(latencies: Latencies, rng: random.Random) -> Wait:
    """Return how long syncs of one disk take."""
    return waits(rng, latencies.sync_ms, SYNC_FACTOR * latencies.sync_ms / 1000)


def reads(latencies: Latencies, rng: random.Random) -> Wait:
    """Return how long reads take that a broker waits for while it does other things."""
    return waits(rng, latencies.read_ms, LONGEST_READ_S)


def stalls(latencies: Latencies, rng: random.Random, broker_id: int) -> Wait:
    """Return how long a broker computes at a time."""
    mean_ms = latencies.stall_ms if broker_id in latencies.slow_brokers else 0.0
    return waits(rng, mean_ms, STALL_FACTOR * mean_ms / 1000)


def zookeeper_messages(latencies: Latencies, rng: random.Random) -> Callable[[tuple[str, str]], float] | None:
    """Return how much longer a message takes over a link, which is none for links without a ZooKeeper server."""
    if not latencies.zookeeper_ms:
        return None
    drawn = waits(rng, latencies.zookeeper_ms, LONGEST_ZOOKEEPER_S)

    def extra_s(link: tuple[str, str]) -> float:
        servers = sum(host.startswith("zookeeper-") for host in link)
        if servers == 1 and rng.random() < STUCK_SHARE:
            return rng.uniform(0.0, STUCK_S)
        return drawn() if servers else 0.0

    return extra_s
