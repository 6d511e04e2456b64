import struct

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from harness.broker.coordinator import batches


def _built(records: list[tuple[bytes, bytes | None]], codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for index, (key, value) in enumerate(records):
        builder.append(index, 1_700_000_000_000, key, value, [])
    return bytes(builder.build())


RECORDS = [
    pytest.param([(b"k", b"v")], id="one record"),
    pytest.param([(b"k", None)], id="a tombstone"),
    pytest.param([(b"", b"")], id="empty key and value"),
    pytest.param([(b"k" * 63, b"v" * 64), (b"k" * 64, b"v" * 8192)], id="lengths of one, two and three bytes"),
    pytest.param([(f"key-{n}".encode(), b"x") for n in range(200)], id="offsets of two bytes"),
]


@pytest.mark.parametrize("records", RECORDS)
def test_another_codec_reads_what_is_written(records: list[tuple[bytes, bytes | None]]) -> None:
    batch = DefaultRecordBatch(batches.encode(records, 1_700_000_000_000))
    assert batch.validate_crc()
    assert batch.records_count == batch.last_offset_delta + 1 == len(records)
    assert batch.base_sequence == batch.producer_id == -1
    assert [(record.key, record.value) for record in batch] == records


@pytest.mark.parametrize("records", RECORDS)
def test_what_another_codec_writes_is_read(records: list[tuple[bytes, bytes | None]]) -> None:
    first, second = _built(records), _built(records)
    moved = struct.pack(">q", 1000) + second[8:]
    read = list(batches.decode(first + moved))
    assert [[(record.key, record.value) for record in batch.records] for batch in read] == [records, records]
    assert [batch.next_offset for batch in read] == [len(records), 1000 + len(records)]
    assert read[1].records[-1].offset == 1000 + len(records) - 1


def test_a_compressed_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="compressed"):
        list(batches.decode(_built([(b"k", b"v" * 500)], codec=1)))


def test_records_of_a_control_batch_are_left_out() -> None:
    data = bytearray(batches.encode([(b"k", b"v")], 0))
    struct.pack_into(">h", data, 21, 0x20)
    (batch,) = batches.decode(bytes(data))
    assert batch == batches.PlainBatch(next_offset=1, records=[])
