"""How can the harness end another client's ZooKeeper session? Its password is a pure function of its id.

`ZooKeeperServer.generatePasswd` fills 16 bytes from a `java.util.Random` seeded with the id and a constant, and
`checkPasswd` computes it again; so a client that knows the id can take the session over and close it. For its owner
this is exactly an expiry: the connection breaks, and on the next one the server answers that the session has expired.
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
        ClusterError: ZooKeeper does not answer.
    """
    return await asyncio.to_thread(_take_over_and_close, hosts, from_text(session))


def _take_over_and_close(hosts: str, session_id: int) -> bool:
    client = KazooClient(hosts=hosts, client_id=(session_id, password(session_id)), timeout=TAKEOVER_TIMEOUT_S)
    try:
        client.start(timeout=TAKEOVER_TIMEOUT_S)
        # When the server does not know the id, kazoo opens a new session by itself.
        return bool(client.client_id[0] == session_id)
    except (KazooException, KazooTimeoutError) as error:
        raise ClusterError(f"ZooKeeper at {hosts} does not answer: {error!r}") from error
    finally:
        client.stop()  # ends the session that the client has now: the one taken over
        client.close()
