"""What a request names is what the broker's codec put into it, which shares no code, in every version."""

from typing import Any

import pytest

from harness.broker.wire.codec import decode_response, encode_request
from harness.broker.wire.messages import (
    API_KEYS,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ApiMessage,
    EndTxnRequest,
    FetchRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaderAndIsrRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    StopReplicaRequest,
    TxnOffsetCommitRequest,
    UpdateMetadataRequest,
    WriteTxnMarkersRequest,
)
from harness.kafka.requests import CAN_FAIL, KEYS, Head, Named, error_answer, head_of, is_answered, named_in

ORDERS = frozenset({("orders", 3)})


def element(message: type[ApiMessage], *path: str, **values: Any) -> Any:
    """Return one element of an array of a message, by the names of the fields that lead to it."""
    field: Any = message._struct
    for name in path:
        field = field.fields[name]
    return field.data_class(**values)


def leadership(message: type[ApiMessage], **others: Any) -> Any:
    """Return a request of a controller about one partition."""
    state = element(message, "topic_states", "partition_states", partition_index=3, leader_epoch=8, isr=[1, 2],
                    replicas=[1, 2, 0], **others)  # fmt: skip
    topic = element(message, "topic_states", topic_name="orders", partition_states=[state])
    return message(controller_id=1, controller_epoch=2, broker_epoch=3, topic_states=[topic])


def indexed(message: type[ApiMessage], *path: str, name: str = "partitions") -> Any:
    """Return a topic of which a request names partitions by numbers alone."""
    return element(message, *path, name="orders", **{name: [3]})


FETCHED = element(FetchRequest, "topics", topic="orders", partitions=[
    element(FetchRequest, "topics", "partitions", partition=3, current_leader_epoch=8)])  # fmt: skip
PRODUCED = element(ProduceRequest, "topic_data", name="orders", partition_data=[
    element(ProduceRequest, "topic_data", "partition_data", index=3, records=b"abc")])  # fmt: skip
ASKED = element(OffsetForLeaderEpochRequest, "topics", topic="orders", partitions=[
    element(OffsetForLeaderEpochRequest, "topics", "partitions", partition=3, current_leader_epoch=8, leader_epoch=1),
])  # fmt: skip
MARKER = element(WriteTxnMarkersRequest, "markers", producer_id=1, producer_epoch=8, transaction_result=True,
                 topics=[indexed(WriteTxnMarkersRequest, "markers", "topics", name="partition_indexes")],
                 coordinator_epoch=2)  # fmt: skip
ID = frozenset({"id-1"})
GROUP = frozenset({"group-1"})
EPOCH = frozenset({8})
TXN: dict[str, Any] = {"transactional_id": "id-1", "producer_id": 1, "producer_epoch": 8}


