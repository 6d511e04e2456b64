"""How a broker reaches its peers: a small protocol of decoded messages; TCP fulfils it, and so does the simulation."""

from typing import Any, Protocol

Message = Any
"""A decoded request or response of `harness.broker.wire.messages`."""


class PeerError(Exception):
    """The peer could not be reached, closed the connection, or did not answer in time."""


class Connection(Protocol):
    """One connection to a peer; requests are answered in order, one in flight at a time."""

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        ...

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        """Send a request and return the decoded response; raises PeerError, after which the connection is useless."""
        ...

    def close(self) -> None:
        """Drop the connection at once; a pending request fails with PeerError."""
        ...


class Transport(Protocol):
    """Opens connections."""

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> Connection:
        """Connect to a peer's listener; raises PeerError."""
        ...
