"""How can the harness end another client's ZooKeeper session? Its password is a pure function of its id.

`ZooKeeperServer.generatePasswd` fills 16 bytes from a `java.util.Random` seeded with the id and a constant, and
`checkPasswd` computes it again; so a client that knows the id can take the session over and close it. For its owner
this is exactly an expiry: the connection breaks, and on the next one the server answers that the session has expired.
"""

import asyncio
import socket
import struct
import time
from typing import BinaryIO

from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import Close, Connect, int_int_struct, int_struct

from harness.errors import ClusterError

SUPER_SECRET = 0xB3415C00
"""`ZooKeeperServer.superSecret`."""
PASSWORD_BYTES = 16
TAKEOVER_TIMEOUT_S = 5.0
_PAUSE_S = 0.02
_XID = 1

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK_48 = (1 << 48) - 1
_MASK_64 = (1 << 64) - 1


def password(session_id: int) -> bytes:
    """Return the password of a session."""
    seed = (((session_id ^ SUPER_SECRET) & _MASK_64) ^ _MULTIPLIER) & _MASK_48
    result = bytearray()
    while len(result) < PASSWORD_BYTES:
        seed = (seed * _MULTIPLIER + _INCREMENT) & _MASK_48
        result += (seed >> 16).to_bytes(4, "little")
    return bytes(result)


def to_text(session_id: int) -> str:
    """Return a session id as the history has it: unsigned hexadecimal, empty for none."""
    return f"0x{session_id & _MASK_64:x}" if session_id else ""


def from_text(session: str) -> int:
    """Return the signed 64-bit session id of its hexadecimal text."""
    number = int(session, 16)
    return number - (1 << 64) if number >= 1 << 63 else number


async def expire(hosts: str, session: str) -> bool:
    """End a session, given in hexadecimal; return False, without any effect, when it has ended already.

    Raises:
        ClusterError: ZooKeeper does not answer, or does not end it.
    """
    return await asyncio.to_thread(_expire, hosts, from_text(session))


def _expire(hosts: str, session_id: int) -> bool:
    servers, _ = collect_hosts(hosts)
    deadline = time.monotonic() + TAKEOVER_TIMEOUT_S
    taken, problem = False, "no server"
    while True:
        for server in servers:
            try:
                if not _take_over_and_close(server, session_id):
                    return taken
            except (OSError, struct.error) as error:
                problem = repr(error)
            else:
                taken = True  # the next one asked says whether it has ended, or its owner was quicker
        if time.monotonic() > deadline:
            raise ClusterError(f"ZooKeeper at {hosts} does not answer or does not end the session: {problem}")
        time.sleep(_PAUSE_S)


def _take_over_and_close(server: tuple[str, int], session_id: int) -> bool:
    """Connect as the session and close it in one message, for between two its owner may take it back.

    Return whether the server knew the session; raises OSError if the server is not there or hangs up.
    """
    take_over = Connect(0, 0, round(TAKEOVER_TIMEOUT_S * 1000), session_id, password(session_id), False)
    close = int_int_struct.pack(_XID, Close.type)
    with socket.create_connection(server, TAKEOVER_TIMEOUT_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(_framed(take_over.serialize()) + _framed(close))
        accepted, _ = Connect.deserialize(_unframed(answers), 0)
        if accepted.session_id != session_id:
            return False
        answers.read()  # until the server hangs up, for it has closed the session or its owner has come back
        return True


def _framed(message: bytes) -> bytes:
    return bytes(int_struct.pack(len(message))) + message


def _unframed(answers: BinaryIO) -> bytes:
    size: int = int_struct.unpack(answers.read(int_struct.size))[0]
    return answers.read(size)
