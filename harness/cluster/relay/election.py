"""How do ZooKeeper servers introduce themselves to each other, and why does a relay change that?

A server that connects to another's election port first sends its id and its own address. A server with a
higher number hangs up and connects to that address: past the relay. So the relay puts the wildcard address there, which
a server leaves aside for what its own configuration says, and that leads through the relay. Source: ZooKeeper's
`QuorumCnxManager.InitialMessage` and `handleConnection`.
"""

import struct

from harness.cluster.ports import ALL_INTERFACES

_HEAD = struct.Struct(">qqi")
"""Version of the message, number of the server, length of its addresses."""
_VERSIONS = (-65536, -65535)
"""With one address, and with several."""
MOST_BYTES = 2048
"""Of addresses; a server takes no more."""


class Introduction:
    """What one server says to another one over an election connection; all but its first message is left as it is."""

    answers = None

    def __init__(self) -> None:
        self._first: bytes | None = b""
        """Of the message, as far as it has come; None when it is over."""

    @property
    def requests(self) -> "Introduction":
        """What comes from the server that connects."""
        return self

    def of(self, data: bytes) -> list[bytes]:
        """Return what is to be sent on now."""
        if self._first is None:
            return [data]
        self._first += data
        if len(self._first) < _HEAD.size:
            return []
        version, server, length = _HEAD.unpack_from(self._first)
        end = _HEAD.size + length
        if version in _VERSIONS and 0 < length <= MOST_BYTES:
            if len(self._first) < end:
                return []
            port = self._first[_HEAD.size : end].rpartition(b":")[2]
            address = ALL_INTERFACES.encode() + b":" + port
            changed = _HEAD.pack(version, server, len(address)) + address + self._first[end:]
        else:
            changed = self._first
        self._first = None
        return [changed]

    def reaches_server(self, _: bytes) -> bool:
        """Return that nothing is lost."""
        return True

    def reaches_client(self, _: bytes) -> bool:
        """Return that nothing is lost."""
        return True
