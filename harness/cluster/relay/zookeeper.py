"""What do a ZooKeeper client and server say to each other, as far as a relay must know to lose one reply?

Every message is a frame behind its length. A client's first is its session; every later one has a number and a kind,
and its reply has that number. Sources: ZooKeeper's `ZooDefs.OpCode`, and `zookeeper.jute`.
"""

import struct
from collections.abc import Iterator

from harness.cluster.links.lost_replies import LostReplies
from harness.cluster.relay.frames import Frames

_LENGTH = struct.Struct(">i")
_HEAD = struct.Struct(">ii")
_MULTI_HEAD = struct.Struct(">ibi")
MULTI = 14
VERBS = {1: "create", 2: "delete", 5: "set", 13: "check", 15: "create", 19: "create", 21: "create"}
"""What a kind of request, or a part of one, does; create comes with a stat, as a container, and for a time, too."""
CHECK = 13


class Conversation:
    """What a client and a server say over one connection, and whether a reply is to be lost now."""

    def __init__(self, client: str, replies: LostReplies) -> None:
        self.requests = Frames()
        self.answers = Frames()
        self._client = client
        self._replies = replies
        self._has_session = False
        self._awaited: int | None = None

    def reaches_server(self, frame: bytes) -> bool:
        """Return whether a frame is to be handed to the server; the connection is to be lost if not."""
        if not self._has_session:
            self._has_session = True
            return True
        writes = writes_of(frame)
        carried_out = self._replies.take(self._client, writes) if writes else None
        if carried_out:
            self._awaited = number_of(frame)
        return carried_out is not False

    def reaches_client(self, frame: bytes) -> bool:
        """Return whether a frame is to be handed to the client; the connection is to be lost if not."""
        return self._awaited is None or number_of(frame) != self._awaited


def number_of(frame: bytes) -> int | None:
    """Return the number that a request and its reply share; None for a frame that is neither."""
    if len(frame) < 2 * _LENGTH.size:
        return None
    (number,) = _LENGTH.unpack_from(frame, _LENGTH.size)
    return int(number)


def writes_of(request: bytes) -> list[tuple[str, str]]:
    """Return what a request is to write, each a verb and a path; an empty list for one that writes nothing."""
    body = request[_LENGTH.size :]
    try:
        _, kind = _HEAD.unpack_from(body)
        if kind == MULTI:
            return list(_parts(body[_HEAD.size :]))
        return [(VERBS[kind], _path(body, _HEAD.size))] if kind in VERBS and kind != CHECK else []
    except (struct.error, UnicodeDecodeError):
        return []


def _parts(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield what a multi is made of. Its parts have no length: each is skipped as far as its fields go."""
    at = 0
    while True:
        kind, done, _ = _MULTI_HEAD.unpack_from(body, at)
        if done or kind not in VERBS:
            return
        at += _MULTI_HEAD.size
        verb, path = VERBS[kind], _path(body, at)
        yield verb, path
        at = _after_field(body, at)
        if verb == "create":
            at = _after_field(body, at)
            at = _after_acl(body, at) + _LENGTH.size  # its flags
            at += 8 if kind == 21 else 0  # and for how long
        elif verb == "set":
            at = _after_field(body, at) + _LENGTH.size
        else:
            at += _LENGTH.size


def _path(body: bytes, at: int) -> str:
    return body[at + _LENGTH.size : _after_field(body, at)].decode()


def _after_field(body: bytes, at: int) -> int:
    (length,) = _LENGTH.unpack_from(body, at)
    return at + _LENGTH.size + max(0, int(length))


def _after_acl(body: bytes, at: int) -> int:
    (count,) = _LENGTH.unpack_from(body, at)
    at += _LENGTH.size
    for _ in range(max(0, count)):
        at = _after_field(body, _after_field(body, at + _LENGTH.size))  # permissions, scheme, id
    return at
