"""Opens many connections to each broker at once, sends a request on each, and holds them. Heals by closing them.

The connections end with the harness's process.

Confirmed by: an answer on each connection, and an answer to one more client.
"""

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanAsk
from harness.cluster.driver import CanRunClients
from harness.cluster.limits.descriptors import room_for
from harness.contracts.administration import ask
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
from harness.contracts.parameters import Size, Strict
from harness.errors import ClusterError

if TYPE_CHECKING:
    from harness.broker.wire.transport import Connection, Message

VERSION = 0
"""Of ApiVersions, which every broker answers without authentication."""


class Parameters(Strict):
    """Parameters of a storm."""

    connections: Annotated[int, Size(), Field(ge=1, le=5000, description="Number of connections to each broker")] = 200
    times: Annotated[
        int, Field(ge=1, le=100, description="Number of rounds; the connections of all but the last are closed at once")
    ] = 1
    answer_timeout_s: Annotated[float, Field(gt=0, le=60, description="Deadline for each connection and answer")] = 20.0


class ConnectionStorm(Fault):
    """Connects like an application with many instances that all start at once."""

    name: ClassVar[str] = "connection-storm"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("ask",)
    may_overlap: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def __init__(self) -> None:
        self._held: dict[tuple[int, ...], list[Connection]] = {}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Open them all at once and send a request on each; connections without an answer are counted."""
        wanted = len(injection.targets) * injection.parameters["connections"]
        if isinstance(context.driver, CanRunClients) and (why := room_for(wanted)):  # else they are no files
            return injection.with_state(failed=wanted, why=[why])
        failures: list[str] = []
        for _ in range(injection.parameters["times"]):
            self._close(injection)
            held = self._held[injection.targets] = []
            doings = [
                _opened(context, broker, injection.parameters["answer_timeout_s"], held)
                for broker in injection.targets
                for _ in range(injection.parameters["connections"])
            ]
            failures += [failure for failure in await asyncio.gather(*doings) if failure]
        return injection.with_state(failed=len(failures), why=sorted(set(failures))[:3])

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that all are open, and that another client gets an answer."""
        if why := injection.state["why"]:
            return inconclusive(f"{injection.state['failed']} connections got no answer: {'; '.join(why)}")
        for broker in injection.targets:
            await ask(context, broker, _question(), VERSION)
        held = self._held.get(injection.targets, [])
        if closed := sum(connection.closed for connection in held):
            return mismatch(f"{closed} of {len(held)} connections were closed")
        return confirmed(f"{len(held)} connections are open, each was answered, and so is another one")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Close those that are open in this process."""
        self._close(injection)

    def _close(self, injection: Injection) -> None:
        for connection in self._held.pop(injection.targets, []):
            connection.close()


async def _opened(context: FaultContext, broker: int, timeout_s: float, held: "list[Connection]") -> str:
    """Open one and send a request on it; return the problem, if any."""
    from harness.broker.wire.transport import PeerError

    assert isinstance(context.driver, CanAsk)
    try:
        connection = await context.driver.connect(broker, timeout_s=timeout_s)
        held.append(connection)
        await connection.request(_question(), VERSION, timeout_s=timeout_s)
    except (ClusterError, PeerError) as error:
        return str(error)
    return ""


def _question() -> "Message":
    from harness.broker.wire.messages import ApiVersionsRequest

    return ApiVersionsRequest()


PLUGIN: type[Fault] = ConnectionStorm
