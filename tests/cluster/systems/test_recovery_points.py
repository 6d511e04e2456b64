"""What of Kafka's logs is on the disk for certain, by its recovery points."""

from pathlib import Path

import pytest

from harness.broker.log.checkpoint import RECOVERY_POINTS, write_offsets
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.manager import LogManager
from harness.broker.log.meta_properties import META_PROPERTIES
from harness.cluster.systems.kafka.recovery_points import beyond_recovery_points
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
