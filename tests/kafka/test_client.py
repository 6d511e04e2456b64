"""A connection to a broker: which version it asks in, and what it makes of a broker that answers badly or never."""

import asyncio
import struct
from collections.abc import Callable

import pytest

from harness.kafka.apis import API_VERSIONS, FIND_COORDINATOR, METADATA
from harness.kafka.client import Connection, NoAnswer
from harness.kafka.codec import encode
from harness.kafka.tcp import Tcp
from tests.kafka.test_brokers import answering, framed

LONG_S = 120.0


class Broker:
    """Implements Stream: a broker that knows an API up to a version, and notes what it is asked."""

    closed = False

    def __init__(self, known: dict[int, int]) -> None:
        self.known = known
        self.asked: list[tuple[int, int]] = []

    async def exchange(self, frame: bytes) -> bytes:
        key, version = struct.unpack_from(">hh", frame)
        self.asked.append((key, version))
        if key == API_VERSIONS.key:
            keys = [{"api_key": key, "min_version": 0, "max_version": last} for key, last in self.known.items()]
            return frame[4:8] + encode(API_VERSIONS.response, {"error_code": 0, "api_keys": keys}, version)
        coordinator = {
            "throttle_time_ms": 0,
            "error_code": 0,
            "error_message": "",
            "node_id": 1,
            "host": "h",
            "port": 2,
        }
        return frame[4:8] + encode(FIND_COORDINATOR.response, coordinator, version)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("latest", "asked"),
    [
        pytest.param(0, 0, id="an older broker is asked in its latest version"),
        pytest.param(6, 2, id="a newer one in ours"),
    ],
)
async def test_the_latest_version_that_both_know_is_used(latest: int, asked: int) -> None:
    broker = Broker({FIND_COORDINATOR.key: latest})
    connection = Connection(broker, "h:1", "me")
    await connection.negotiate(timeout_s=LONG_S)
    answer = await connection.request(FIND_COORDINATOR, {"key": "g", "key_type": 0}, 2, timeout_s=LONG_S)
    assert (answer["host"], answer["port"]) == ("h", 2)
    assert broker.asked == [(API_VERSIONS.key, 0), (FIND_COORDINATOR.key, asked)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(lambda _: b"", "closed before the response", id="none"),
        pytest.param(lambda _: b"\xff\xff\xff\xff", "a response frame of -1 bytes", id="a length that is none"),
        pytest.param(framed(struct.pack(">i", 7)), "another request than number 1", id="one to another request"),
        pytest.param(framed(struct.pack(">i", 1)), "unpack_from", id="one that is cut off"),
    ],
)
async def test_a_broker_that_answers_badly_gives_no_answer(answer: Callable[[bytes], bytes], reason: str) -> None:
    async with answering(answer) as port:
        peer = f"127.0.0.1:{port}"
        connection = Connection(await Tcp().connect("127.0.0.1", port, timeout_s=LONG_S), peer, "me")
        with pytest.raises(NoAnswer, match=f"MetadataRequest to {peer}: .*{reason}"):
            await connection.request(METADATA, {"topics": []}, 1, timeout_s=LONG_S)
        assert connection.closed
        with pytest.raises(NoAnswer, match="the connection is closed"):
            await connection.request(METADATA, {"topics": []}, 1, timeout_s=LONG_S)


async def test_an_answer_that_does_not_come_is_given_up_in_time() -> None:
    class Mute(Broker):
        async def exchange(self, frame: bytes) -> bytes:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    connection = Connection(Mute({}), "h:1", "me")
    with pytest.raises(NoAnswer, match=r"MetadataRequest to h:1: no response within 0\.001 s"):
        await connection.request(METADATA, {"topics": []}, 1, timeout_s=0.001)
    assert connection.closed


async def test_where_no_broker_listens_there_is_no_stream() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(NoAnswer, match=f"connecting to 127.0.0.1:{port}"):
        await Tcp().connect("127.0.0.1", port, timeout_s=LONG_S)
