"""How long what is sent in virtual time would be on a wire."""

from typing import Any

import pytest

from harness.broker.wire.codec import encode_request, encode_response
from harness.broker.wire.messages import ApiKey, MetadataRequest, MetadataResponse
from harness.broker.zookeeper.client import Create, Delete, Set, WatchType
from harness.simulation.network import CLOSED, SimulatedRequest, SimulatedResponse
from harness.simulation.sizes import size_of
from harness.simulation.zookeeper.ensemble import Answer, Event, Request

ASKED = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
ANSWERED = MetadataResponse(brokers=[], cluster_id="x" * 100, controller_id=1, topics=[])
PATH = "/brokers/ids/1"


@pytest.mark.parametrize(
    ("item", "size"),
    [
        pytest.param(b"12345", 5, id="bytes"),
        pytest.param(None, 0, id="a handshake"),
        pytest.param(CLOSED, 0, id="the end of a connection"),
        pytest.param(
            SimulatedRequest(7, 1, "me", ApiKey.METADATA, ASKED, None),
            len(encode_request(ASKED, 1, correlation_id=7, client_id="me")),
            id="a request",
        ),
        pytest.param(SimulatedRequest(7, 1, "me", ApiKey.METADATA, None, b"123"), 3, id="the frame of one"),
        pytest.param(
            SimulatedResponse(7, 2, ANSWERED, None),
            len(encode_response(ANSWERED, 2, correlation_id=7)),
            id="a response",
        ),
        pytest.param(SimulatedResponse(7, 2, None, b"123"), 3, id="a response as a frame"),
        pytest.param(Request(1, "get", PATH), len(PATH), id="a question to ZooKeeper"),
        pytest.param(
            Request(
                1,
                "multi",
                ops=(Create(path="/a", data=b"123"), Set(path="/b", data=b"4", version=-1), Delete(path="/c")),
            ),
            10,
            id="writes to ZooKeeper",
        ),
        pytest.param(Answer(1, (b"123", object())), 3, id="data of ZooKeeper, with its stat"),
        pytest.param(Answer(1, ["0", "12"]), 3, id="names of children"),
        pytest.param(Answer(1, None), 0, id="an answer of nothing"),
        pytest.param(Event(WatchType.DATA, PATH), len(PATH), id="a watch that fired"),
    ],
)
def test_the_length_is_that_of_the_frame_or_of_paths_and_data(item: Any, size: int) -> None:
    assert size_of(item) == size
