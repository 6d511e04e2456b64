from pathlib import Path
from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from harness.evidence.segments import ReplicaLog, StoredRecord

CONTROL = 0x20


def log_of(folder: Path, **segments: bytes) -> ReplicaLog:
    for name, data in segments.items():
        (folder / f"{name.removeprefix('s').zfill(20)}.log").write_bytes(data)
    return ReplicaLog(folder)


def message(magic: int, *values: bytes | None, codec: int = 0, base_offset: int = 0) -> bytes:
    """Messages of a format that brokers wrote until 0.11, one a value, or all in one that is compressed."""
    builder: Any = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for delta, value in enumerate(values):
        builder.append((0 if codec else base_offset) + delta, 1000 + delta, b"k", value)
    data = bytearray(builder.build())
    if codec:  # the outer message has the offset of the last inner one
        data[0:8] = (base_offset + len(values) - 1).to_bytes(8, "big")
    return bytes(data)


def old_record(offset: int, timestamp_ms: int, value: bytes | None) -> StoredRecord:
    return StoredRecord(
        offset=offset,
        leader_epoch=-1,
        timestamp_ms=timestamp_ms,
        key=b"k",
        value=value,
        headers=[],
        producer_id=-1,
        producer_epoch=-1,
        sequence=-1,
    )


def offsets(log: ReplicaLog) -> list[int]:
    return [record.offset for record in log]


def test_a_record_has_what_its_batch_says(tmp_path: Path, batch: Any) -> None:
    data = batch(b"a", None, base_offset=7, leader_epoch=3, headers=(("h", b"1"), ("n", None)), producer=(9, 1, 5))
    first, second = log_of(tmp_path, s7=data)
    assert (first.offset, first.leader_epoch, first.timestamp_ms, first.key, first.value) == (7, 3, 1000, b"k", b"a")
    assert first.headers == [("h", b"1"), ("n", None)]
    assert (first.producer_id, first.producer_epoch, first.sequence) == (9, 1, 5)
    assert (second.offset, second.timestamp_ms, second.value, second.sequence) == (8, 1001, None, 6)


@pytest.mark.parametrize(
    ("magic", "codec", "instants"),
    [
        pytest.param(0, 0, [-1, -1], id="format v0 has no instants"),
        pytest.param(1, 0, [1000, 1001], id="format v1"),
        pytest.param(1, 1, [1000, 1001], id="format v1 in gzip"),
    ],
)
def test_messages_of_old_formats_are_read(tmp_path: Path, magic: int, codec: int, instants: list[int]) -> None:
    log = log_of(tmp_path, s7=message(magic, b"a", None, codec=codec, base_offset=7) + message(1, b"c", base_offset=9))
    first, second, third = log
    assert (first, second) == (old_record(7, instants[0], b"a"), old_record(8, instants[1], None))
    assert (third.offset, third.value) == (9, b"c")
    assert (log.end_offset, log.damage) == (10, "")


def test_sequences_begin_again_after_the_largest(tmp_path: Path, batch: Any) -> None:
    records = log_of(tmp_path, s0=batch(b"a", b"b", producer=(9, 0, 2**31 - 1)))
    assert [record.sequence for record in records] == [2**31 - 1, 0]


@pytest.mark.parametrize(
    ("codec", "xerial"),
    [
        pytest.param(1, False, id="gzip"),
        pytest.param(2, False, id="snappy in one block"),
        pytest.param(2, True, id="snappy in the framing of Java clients"),
        pytest.param(3, False, id="lz4"),
        pytest.param(4, False, id="zstd"),
    ],
)
def test_compressed_batches_are_read(tmp_path: Path, batch: Any, codec: int, xerial: bool) -> None:
    values = [str(number).encode() * 30 for number in range(50)]
    log = log_of(tmp_path, s0=batch(*values, codec=codec, xerial=xerial))
    assert [record.value for record in log] == values
    assert log.damage == ""


def test_segments_follow_each_other_and_control_batches_count_but_are_no_records(tmp_path: Path, batch: Any) -> None:
    log = log_of(
        tmp_path,
        s10=batch(b"c", base_offset=10),
        s0=batch(b"a", b"b") + batch(b"marker", base_offset=2, attributes=CONTROL),
    )
    assert offsets(log) == [0, 1, 10]
    assert (log.start_offset, log.end_offset, log.damage) == (0, 11, "")


@pytest.mark.parametrize(
    ("segments", "start", "end", "damage"),
    [
        pytest.param({}, 0, 0, "no segment file", id="no segment at all is damage"),
        pytest.param({"s0": b""}, 0, 0, "", id="a new log is empty"),
        pytest.param({"s42": b""}, 42, 42, "", id="an emptied log keeps its offset"),
    ],
)
def test_logs_without_records(tmp_path: Path, segments: dict[str, bytes], start: int, end: int, damage: str) -> None:
    log = log_of(tmp_path, **segments)
    assert offsets(log) == []
    assert (log.start_offset, log.end_offset, log.damage) == (start, end, damage)


@pytest.mark.parametrize(
    ("spoil", "damage"),
    [
        pytest.param(lambda good: good[:-1], "a batch of 70 bytes where 69 are left", id="a torn record"),
        pytest.param(lambda good: good[:30], "half a batch header (30 bytes)", id="a torn header"),
        pytest.param(lambda good: good[:-1] + b"\xff", "a batch with a wrong CRC", id="a flipped bit"),
        pytest.param(lambda good: good[:16] + b"\3" + good[17:], "a batch of format 3", id="a format to come"),
        pytest.param(lambda good: good[:8] + bytes(4) + good[12:], "a batch of 12 bytes", id="a length too small"),
        pytest.param(lambda good: bytes(80), "a batch of 12 bytes", id="zeros"),
        pytest.param(lambda good: message(0, b"c")[:-1] + b"d", "a batch with a wrong CRC", id="a flipped bit of old"),
        pytest.param(
            lambda good: message(1, b"c")[:30], "a batch of 36 bytes where 30 are left", id="half an old message"
        ),
        pytest.param(lambda good: bytes(8) + good[8:], "offset 0 after 1", id="an offset that goes back"),
    ],
)
def test_reading_stops_at_damage_and_says_where(tmp_path: Path, batch: Any, spoil: Any, damage: str) -> None:
    good = batch(b"a", b"b")
    log = log_of(tmp_path, s0=good + spoil(batch(b"c", base_offset=2)), s3=batch(b"d", base_offset=3))
    assert offsets(log) == [0, 1]
    assert log.end_offset == 2
    assert damage in log.damage
    assert f"00000000000000000000.log: {log.damage.partition(': ')[2]}" == log.damage
    assert f"at byte {len(good)} of" in log.damage


def test_records_that_do_not_add_up_are_damage_though_the_crc_fits(tmp_path: Path, batch: Any) -> None:
    broken = batch(b"a", codec=1, attributes=2)  # gzip's bytes under zstd's number (3 is lz4)
    log = log_of(tmp_path, s0=broken)
    assert offsets(log) == []
    assert log.damage
