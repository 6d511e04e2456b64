"""Ends another client's ZooKeeper session, as its password is a pure function of its id.

`ZooKeeperServer.generatePasswd` fills 16 bytes from a `java.util.Random` seeded with the id and a constant, and
`checkPasswd` computes it again; so a client that knows the id can take the session over and close it. For its owner
this is exactly an expiry: the connection breaks, and on the next one the server answers that the session has expired.
"""

import asyncio
import struct
from typing import BinaryIO

from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import Close, Connect, int_int_struct, int_struct

from harness.errors import ClusterError
from harness.kafka.security.settings import ZookeeperSecurity
from harness.system.waiting import until
from harness.zookeeper.secured import OPEN, connected

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
    """Return a session id as in the history: unsigned hexadecimal, empty for none."""
    return f"0x{session_id & _MASK_64:x}" if session_id else ""


def from_text(session: str) -> int:
    """Return the signed 64-bit session id of its hexadecimal text."""
    number = int(session, 16)
    return number - (1 << 64) if number >= 1 << 63 else number


async def expire(hosts: str, session: str, security: ZookeeperSecurity = OPEN) -> None:
    """End a session, given in hexadecimal; no-op if it has ended.

    Raises:
        DeadlineError: ZooKeeper does not answer, or does not end it.
    """
    servers, _ = collect_hosts(hosts)

    async def ended() -> bool:
        problem: Exception | None = None
        for server in servers:
            try:
                if await asyncio.to_thread(_closed_before, server, from_text(session), security):
                    return True
            except (OSError, struct.error) as error:
                problem = error
        if problem is not None:
            raise ClusterError(f"ZooKeeper at {hosts} does not answer: {problem!r}")
        return False  # closed now or by its owner before; the next server asked says which

    what = f"the end of session {session}"
    await until(ended, bool, what=what, timeout_s=TAKEOVER_TIMEOUT_S, every_s=_PAUSE_S)


def _closed_before(server: tuple[str, int], session_id: int, security: ZookeeperSecurity) -> bool:
    """Connect as the session and close it in one message, as between two its owner could take it back.

    Return whether the server does not know the session; raises OSError or struct.error if it does not answer.
    """
    take_over = Connect(0, 0, round(TAKEOVER_TIMEOUT_S * 1000), session_id, password(session_id), False)
    close = int_int_struct.pack(_XID, Close.type)
    with connected(server, security, TAKEOVER_TIMEOUT_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(_framed(take_over.serialize()) + _framed(close))
        accepted, _ = Connect.deserialize(_unframed(answers), 0)
        if accepted.session_id != session_id:
            return True
        answers.read()  # until the server hangs up: the session is closed, or its owner is back
        return False


def _framed(message: bytes) -> bytes:
    return bytes(int_struct.pack(len(message))) + message


def _unframed(answers: BinaryIO) -> bytes:
    size: int = int_struct.unpack(answers.read(int_struct.size))[0]
    return answers.read(size)
