"""What the relay changes of how ZooKeeper servers introduce themselves to each other."""

import struct

import pytest

from harness.cluster.relay.election import Introduction


def message(address: bytes, version: int = -65536) -> bytes:
    return struct.pack(">qqi", version, 3, len(address)) + address


@pytest.mark.parametrize(
    ("sent", "heard"),
    [
        pytest.param(message(b"127.0.0.1:3888"), message(b"0.0.0.0:3888"), id="an address"),
        pytest.param(message(b"zookeeper-3:3888"), message(b"0.0.0.0:3888"), id="a name"),
        pytest.param(message(b"[::1]:3888"), message(b"0.0.0.0:3888"), id="an address of the sixth version"),
        pytest.param(message(b"a:1|b:2", -65535), message(b"0.0.0.0:2", -65535), id="several addresses"),
        pytest.param(message(b"a:1") + b"votes", message(b"0.0.0.0:1") + b"votes", id="more that came with it"),
        pytest.param(struct.pack(">qq", 3, 0) + b"old votes", struct.pack(">qq", 3, 0) + b"old votes", id="a number"),
        pytest.param(message(b"", -7), message(b"", -7), id="another version"),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 1000], ids=["byte by byte", "in pieces", "at once"])
def test_a_server_that_introduces_itself_names_no_address_past_the_relay(sent: bytes, heard: bytes, step: int) -> None:
    introduction = Introduction()
    pieces = [sent[start : start + step] for start in range(0, len(sent), step)]
    assert b"".join(out for piece in pieces for out in introduction.of(piece)) == heard
    assert introduction.of(b"later") == [b"later"]
