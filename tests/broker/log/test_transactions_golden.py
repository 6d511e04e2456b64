"""Index and snapshots are byte for byte what Kafka 3.9.1 writes beside the same batches.

`transactions-3.9.1.json` holds the files of a partition after a clean stop of a real broker, in hexadecimal: two
transactional producers and one that is only idempotent, with transactions that overlap, commit, abort, span segments,
and one that stays open.
"""

import json
from pathlib import Path

import pytest

from harness.broker.log.log import Log, LogSettings
from harness.broker.log.markers import Marker, marker_batch, read_marker
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import everything, headers, opened

GOLDEN = {
    name: bytes.fromhex(text)
    for name, text in json.loads((Path(__file__).parent / "transactions-3.9.1.json").read_text()).items()
}
BATCHES = b"".join(data for name, data in sorted(GOLDEN.items()) if name.endswith(".log"))
SETTINGS = LogSettings(segment_bytes=450)


def files(storage: MemoryStorage) -> dict[str, bytes]:
    """The files of the log that the golden ones have, too."""
    kinds = (".log", ".txnindex", ".snapshot")
    return {name: storage.read(f"t-0/{name}") for name in storage.list("t-0") if name.endswith(kinds)}


def replicated(storage: MemoryStorage, *, at_once: bool) -> Log:
    """A follower's log with Kafka's batches."""
    log, _ = opened(storage, settings=SETTINGS)
    position = 0
    for header in [] if at_once else headers(BATCHES):
        log.append_as_follower(BATCHES[position : position + header.size])
        position += header.size
    log.append_as_follower(BATCHES[position:])
    return log


@pytest.mark.parametrize("at_once", [True, False], ids=["fetched at once", "fetched batch by batch"])
def test_a_replica_has_the_files_that_kafka_has(storage: MemoryStorage, at_once: bool) -> None:
    log = replicated(storage, at_once=at_once)
    log.flush()
    log.seal()
    assert files(storage) == GOLDEN


def test_recovery_makes_the_same_index_again(storage: MemoryStorage) -> None:
    replicated(storage, at_once=True).close()
    for name in [name for name in storage.files if name.endswith((".txnindex", ".snapshot"))]:
        storage.remove(name)
    log, _ = opened(storage, settings=SETTINGS)
    log.seal()
    expected = {name: data for name, data in GOLDEN.items() if not name.endswith(".snapshot") or "20." in name}
    assert files(storage) == expected


def test_a_start_from_kafkas_own_files_knows_what_kafka_knew(storage: MemoryStorage) -> None:
    reference_storage = MemoryStorage()
    reference = replicated(reference_storage, at_once=True)
    storage.make_folder("t-0")
    reference.seal()
    indexes = {
        name: reference_storage.read(f"t-0/{name}") for name in reference_storage.list("t-0") if name.endswith(".index")
    }
    for name, data in (GOLDEN | indexes).items():
        storage.replace(f"t-0/{name}", data)
    storage.replace("t-0/leader-epoch-checkpoint", b"0\n1\n0 0\n")
    log, _ = opened(storage, clean=True, recovery_point=20, settings=SETTINGS)
    assert everything(log) == BATCHES
    assert log.aborted_transactions(0, 20) == reference.aborted_transactions(0, 20)
    assert log.first_unstable_offset(20) == reference.first_unstable_offset(20) == 18
    for producer_id, state in log.producers.items():
        known = reference.producers[producer_id]
        assert state.batches[-1] == known.batches[-1]._replace(timestamp_ms=state.timestamp_ms)
        assert (state.epoch, state.coordinator_epoch) == (known.epoch, known.coordinator_epoch)


def test_markers_are_byte_for_byte_kafkas() -> None:
    position = seen = 0
    for header in headers(BATCHES):
        data = BATCHES[position : position + header.size]
        position += header.size
        marker = read_marker(data, header) if header.is_control else None
        if marker is None:
            continue
        seen += 1
        made = bytearray(
            marker_batch(
                Marker(marker.commits, marker.coordinator_epoch),
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                timestamp_ms=header.max_timestamp,
            )
        )
        made[:8], made[12:16] = data[:8], data[12:16]  # what a leader stamps
        assert bytes(made) == data
    assert seen == 5
