"""What a simulated session can do besides what ZooKeeper's clients ask of it."""

from harness.broker.zookeeper.client import ZooKeeper
from harness.simulation.zookeeper.session import SimulatedZooKeeper


def simulated(session: ZooKeeper) -> SimulatedZooKeeper:
    """Return the same session, to disconnect or expire."""
    assert isinstance(session, SimulatedZooKeeper)
    return session
