"""Ending a ZooKeeper session of somebody else: its password is a pure function of its id.

`ZooKeeperServer.generatePasswd` fills 16 bytes from a `java.util.Random` seeded with the id and a constant, and
`checkPasswd` computes it again; so whoever knows the id can take the session over and close it. To its owner this
looks exactly like an expiry: the connection drops, and the next one is told that the session is gone.
"""

import asyncio

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from harness.errors import ClusterError

SUPER_SECRET = 0xB3415C00
"""`ZooKeeperServer.superSecret`."""
PASSWORD_BYTES = 16
TAKEOVER_TIMEOUT_S = 5.0

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK_48 = (1 << 48) - 1
_MASK_64 = (1 << 64) - 1


def password(session_id: int) -> bytes:
    """Return the password that the server gave to a session."""
    seed = (((session_id ^ SUPER_SECRET) & _MASK_64) ^ _MULTIPLIER) & _MASK_48
    result = bytearray()
    while len(result) < PASSWORD_BYTES:
        seed = (seed * _MULTIPLIER + _INCREMENT) & _MASK_48
        result += (seed >> 16).to_bytes(4, "little")
    return bytes(result)


def to_text(session_id: int) -> str:
    """Return a session id as the history writes it: hexadecimal, empty for none."""
    return f"0x{session_id & _MASK_64:x}" if session_id else ""


def from_text(session: str) -> int:
    """Return the signed 64-bit session id of its hexadecimal text."""
    number = int(session, 16)
    return number - (1 << 64) if number >= 1 << 63 else number


async def expire(hosts: str, session: str) -> bool:
    """End a session, given in hexadecimal; return False when it was over already, and nothing happened.

    Raises:
        ClusterError: ZooKeeper does not answer.
    """
    return await asyncio.to_thread(_take_over_and_close, hosts, from_text(session))


def _take_over_and_close(hosts: str, session_id: int) -> bool:
    client = KazooClient(hosts=hosts, client_id=(session_id, password(session_id)), timeout=TAKEOVER_TIMEOUT_S)
    try:
        client.start(timeout=TAKEOVER_TIMEOUT_S)
        # The server refuses an id that it does not know, and kazoo then opens a new session by itself.
        return bool(client.client_id[0] == session_id)
    except (KazooException, KazooTimeoutError) as error:
        raise ClusterError(f"ZooKeeper at {hosts} does not answer: {error!r}") from error
    finally:
        client.stop()  # ends the session that the client has now: the one taken over
        client.close()
