"""Kafka's own dump tool reads the segments that this broker writes."""

import gzip
import re
from pathlib import Path

import pytest

from harness.broker.log.batch import HEADER_BYTES, build_batch, seal
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.log import LogSettings
from harness.broker.log.manager import LogManager
from harness.broker.log.records import Record
from tests.broker.log.logs import end_transaction, everything, write_in_transaction
from tests.kafka_tools import dumps, needs_kafka

RECORDS = [
    Record(key=b"key-0", value=b"value-0", timestamp_ms=1_700_000_000_000, headers=(("trace", b"1"),)),
    Record(key=None, value=b"value-1", timestamp_ms=1_700_000_000_007),
]
BATCH_LINE = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (\d+) .*isvalid: (\w+)"
)
RECORD_LINE = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*headerKeys: \[(.*?)\](?: key: (\S+))? payload: (\S+)")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real_time("Kafka's tool is a process of its own, which is waited for"),
    needs_kafka,
]


def gzipped() -> bytes:
    plain = build_batch(RECORDS, attributes=1)
    batch = bytearray(plain[:HEADER_BYTES] + gzip.compress(plain[HEADER_BYTES:]))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    seal(batch)
    return bytes(batch)


def test_kafka_reads_what_was_compressed_here(tmp_path: Path) -> None:
    segments = {}
    for compression in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        logs = LogManager(FileStorage(tmp_path / compression), LogSettings(compression=compression))
        logs.load()
        logs.get_or_create("t", 0).append_as_leader(gzipped(), 0)
        logs.close_clean()
        (segments[compression],) = (tmp_path / compression / "t-0").glob("*.log")
    dumped = dumps(segments.values())
    for compression, segment in segments.items():
        assert BATCH_LINE.findall(dumped[segment]) == [("0", "1", "2", "0", "true")]
        assert f"compresscodec: {compression.replace('uncompressed', 'none')}" in dumped[segment]
        assert [record[0] for record in RECORD_LINE.findall(dumped[segment])] == ["0", "1"]


def test_kafka_reads_what_a_leader_and_a_follower_wrote(tmp_path: Path) -> None:
    logs = LogManager(FileStorage(tmp_path), LogSettings(segment_bytes=300))
    logs.load()
    leader, follower = logs.get_or_create("leader", 0), logs.get_or_create("follower", 0)
    for batch, epoch in ((build_batch(RECORDS), 0), (gzipped(), 0), (build_batch(RECORDS), 4), (gzipped(), 5)):
        leader.append_as_leader(batch, epoch)
    follower.append_as_follower(everything(leader))
    logs.close_clean()
    dumped = dumps(sorted(tmp_path.glob("*-0/*.log")))
    for name in ("leader-0", "follower-0"):
        of_replica = [dump for file, dump in dumped.items() if file.parent.name == name]
        assert len(of_replica) == 2
        output = "".join(of_replica)
        assert BATCH_LINE.findall(output) == [
            (str(2 * i), str(2 * i + 1), "2", str(epoch), "true") for i, epoch in enumerate((0, 0, 4, 5))
        ]
        assert RECORD_LINE.findall(output) == [
            record
            for i in range(4)
            for record in (
                (str(2 * i), "1700000000000", "trace", "key-0", "value-0"),
                (str(2 * i + 1), "1700000000007", "", "", "value-1"),
            )
        ]


def test_kafka_reads_markers_index_and_snapshot(tmp_path: Path) -> None:
    logs = LogManager(FileStorage(tmp_path))
    logs.load()
    log = logs.get_or_create("t", 0)
    for producer_id, sequence in ((7, 0), (8, 0), (7, 1)):
        write_in_transaction(log, sequence, producer_id=producer_id)
    end_transaction(log, commits=False, coordinator_epoch=5)
    write_in_transaction(log, 2)
    logs.close_clean()
    dumped = dumps(tmp_path / "t-0" / name for name in (f"{0:020}.log", f"{0:020}.txnindex", f"{5:020}.snapshot"))
    segment, index, snapshot = dumped.values()
    assert "endTxnMarker: ABORT coordinatorEpoch: 5" in segment
    assert index.strip() == "version: 0 producerId: 7 firstOffset: 0 lastOffset: 3 lastStableOffset: 1"
    assert re.findall(r"producerId: (\d+) .*coordinatorEpoch: (-?\d+) currentTxnFirstOffset: (\S+) ", snapshot) == [
        ("7", "5", "OptionalLong[4]"),
        ("8", "-1", "OptionalLong[1]"),
    ]
    assert re.findall(r"lastSequence: (\d+) lastOffset: (\d+)", snapshot) == [("2", "4"), ("0", "1")]
