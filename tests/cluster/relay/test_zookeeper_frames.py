"""What the relay understands of ZooKeeper's protocol, against the bytes that kazoo makes."""

import struct

import pytest
from kazoo.protocol.serialization import (
    CheckVersion,
    Close,
    Connect,
    Create,
    Create2,
    Delete,
    Exists,
    GetData,
    Ping,
    SetData,
    Transaction,
)
from kazoo.security import OPEN_ACL_UNSAFE

from harness.cluster.links.lost_replies import LostReplies
from harness.cluster.relay.frames import Frames
from harness.cluster.relay.zookeeper import Conversation, number_of, writes_of

ACL = list(OPEN_ACL_UNSAFE) * 2
CREATE = Create("/brokers/ids/1", b"{}", ACL, 1)
MULTI = Transaction(
    [
        CheckVersion("/controller_epoch", 3),
        CREATE,
        SetData("/controller", b"", 0),
        Create2("/é", b"", ACL, 0),
        Delete("/a", 1),
    ]
)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(number: int, operation: object) -> bytes:
    """Return a request as kazoo sends it."""
    return framed(struct.pack(">ii", number, operation.type) + bytes(operation.serialize()))  # type: ignore[attr-defined]


def reply(number: int) -> bytes:
    return framed(struct.pack(">iqi", number, 7, 0))


SESSION = framed(bytes(Connect(0, 1 << 32, 4000, 0, b"\0" * 16, False).serialize()))
"""Its zxid, of ZooKeeper's first epoch, stands where later requests have the kind `create`."""


@pytest.mark.parametrize(
    ("operation", "writes"),
    [
        pytest.param(CREATE, [("create", "/brokers/ids/1")], id="a create"),
        pytest.param(Create2("/a", b"x", ACL, 0), [("create", "/a")], id="a create that answers with a stat"),
        pytest.param(SetData("/controller_epoch", b"4", 3), [("set", "/controller_epoch")], id="a set"),
        pytest.param(Delete("/controller", -1), [("delete", "/controller")], id="a delete"),
        pytest.param(
            MULTI,
            [
                ("check", "/controller_epoch"),
                ("create", "/brokers/ids/1"),
                ("set", "/controller"),
                ("create", "/é"),
                ("delete", "/a"),
            ],
            id="a multi, part by part",
        ),
        pytest.param(GetData("/controller", None), [], id="a read"),
        pytest.param(Exists("/controller", None), [], id="a question"),
        pytest.param(CheckVersion("/controller_epoch", 3), [], id="a check alone"),
    ],
)
def test_what_a_request_writes(operation: object, writes: list[tuple[str, str]]) -> None:
    assert writes_of(request(5, operation)) == writes


@pytest.mark.parametrize("operation", [Ping, Close], ids=["a ping", "the end of a session"])
def test_what_has_no_body_writes_nothing(operation: object) -> None:
    assert writes_of(framed(struct.pack(">ii", -2, operation.type))) == []  # type: ignore[attr-defined]


def test_a_torn_request_writes_nothing() -> None:
    whole = request(5, MULTI)
    assert [writes_of(whole[:end]) for end in range(12)] == [[]] * 12


@pytest.mark.parametrize("size", [1, 3, 4, 5, 64, 1000])
def test_frames_are_whole_however_they_come(size: int) -> None:
    sent = [SESSION, request(1, CREATE), request(2, MULTI), reply(3), framed(b"")]
    stream, frames = b"".join(sent), Frames()
    assert [each for at in range(0, len(stream), size) for each in frames.of(stream[at : at + size])] == sent


def test_a_command_of_four_letters_is_passed_on_as_it_comes() -> None:
    assert Frames().of(b"ruok") == [b"ruok"]


def test_only_requests_and_replies_have_a_number() -> None:
    assert [number_of(reply(9)), number_of(framed(b""))] == [9, None]


@pytest.mark.parametrize(
    ("carried_out", "at_server", "lost"),
    [
        pytest.param(True, [True, True, True, True], "create /brokers/ids/1 (carried out)", id="carried out"),
        pytest.param(False, [True, True, False, True], "create /brokers/ids/1 (not carried out)", id="not carried out"),
    ],
)
def test_the_reply_to_the_next_write_is_lost_once(carried_out: bool, at_server: list[bool], lost: str) -> None:
    replies = LostReplies()
    replies.arm("broker-1", carried_out=carried_out)
    conversation = Conversation("broker-1", replies)
    requests = [SESSION, request(1, Exists("/a", None)), request(2, CREATE), request(3, CREATE)]
    assert [conversation.reaches_server(each) for each in requests] == at_server
    assert [conversation.reaches_client(each) for each in (reply(1), reply(-1), reply(2))] == [
        True,
        True,
        not carried_out,
    ]
    assert replies.lost == {"broker-1": lost}


def test_writes_before_it_are_answered() -> None:
    replies = LostReplies()
    replies.arm("broker-1", carried_out=True, answered=2)
    taken = [replies.take("broker-1", [("create", f"/{number}")]) for number in range(4)]
    assert taken == [None, None, True, None]
    assert replies.lost == {"broker-1": "create /2 (carried out)"}


def test_no_reply_is_lost_of_others_or_when_none_is_to_be() -> None:
    replies = LostReplies()
    replies.arm("broker-1", carried_out=False)
    other, own = Conversation("broker-0", replies), Conversation("broker-1", replies)
    assert all(other.reaches_server(each) for each in (SESSION, request(1, CREATE)))
    replies.disarm("broker-1")
    assert all(own.reaches_server(each) for each in (SESSION, request(1, CREATE)))
