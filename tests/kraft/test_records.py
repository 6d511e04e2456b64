"""What records of the metadata log of a real Kafka 4.4.0 say; each is as a controller wrote it."""

from pathlib import Path
from uuid import UUID

import pytest

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.errors import EvidenceError
from harness.kraft.records import Bound, LeaderChange, entries

LOG = Path(__file__).parent / "logs/1/__cluster_metadata-0/00000000000000000000.log"
TOPIC = UUID(int=7)


def batch_of(*values: bytes, attributes: int = 0, key: bytes | None = None) -> bytes:
    records = [Record(key=key, value=value, timestamp_ms=5) for value in values]
    return build_batch(records, base_offset=3, leader_epoch=2, attributes=attributes)


def framed(kind: int, version: int, body: bytes) -> bytes:
    return bytes([1, kind, version]) + body


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        pytest.param(
            framed(2, 0, b"\x07orders" + TOPIC.bytes + b"\x00"),
            {"name": "orders", "topic_id": TOPIC},
            id="a topic",
        ),
        pytest.param(framed(9, 0, TOPIC.bytes + b"\x00"), {"topic_id": TOPIC}, id="a topic that is removed"),
        pytest.param(
            framed(
                5, 2, b"\x00\x00\x00\x01" + TOPIC.bytes + b"\x02\x00\x05\x02\x00\x00\x00\x02\x01\x04\x00\x00\x00\x02"
            ),
            {"partition_id": 1, "isr": [2], "leader": 2, "replicas": None, "eligible_leader_replicas": None},
            id="a partition of which ISR and leader change",
        ),
        pytest.param(
            framed(5, 2, b"\x00\x00\x00\x01" + TOPIC.bytes + b"\x02\x00\x01\x01\x06\x05\x02\x00\x00\x00\x03"),
            {"isr": [], "leader": -2, "eligible_leader_replicas": [3]},
            id="a partition whose last replica in sync goes, and may still lead",
        ),
        pytest.param(
            framed(5, 2, b"\x00\x00\x00\x01" + TOPIC.bytes + b"\x02\x06\x01\x01\x07\x05\x02\x00\x00\x00\x03"),
            {"eligible_leader_replicas": [], "last_known_elr": [3]},
            id="a partition without eligible leaders, and its last leader",
        ),
        pytest.param(
            framed(17, 0, b"\x00\x00\x00\x01" + b"\x00" * 7 + b"\x13" + b"\x01\x00\x01\x01"),
            {"broker_id": 1, "broker_epoch": 19, "fenced": 1},
            id="a broker that is fenced",
        ),
        pytest.param(
            framed(17, 3, b"\x00\x00\x00\x01" + b"\x00" * 7 + b"\x13" + b"\x01\x03\x01\x01"),
            {"broker_id": 1, "fenced": 0, "in_controlled_shutdown": 0},
            id="an unused tag is skipped",
        ),
        pytest.param(
            framed(4, 0, b"\x02\x02t\x02p\x00\x00"), {"resource_type": 2, "value": None}, id="a property taken back"
        ),
        pytest.param(
            framed(15, 0, b"\x00\x00\x00\x02" + b"\x00" * 8 + b"\x00" * 6 + b"\x07\xd0\x00"),
            {"broker_id": 2, "next_producer_id": 2000},
            id="a block of producer ids",
        ),
    ],
)
def test_a_record_is_decoded(value: bytes, seen: dict[str, object]) -> None:
    ((entry,),) = entries(batch_of(value))
    assert (entry.offset, entry.epoch, entry.time_ms) == (3, 2, 5)
    assert {name: getattr(entry.record, name) for name in seen} == seen


@pytest.mark.parametrize(
    ("data", "record"),
    [
        pytest.param(batch_of(framed(23, 0, b"\x00")), Bound.BEGIN, id="what follows counts together"),
        pytest.param(batch_of(framed(24, 0, b"\x00")), Bound.END, id="it counts"),
        pytest.param(batch_of(framed(25, 0, b"\x00")), Bound.ABORT, id="it does not count"),
        pytest.param(batch_of(framed(20, 0, b"\x00")), None, id="a kind of which nothing is read"),
        pytest.param(
            batch_of(b"\x00\x01\x00\x00\x00\x02\x01\x01\x00", attributes=0x20, key=b"\x00\x00\x00\x02"),
            LeaderChange(2),
            id="a leader begins its epoch",
        ),
        pytest.param(
            batch_of(b"\x00\x00\x00", attributes=0x20, key=b"\x00\x00\x00\x05"), None, id="a control record of no use"
        ),
    ],
)
def test_what_has_no_fields_of_use_is_known_by_its_kind(data: bytes, record: object) -> None:
    ((entry,),) = entries(data)
    assert entry.record == record


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(batch_of(framed(2, 9, b"")), "at offset 3: Invalid version 9", id="a version that is not known"),
        pytest.param(batch_of(b"\x02\x02\x00"), "at offset 3: a record with a frame of version 2", id="another frame"),
        pytest.param(batch_of(b"\x01"), "at offset 3: ", id="a record that is cut short"),
        pytest.param(batch_of(framed(30, 0, b"\x00")), "at offset 3: a record of the unknown kind 30", id="a new kind"),
        pytest.param(
            batch_of(b"\x00\x00\x00", attributes=0x20, key=b"\x00\x00\x00\x07"),
            "at offset 3: a control record of the unknown kind 7",
            id="a new kind of control record",
        ),
        pytest.param(batch_of(b"\x01\x14\x00\x00")[:-1] + b"\x01", "wrong CRC", id="a byte that was changed"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes, text: str) -> None:
    with pytest.raises(EvidenceError, match=text):
        list(entries(data))


def test_a_real_log_is_read_to_its_end_and_no_further() -> None:
    data = LOG.read_bytes()
    read = [entry for batch in entries(data) for entry in batch]
    assert [entry.offset for entry in read] == list(range(184))
    assert {entry.epoch for entry in read} == {1, 2}
    assert [entry.record for entry in read if isinstance(entry.record, LeaderChange)] == [
        LeaderChange(0),
        LeaderChange(1),
    ]
    assert [entry for batch in entries(data[:-1]) for entry in batch] < read
