"""What an interception has caught, for the fault itself and for steps that wait for it."""

from harness.cluster.capabilities import CanIntercept
from harness.cluster.driver import ClusterDriver
from harness.cluster.links.rules import Caught
from harness.contracts.faults import Injection

HOLDERS = "holders"
"""Key in the state of such an injection: the names of its rules by broker id."""


async def caught_by(driver: ClusterDriver, injection: Injection) -> list[Caught]:
    """Return all messages that an injection has caught so far, by broker."""
    assert isinstance(driver, CanIntercept)
    return [each for holder in injection.state[HOLDERS].values() for each in await driver.caught(holder)]
