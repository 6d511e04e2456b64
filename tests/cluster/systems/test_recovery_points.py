"""What of Kafka's logs is on the disk for certain, by its recovery points and by what it has synced."""

from pathlib import Path

import pytest

from harness.broker.log.checkpoint import HIGH_WATERMARKS, LEADER_EPOCHS, RECOVERY_POINTS, write_offsets
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.manager import LogManager
from harness.broker.log.meta_properties import META_PROPERTIES
from harness.cluster.systems.kafka.recovery_points import beyond_recovery_points
from harness.cluster.systems.system import system_named
from harness.values import METADATA_TOPIC
from tests.broker.log.logs import SMALL, batch

BATCH_BYTES = len(batch())
NO_FILE, EMPTY = -1, -2


@pytest.mark.parametrize(
    "directory", [pytest.param("", id="of one data directory"), pytest.param("a", id="of several")]
)
@pytest.mark.parametrize(
    ("point", "certain"),
    [
        pytest.param(NO_FILE, {0: 0, 5: None, 10: None}, id="nothing without a checkpoint"),
        pytest.param(EMPTY, {0: 0, 5: None, 10: None}, id="nothing by an empty file, as Kafka makes it at first"),
        pytest.param(None, {0: 0, 5: None, 10: None}, id="nothing where no point was written down"),
        pytest.param(0, {0: 0, 5: None, 10: None}, id="nothing before the first offset"),
        pytest.param(2, {0: 2 * BATCH_BYTES, 5: None, 10: None}, id="the batches before the point"),
        pytest.param(5, {5: 0, 10: None}, id="whole segments before it"),
        pytest.param(11, {10: BATCH_BYTES}, id="the last segment in part"),
        pytest.param(12, {}, id="everything"),
    ],
)
def test_what_is_before_the_recovery_point_is_certain(
    tmp_path: Path, directory: str, point: int | None, certain: dict[int, int | None]
) -> None:
    folder = tmp_path / directory
    disk = FileStorage(folder)
    disk.replace(META_PROPERTIES, b"")
    log = LogManager(disk, SMALL).get_or_create("my-orders", 2)
    for _ in range(12):
        log.append_as_leader(batch(), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10]
    disk.make_folder("gone-0.aaaa-delete")
    if point == NO_FILE:
        disk.remove(RECOVERY_POINTS)
    elif point == EMPTY:
        disk.replace(RECOVERY_POINTS, b"")
    else:
        write_offsets(disk, RECOVERY_POINTS, {} if point is None else {("my-orders", 2): point})
    index = folder / "my-orders-2" / f"{5:020d}.timeindex"
    index.touch()

    unsynced = beyond_recovery_points(tmp_path)

    wanted: dict[Path, int | None] = {
        folder / "my-orders-2" / f"{first:020d}.log": size for first, size in certain.items()
    }
    wanted |= {
        folder / "my-orders-2" / f"{first:020d}.snapshot": None for first, size in certain.items() if size is None
    }
    assert unsynced == wanted | ({index: None} if 5 in certain and certain[5] is None else {})


def test_what_was_never_synced_is_lost_although_a_recovery_point_covers_it(tmp_path: Path) -> None:
    kafka, trace = system_named("kafka:3.9.1"), tmp_path / "sync.log"
    folder = tmp_path / "data"
    disk = FileStorage(folder)
    log = LogManager(disk, SMALL).get_or_create("my-orders", 2)
    for _ in range(12):
        log.append_as_leader(batch(), 0)
    write_offsets(disk, RECOVERY_POINTS, {("my-orders", 2): 11})
    disk.make_folder(f"{METADATA_TOPIC}-0")
    disk.replace(f"{METADATA_TOPIC}-0/{0:020d}.log", b"synced before anything in it counts")
    disk.replace(f"my-orders-2/{LEADER_EPOCHS}", b"0\n0\n")
    disk.replace(HIGH_WATERMARKS, b"")
    first, second, last = (folder / "my-orders-2" / f"{base:020d}.log" for base in (0, 5, 10))
    of_recovery_points: dict[Path, int | None] = {last: BATCH_BYTES}
    assert kafka.unsynced(folder, trace) == of_recovery_points

    synced = [first, last, folder / RECOVERY_POINTS]
    trace.write_text("".join(f"7 fsync(4<{path}>) = 0\n" for path in synced), encoding="utf-8")
    never = {second: 0, folder / "my-orders-2" / LEADER_EPOCHS: 0}
    assert kafka.unsynced(folder, trace) == of_recovery_points | never

    trace.write_text("", encoding="utf-8")
    write_offsets(disk, RECOVERY_POINTS, {("my-orders", 2): 5})
    segments = {path: size for path, size in kafka.unsynced(folder, trace).items() if path.suffix == ".log"}
    assert segments == {first: 0, second: 0, last: None}
