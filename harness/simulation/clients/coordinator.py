"""The coordinator of a group, asked over a client's connections or over a connection of the member's own.

A member has one of its own, as its JoinGroup may wait there for all others, while records are fetched.
"""

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FindCoordinatorRequest
from harness.broker.wire.transport import Message, PeerError
from harness.simulation.clients.metadata import CONNECT_TIMEOUT_S, ClusterClient
from harness.simulation.clients.refusals import Refused
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.values import NO_BROKER

FIND_COORDINATOR_VERSION = 2
GROUP, TRANSACTION = 0, 1
"""Types of keys that have a coordinator."""


class Coordinator:
    """The coordinator of one group or transactional id, over a client's connections."""

    def __init__(self, name: str, client: ClusterClient, key_type: int = GROUP) -> None:
        self._name = name
        self._key_type = key_type
        self._client = client
        self._broker_id = NO_BROKER
        self._tries = 0

    def forget(self) -> None:
        """Look for it anew before the next request."""
        self._broker_id = NO_BROKER

    async def ask(self, message: Message, version: int) -> Message:
        """Return its answer; raises PeerError, or Refused while it is not known."""
        if self._broker_id == NO_BROKER:
            self._learn(await self._find())
        return await self._client.ask(self._broker_id, message, version)

    def _learn(self, answer: Message) -> None:
        self._broker_id = answer.node_id

    async def _find(self) -> Message:
        """Find the coordinator, asking another broker each time; raises PeerError or Refused."""
        known = self._client.broker_ids
        if not known:
            raise PeerError("no broker is known")
        self._tries += 1
        request = FindCoordinatorRequest(key=self._name, key_type=self._key_type)
        answer = await self._client.ask(known[self._tries % len(known)], request, FIND_COORDINATOR_VERSION)
        if answer.error_code != ErrorCode.NONE:
            raise Refused(answer.error_code)
        return answer


class OwnCoordinator(Coordinator):
    """The coordinator of a member's group, over a connection of its own."""

    def __init__(self, group: str, client: ClusterClient, transport: MemoryTransport, client_id: str) -> None:
        super().__init__(group, client)
        self._transport = transport
        self._client_id = client_id
        self._connection: MemoryConnection | None = None

    def forget(self) -> None:
        """Look for it anew before the next request; what waits for an answer gets none."""
        super().forget()
        self.close()

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def ask(self, message: Message, version: int, *, timeout_s: float | None = None) -> Message:
        """Return its answer; raises PeerError, or Refused while it is not known."""
        if self._connection is None or self._connection.closed:
            answer = await self._find()
            connection = await self._transport.connect(
                answer.host, answer.port, client_id=self._client_id, timeout_s=CONNECT_TIMEOUT_S
            )
            if self._connection is None or self._connection.closed:
                self._connection = connection
            else:  # another call has connected meanwhile
                connection.close()
        return await self._connection.request(message, version, timeout_s=timeout_s or self._client.timeout_s)