@pytest.mark.parametrize(
    ("request_", "versions", "named"),
    [
        pytest.param(ProduceRequest(transactional_id="id-1", acks=-1, topic_data=[PRODUCED]), range(3, 13),
                     Named(partitions=ORDERS, transactional_ids=ID), id="Produce"),
        pytest.param(FetchRequest(replica_id=1, topics=[FETCHED]), range(9, 13), Named(partitions=ORDERS, epochs=EPOCH),
                     id="Fetch"),
        pytest.param(leadership(LeaderAndIsrRequest), range(4, 5), Named(partitions=ORDERS, epochs=EPOCH),
                     id="LeaderAndIsr"),
        pytest.param(leadership(UpdateMetadataRequest), range(6, 7), Named(partitions=ORDERS, epochs=EPOCH),
                     id="UpdateMetadata"),
        pytest.param(StopReplicaRequest(topics=[indexed(StopReplicaRequest, "topics", name="partition_indexes")]),
                     range(1, 3), Named(partitions=ORDERS), id="StopReplica"),
        pytest.param(OffsetForLeaderEpochRequest(replica_id=1, topics=[ASKED]), range(2, 5),
                     Named(partitions=ORDERS, epochs=EPOCH), id="OffsetForLeaderEpoch"),
        pytest.param(EndTxnRequest(**TXN, committed=True), range(5), Named(transactional_ids=ID, epochs=EPOCH),
                     id="EndTxn"),
        pytest.param(InitProducerIdRequest(transactional_id="id-1"), range(5), Named(transactional_ids=ID),
                     id="InitProducerId"),
        pytest.param(AddOffsetsToTxnRequest(**TXN, group_id="group-1"), range(4),
                     Named(transactional_ids=ID, epochs=EPOCH, groups=GROUP), id="AddOffsetsToTxn"),
        pytest.param(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="id-1", v3_and_below_producer_id=1, v3_and_below_producer_epoch=8,
                v3_and_below_topics=[indexed(AddPartitionsToTxnRequest, "v3_and_below_topics")]),
            range(4), Named(partitions=ORDERS, transactional_ids=ID, epochs=EPOCH), id="AddPartitionsToTxn"),
        pytest.param(
            AddPartitionsToTxnRequest(transactions=[element(
                AddPartitionsToTxnRequest, "transactions", **TXN, verify_only=True,
                topics=[indexed(AddPartitionsToTxnRequest, "transactions", "topics")])]),
            range(4, 6), Named(partitions=ORDERS, transactional_ids=ID, epochs=EPOCH),
            id="AddPartitionsToTxn of a broker"),
        pytest.param(WriteTxnMarkersRequest(markers=[MARKER]), range(2), Named(partitions=ORDERS, epochs=EPOCH),
                     id="WriteTxnMarkers"),
        pytest.param(TxnOffsetCommitRequest(**TXN, group_id="group-1"), range(4),
                     Named(transactional_ids=ID, epochs=EPOCH, groups=GROUP), id="TxnOffsetCommit"),
        pytest.param(OffsetCommitRequest(group_id="group-1"), range(2, 9), Named(groups=GROUP), id="OffsetCommit"),
        pytest.param(OffsetFetchRequest(group_id="group-1"), range(1, 8), Named(groups=GROUP), id="OffsetFetch"),
        pytest.param(JoinGroupRequest(group_id="group-1", member_id="m"), range(10), Named(groups=GROUP),
                     id="JoinGroup"),
        pytest.param(HeartbeatRequest(group_id="group-1", member_id="m"), range(5), Named(groups=GROUP),
                     id="Heartbeat"),
    ],
)  # fmt: skip
def test_a_request_names_what_it_was_made_of(request_: Any, versions: range, named: Named) -> None:
    for version in versions:
        frame = bytes(encode_request(request_, version, correlation_id=9, client_id="client")[4:])
        assert head_of(frame) == Head(api_key=API_KEYS[type(request_)], version=version, correlation_id=9)
        assert named_in(frame) == named, f"version {version}"
        assert is_answered(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\0\0\0", id="no head"),
        pytest.param(b"\0\x1a\0\0\0\0\0\1\xff\xff\0\x09id", id="a text that is cut off"),
        pytest.param(b"\0\x1a\0\4\0\0\0\1\xff\xff\x05\1\x7f", id="a tagged field that is cut off"),
        pytest.param(b"\0\x12\0\0\0\0\0\1\xff\xff", id="an API that names nothing"),
        pytest.param(b"\x7f\x12\0\0\0\0\0\1\xff\xff", id="an unknown API"),
    ],
)
def test_what_cannot_be_read_names_nothing(frame: bytes) -> None:
    assert named_in(frame) is None


@pytest.mark.parametrize("version", range(3, 10))
def test_produce_without_acks_gets_no_answer(version: int) -> None:
    request = ProduceRequest(acks=0, topic_data=[PRODUCED])
    assert not is_answered(bytes(encode_request(request, version, correlation_id=9, client_id="client")[4:]))


@pytest.mark.parametrize("api", CAN_FAIL)
def test_an_error_is_what_the_library_reads(api: str) -> None:
    for version in range(5):
        answer = error_answer(Head(api_key=KEYS[api], version=version, correlation_id=9), 51)
        assert decode_response(KEYS[api], version, answer, correlation_id=9).error_code == 51
