"""Batches in the codecs of Kafka: what is written is what others read, and a topic may choose the codec."""

import pytest

from harness.broker.log.batch import parse_header, parse_records, recompressed
from harness.broker.log.compression import CODEC_NAMES, COMPRESSION_TYPES, BadCompression, compress, decompress
from harness.broker.log.records import Record
from harness.broker.log.settings import LogSettings
from harness.broker.log.validation import InvalidRecords
from harness.broker.wire.error_codes import ErrorCode
from harness.evidence import segments
from tests.broker.log.logs import batch, everything, from_producer, headers, new_log

CODECS = [pytest.param(codec, id=name) for codec, name in CODEC_NAMES.items()]
LARGE = b"".join(b"record-%06d" % number for number in range(20_000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"x", LARGE], ids=["a byte", "more than a block"])
def test_what_is_compressed_comes_back_and_an_independent_library_reads_it(codec: int, data: bytes) -> None:
    squeezed = compress(data, codec)
    assert decompress(squeezed, codec) == data
    assert compress(data, codec) == squeezed
    if codec:
        assert segments._decompressed(squeezed, segments.CODECS[codec]) == data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(compress(LARGE, 2)[:17], id="half a length"),
        pytest.param(compress(LARGE, 2)[:-1], id="half a block"),
        pytest.param(compress(LARGE, 2)[:16] + b"\xff\xff\xff\xff", id="a length below zero"),
        pytest.param(compress(LARGE, 2)[:16] + b"\0\0\0\4junk", id="a block that is none"),
    ],
)
def test_a_broken_stream_of_snappy_is_refused(data: bytes) -> None:
    with pytest.raises(BadCompression, match="snappy"):
        decompress(data, 2)


def test_a_codec_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadCompression, match="unknown codec 5"):
        decompress(b"", 5)


@pytest.mark.parametrize("sent", CODECS)
@pytest.mark.parametrize(("wanted", "codec"), [("producer", None), *COMPRESSION_TYPES.items()])
def test_a_topic_keeps_the_producers_codec_or_has_its_own(sent: int, wanted: str, codec: int | None) -> None:
    plain = from_producer(0, 3, timestamp_ms=7)
    produced = recompressed(plain, parse_header(plain), sent)
    log = new_log(settings=LogSettings(compression=wanted))
    log.append_as_leader(batch(), 3)
    log.append_as_leader(bytes(produced), 4)
    stored = everything(log)[headers(everything(log))[0].size :]
    header = parse_header(stored)
    assert header.codec == (sent if codec is None else codec)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (1, 3, 4)
    assert (header.producer_id, header.base_sequence, header.max_timestamp) == (7, 0, 9)
    assert parse_records(stored) == [
        Record(value=b"value-%02d" % number, timestamp_ms=7 + number, offset=1 + number) for number in range(3)
    ]
    assert log.offset_for_timestamp(8) == (2, 8)


def test_a_batch_that_grows_past_the_limit_by_its_new_codec_is_refused() -> None:
    squeezed = recompressed(batch(50), parse_header(batch(50)), 1)
    log = new_log(settings=LogSettings(compression="uncompressed", max_batch_bytes=len(squeezed)))
    with pytest.raises(InvalidRecords) as refused:
        log.append_as_leader(bytes(squeezed), 0)
    assert refused.value.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0
