"""Records as bytes: what another writer writes, and other parsers read."""

import pytest
from crc32c import crc32c as by_library
from kafka.record.legacy_records import LegacyRecordBatch

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.kafka.records import batch_of, crc32c, last_offsets, message_of

BATCH, MESSAGE = batch_of(b"k", b"a", 5), message_of(b"k", b"a", 5)
TWO = bytes(build_batch([Record(key=b"k", value=b"a", timestamp_ms=5), Record(key=None, value=b"b", timestamp_ms=6)]))


@pytest.mark.parametrize("value", [b"", b"a", b"x" * 63, b"x" * 64, b"x" * 9000], ids=len)
def test_a_batch_is_what_the_broker_s_own_builder_makes(value: bytes) -> None:
    assert batch_of(b"key", value, 1_700_000_000_000) == bytes(
        build_batch([Record(key=b"key", value=value, timestamp_ms=1_700_000_000_000)])
    )


def test_a_message_is_what_another_parser_reads() -> None:
    message = LegacyRecordBatch(MESSAGE, 1)
    assert message.validate_crc()
    assert [(each.key, each.value, each.timestamp) for each in message] == [(b"k", b"a", 5)]


@pytest.mark.parametrize(
    ("records", "offsets"),
    [
        pytest.param(TWO + TWO[:-1], [1], id="batches, the last one cut short"),
        pytest.param(MESSAGE + MESSAGE[:20], [0], id="messages, the last one cut short"),
        pytest.param(BATCH + MESSAGE, [0, 0], id="both"),
        pytest.param(b"\0" * 40, [], id="no batch"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_how_far_the_answer_to_a_fetch_goes(records: bytes, offsets: list[int]) -> None:
    assert list(last_offsets(records)) == offsets


@pytest.mark.parametrize("data", [b"", b"123456789", bytes(range(256))], ids=["nothing", "digits", "all bytes"])
def test_the_checksum_is_the_one_of_the_library(data: bytes) -> None:
    assert crc32c(data) == by_library(data)
