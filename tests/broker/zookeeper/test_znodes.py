import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.zookeeper import znodes
from harness.broker.zookeeper.znodes import (
    BrokerRegistration,
    ControllerZnode,
    MalformedZnode,
    PartitionStateZnode,
    TopicAssignment,
)

REGISTRATION = BrokerRegistration(
    broker_id=1,
    endpoints=(Endpoint(name="PLAINTEXT", host="h", port=9092), Endpoint(name="REPL", host="::1", port=9093)),
    rack="r1",
    timestamp_ms=1700000000000,
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(
            ControllerZnode(broker_id=0, timestamp_ms=1585098432431).encode(),
            {"version": 2, "brokerid": 0, "timestamp": "1585098432431", "kraftControllerEpoch": -1},
            id="the controller, its timestamp a text",
        ),
        pytest.param(
            REGISTRATION.encode(),
            {
                "version": 4,
                "host": "h",
                "port": 9092,
                "jmx_port": -1,
                "timestamp": "1700000000000",
                "endpoints": ["PLAINTEXT://h:9092", "REPL://[::1]:9093"],
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "REPL": "PLAINTEXT"},
                "rack": "r1",
            },
            id="a broker with a rack",
        ),
        pytest.param(
            BrokerRegistration(
                broker_id=1, endpoints=(Endpoint(name="REPL", host="h", port=1),), timestamp_ms=0
            ).encode(),
            {
                "version": 4,
                "host": None,
                "port": -1,
                "jmx_port": -1,
                "timestamp": "0",
                "endpoints": ["REPL://h:1"],
                "listener_security_protocol_map": {"REPL": "PLAINTEXT"},
            },
            id="a broker without a PLAINTEXT listener or rack",
        ),
        pytest.param(
            PartitionStateZnode(leader=1, leader_epoch=2, isr=(3, 1), controller_epoch=4).encode(),
            {"controller_epoch": 4, "leader": 1, "version": 1, "leader_epoch": 2, "isr": [3, 1]},
            id="a partition's state, the ISR in its order",
        ),
        pytest.param(
            TopicAssignment(partitions={10: (1,), 2: (2, 3)}).encode(),
            {"version": 2, "partitions": {"2": [2, 3], "10": [1]}, "adding_replicas": {}, "removing_replicas": {}},
            id="a topic without an id",
        ),
        pytest.param(
            TopicAssignment(partitions={0: (1, 2)}, topic_id="abc", adding={0: (2,)}, removing={0: (1,)}).encode(),
            {
                "version": 3,
                "partitions": {"0": [1, 2]},
                "topic_id": "abc",
                "adding_replicas": {"0": [2]},
                "removing_replicas": {"0": [1]},
            },
            id="a topic with an id, being reassigned",
        ),
        pytest.param(
            znodes.encode_config({"b": "2", "a": "1"}),
            {"version": 1, "config": {"a": "1", "b": "2"}},
            id="a configuration",
        ),
        pytest.param(
            znodes.encode_isr_change([("t", 0), ("u", 3)]),
            {"version": 1, "partitions": [{"topic": "t", "partition": 0}, {"topic": "u", "partition": 3}]},
            id="an ISR change",
        ),
        pytest.param(
            znodes.encode_cluster_id("x"), {"version": "1", "id": "x"}, id="the cluster's id, its version a text"
        ),
    ],
)
def test_a_znode_is_written_as_kafka_writes_it(content: bytes, expected: dict[str, Any]) -> None:
    assert json.loads(content) == expected
    assert b" " not in content


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(
            lambda: ControllerZnode.decode(b'{"version":1,"brokerid":3,"timestamp":"5"}'),
            ControllerZnode(broker_id=3, timestamp_ms=5),
            id="a controller of version 1",
        ),
        pytest.param(
            lambda: BrokerRegistration.decode(1, REGISTRATION.encode()), REGISTRATION, id="a broker of our own"
        ),
        pytest.param(
            lambda: BrokerRegistration.decode(
                2, b'{"version":5,"features":{},"endpoints":["REPL://h:1"],"host":null,"port":-1,"rack":null}'
            ),
            BrokerRegistration(broker_id=2, endpoints=(Endpoint(name="REPL", host="h", port=1),), timestamp_ms=0),
            id="a broker of version 5",
        ),
        pytest.param(
            lambda: BrokerRegistration.decode(2, b'{"version":4,"endpoints":["REPL://::1:9"]}'),
            BrokerRegistration(broker_id=2, endpoints=(Endpoint(name="REPL", host="::1", port=9),), timestamp_ms=0),
            id="an address of IPv6 without brackets",
        ),
        pytest.param(
            lambda: BrokerRegistration.decode(2, b'{"version":1,"host":"h","port":7,"jmx_port":-1}'),
            BrokerRegistration(broker_id=2, endpoints=(Endpoint(name="PLAINTEXT", host="h", port=7),), timestamp_ms=0),
            id="a broker of version 1",
        ),
        pytest.param(
            lambda: TopicAssignment.decode("t", b'{"version":1,"partitions":{"1":[2],"0":[1]}}'),
            TopicAssignment(partitions={0: (1,), 1: (2,)}),
            id="a topic of version 1",
        ),
        pytest.param(
            lambda: TopicAssignment.decode("t", TopicAssignment(partitions={0: (1,)}, topic_id="i").encode()),
            TopicAssignment(partitions={0: (1,)}, topic_id="i"),
            id="a topic of version 3",
        ),
        pytest.param(lambda: znodes.decode_controller_epoch(b"7"), 7, id="a controller epoch"),
        pytest.param(
            lambda: znodes.decode_isr_change("/p", znodes.encode_isr_change([("t", 1)])), [("t", 1)], id="an ISR change"
        ),
        pytest.param(
            lambda: znodes.decode_config("/p", znodes.encode_config({"a": "1"})), {"a": "1"}, id="a configuration"
        ),
        pytest.param(lambda: znodes.decode_cluster_id(znodes.encode_cluster_id("x")), "x", id="the cluster's id"),
    ],
)
def test_a_znode_of_any_version_is_read(read: Callable[[], object], expected: object) -> None:
    assert read() == expected


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda data: ControllerZnode.decode(data), id="controller"),
        pytest.param(lambda data: BrokerRegistration.decode(1, data), id="broker"),
        pytest.param(lambda data: PartitionStateZnode.decode("t", 0, data), id="partition"),
        pytest.param(lambda data: TopicAssignment.decode("t", data), id="topic"),
        pytest.param(lambda data: znodes.decode_config("/p", data), id="configuration"),
        pytest.param(lambda data: znodes.decode_isr_change("/p", data), id="ISR change"),
        pytest.param(lambda data: znodes.decode_cluster_id(data), id="cluster id"),
        pytest.param(lambda data: znodes.decode_controller_epoch(data), id="controller epoch"),
    ],
)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(
            b'{"brokerid":"x","endpoints":["nonsense"],"leader":{},"partitions":{"a":1},"config":[]}', id="wrong types"
        ),
    ],
)
def test_a_malformed_znode_is_named(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/"):
        read(data)
