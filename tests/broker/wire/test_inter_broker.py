"""The specs of the messages between brokers, held against bytes laid out by hand (KIP-380, 455, 482, 570)."""

import ast
from pathlib import Path
from typing import Any

import pytest

from harness.broker.handlers.apis import APIS
from harness.broker.wire import inter_broker
from harness.broker.wire.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from harness.broker.wire.messages import (
    ApiKey,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TOPIC = LeaderAndIsrRequest.LeaderAndIsrTopicState
STOP_TOPIC = StopReplicaRequest.StopReplicaTopicState
META_TOPIC = UpdateMetadataRequest.UpdateMetadataTopicState
LIVE = UpdateMetadataRequest.UpdateMetadataBroker
MARKER, MARKED = WriteTxnMarkersRequest.WritableTxnMarker, WriteTxnMarkersResponse.WritableTxnMarkerResult


def header(api_key: str, version: str) -> str:
    return f"{api_key} {version} 00000011 0001 63 00"  # correlation id 17, client id "c", no tagged fields


REQUEST_BYTES = [
    pytest.param(
        LeaderAndIsrRequest(
            controller_id=1,
            controller_epoch=5,
            broker_epoch=0x1122334455,
            topic_states=[
                TOPIC(
                    topic_name="ab",
                    partition_states=[
                        TOPIC.LeaderAndIsrPartitionState(
                            partition_index=3,
                            controller_epoch=4,
                            leader=2,
                            leader_epoch=9,
                            isr=[2, 0],
                            zk_version=11,
                            replicas=[0, 1, 2],
                            adding_replicas=[7],
                            removing_replicas=[],
                            is_new=True,
                        )
                    ],
                )
            ],
            live_leaders=[LeaderAndIsrRequest.LeaderAndIsrLiveLeader(broker_id=2, host_name="h2", port=9093)],
        ),
        4,
        header("0004", "0004") + "00000001 00000005 0000001122334455"  # controller id and epoch, broker epoch
        "02 03 6162"  # one topic, its name
        "02 00000003 00000004 00000002 00000009"  # one partition: index, controller epoch, leader, leader epoch
        "03 00000002 00000000 0000000b"  # ISR, version of the znode
        "04 00000000 00000001 00000002"  # replicas
        "02 00000007 01 01"  # adding, removing, is new
        "00 00"  # tagged fields of the partition and of the topic
        "02 00000002 03 6832 00002385 00"  # one live leader: id, host, port, tagged fields
        "00",
        id="LeaderAndIsr v4",
    ),
    pytest.param(
        StopReplicaRequest(
            controller_id=1,
            controller_epoch=5,
            broker_epoch=7,
            delete_partitions=True,
            topics=[StopReplicaRequest.StopReplicaTopicV1(name="ab", partition_indexes=[0, 4])],
        ),
        2,
        header("0005", "0002")
        + "00000001 00000005 0000000000000007 01"  # controller id and epoch, broker epoch, delete
        "02 03 6162 03 00000000 00000004 00"  # one topic, its name and partitions, tagged fields
        "00",
        id="StopReplica v2",
    ),
    pytest.param(
        StopReplicaRequest(
            controller_id=1,
            controller_epoch=5,
            broker_epoch=7,
            topic_states=[
                STOP_TOPIC(
                    topic_name="ab",
                    partition_states=[
                        STOP_TOPIC.StopReplicaPartitionState(partition_index=4, leader_epoch=-2, delete_partition=True)
                    ],
                )
            ],
        ),
        3,
        header("0005", "0003") + "00000001 00000005 0000000000000007"  # controller id and epoch, broker epoch
        "02 03 6162"  # one topic, its name
        "02 00000004 fffffffe 01 00"  # one partition: index, leader epoch, delete, tagged fields
        "00 00",
        id="StopReplica v3",
    ),
    pytest.param(
        UpdateMetadataRequest(
            controller_id=1,
            controller_epoch=5,
            broker_epoch=7,
            topic_states=[
                META_TOPIC(
                    topic_name="ab",
                    partition_states=[
                        META_TOPIC.UpdateMetadataPartitionState(
                            partition_index=3,
                            controller_epoch=4,
                            leader=-2,
                            leader_epoch=9,
                            isr=[2],
                            zk_version=11,
                            replicas=[0, 2],
                            offline_replicas=[0],
                        )
                    ],
                )
            ],
            live_brokers=[
                LIVE(
                    id=2,
                    endpoints=[LIVE.UpdateMetadataEndpoint(port=9093, host="h2", listener="R", security_protocol=0)],
                    rack=None,
                ),
                LIVE(id=3, endpoints=[], rack="r"),
            ],
        ),
        6,
        header("0006", "0006") + "00000001 00000005 0000000000000007"  # controller id and epoch, broker epoch
        "02 03 6162"  # one topic, its name
        "02 00000003 00000004 fffffffe 00000009"  # one partition: index, controller epoch, leader, leader epoch
        "02 00000002 0000000b"  # ISR, version of the znode
        "03 00000000 00000002 02 00000000"  # replicas, offline replicas
        "00 00"  # tagged fields of the partition and of the topic
        "03 00000002 02 00002385 03 6832 02 52 0000 00 00 00"  # a broker: id; port, host, listener, protocol; no rack
        "00000003 01 02 72 00"  # a broker without endpoints, with a rack
        "00",
        id="UpdateMetadata v6",
    ),
    pytest.param(
        ControlledShutdownRequest(broker_id=2, broker_epoch=7),
        3,
        header("0007", "0003") + "00000002 0000000000000007 00",
        id="ControlledShutdown v3",
    ),
    pytest.param(
        WriteTxnMarkersRequest(
            markers=[
                MARKER(
                    producer_id=7,
                    producer_epoch=2,
                    transaction_result=True,
                    topics=[MARKER.WritableTxnMarkerTopic(name="ab", partition_indexes=[3])],
                    coordinator_epoch=5,
                )
            ]
        ),
        0,
        "001b 0000 00000011 0001 63"  # no tagged fields
        "00000001 0000000000000007 0002 01 00000001 0002 6162 00000001 00000003 00000005",
        id="WriteTxnMarkers v0",
    ),
]

RESPONSE_BYTES = [
    pytest.param(
        ApiKey.LEADER_AND_ISR,
        LeaderAndIsrResponse(
            error_code=11,
            partition_errors=[
                LeaderAndIsrResponse.LeaderAndIsrPartitionError(topic_name="ab", partition_index=3, error_code=56)
            ],
        ),
        4,
        "00000011 00 000b 02 03 6162 00000003 0038 00 00",
        id="LeaderAndIsr v4",
    ),
    pytest.param(
        ApiKey.STOP_REPLICA,
        StopReplicaResponse(
            error_code=0,
            partition_errors=[
                StopReplicaResponse.StopReplicaPartitionError(topic_name="ab", partition_index=3, error_code=74)
            ],
        ),
        3,
        "00000011 00 0000 02 03 6162 00000003 004a 00 00",
        id="StopReplica v3",
    ),
    pytest.param(
        ApiKey.UPDATE_METADATA, UpdateMetadataResponse(error_code=77), 6, "00000011 00 004d 00", id="UpdateMetadata v6"
    ),
    pytest.param(
        ApiKey.CONTROLLED_SHUTDOWN,
        ControlledShutdownResponse(
            error_code=0,
            remaining_partitions=[ControlledShutdownResponse.RemainingPartition(topic_name="ab", partition_index=3)],
        ),
        3,
        "00000011 00 0000 02 03 6162 00000003 00 00",
        id="ControlledShutdown v3",
    ),
    pytest.param(
        ApiKey.WRITE_TXN_MARKERS,
        WriteTxnMarkersResponse(
            markers=[
                MARKED(
                    producer_id=7,
                    topics=[
                        MARKED.WritableTxnMarkerTopicResult(
                            name="ab",
                            partitions=[
                                MARKED.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult(
                                    partition_index=3, error_code=47
                                )
                            ],
                        )
                    ],
                )
            ]
        ),
        0,
        "00000011 00000001 0000000000000007 00000001 0002 6162 00000001 00000003 002f",
        id="WriteTxnMarkers v0",
    ),
]


@pytest.mark.parametrize(("message", "version", "layout"), REQUEST_BYTES)
def test_request_has_kafkas_bytes(message: Any, version: int, layout: str) -> None:
    frame = encode_request(message, version, correlation_id=17, client_id="c")

    assert frame[4:].hex() == bytes.fromhex(layout).hex()


@pytest.mark.parametrize(("message", "version", "layout"), REQUEST_BYTES)
def test_request_is_read_from_kafkas_bytes(message: Any, version: int, layout: str) -> None:
    header = decode_request_header(bytes.fromhex(layout))

    decoded = decode_request(APIS[ApiKey(header.api_key)].request, header)
    assert decoded.to_dict() == type(message)(version=version, **fields_of(message)).to_dict()


def fields_of(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message._struct.fields}


@pytest.mark.parametrize(("key", "message", "version", "layout"), RESPONSE_BYTES)
def test_response_has_kafkas_bytes(key: ApiKey, message: Any, version: int, layout: str) -> None:
    frame = encode_response(message, version, correlation_id=17)

    assert frame[4:].hex() == bytes.fromhex(layout).hex()


@pytest.mark.parametrize(("key", "message", "version", "layout"), RESPONSE_BYTES)
def test_response_is_read_from_kafkas_bytes(key: ApiKey, message: Any, version: int, layout: str) -> None:
    decoded = decode_response(key, version, bytes.fromhex(layout), correlation_id=17)

    assert decoded.to_dict() == message.to_dict()


def annotated(body: ast.ClassDef) -> dict[str, Any]:
    """Field names of a class of the stub, those of nested classes under the class's name."""
    names: dict[str, Any] = {}
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names[statement.target.id] = ast.unparse(statement.annotation)
        elif isinstance(statement, ast.ClassDef):
            names[statement.name] = annotated(statement)
    return names


def specified(fields: Any, path: str) -> dict[str, Any]:
    """What the stub should hold according to the spec."""
    python = {"int16": "int", "int32": "int", "int64": "int", "bool": "bool", "string": "str"}
    names: dict[str, Any] = {}
    for name, field in fields.fields.items():
        if field.is_struct_array():
            names[field.type_str] = specified(field, f"{path}.{field.type_str}")
            names[name] = f"list[{path}.{field.type_str}]"
        elif field.is_array():
            names[name] = f"list[{python[field.type_str.removeprefix('[]')]}]"
        else:
            nullable = field.nullable_for_version_q(field.max_version)
            names[name] = python[field.type_str] + (" | None" if nullable else "")
    return names


def test_stub_says_what_the_specs_say() -> None:
    assert inter_broker.__file__
    stub = ast.parse(Path(inter_broker.__file__).with_suffix(".pyi").read_text())
    classes = {node.name: annotated(node) for node in stub.body if isinstance(node, ast.ClassDef)}

    assert classes == {name: specified(getattr(inter_broker, name)._struct, name) for name in classes}
    assert len(classes) == 10
