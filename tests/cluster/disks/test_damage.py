"""What becomes of a broker's logs when its files are damaged: what is found at the next start."""

from pathlib import Path

import pytest

from harness.broker.log.checkpoint import HIGH_WATERMARKS, LEADER_EPOCHS, RECOVERY_POINTS
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.manager import CLEAN_SHUTDOWN_MARKER, LogManager
from harness.broker.log.storage import Storage
from harness.cluster.disks.damage import Checkpoint, Damage, What, do_damage, logs_in, states
from harness.errors import ClusterError
from harness.simulation.disk import MemoryStorage
from harness.values import METADATA_TOPIC
from tests.broker.log.logs import SMALL, batch

ENDS = {"orders-0": 12, "small-1": 2}
"""Of the logs on the disk: one of three segments or more, synced to their ends, and one of a single one."""


@pytest.fixture(params=["on disk", "in memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """The disk of a broker that was killed when everything was synced and checkpointed."""
    disk = FileStorage(tmp_path / "data") if request.param == "on disk" else MemoryStorage()
    logs = LogManager(disk, SMALL)
    for name, end in ENDS.items():
        topic, _, partition = name.rpartition("-")
        log = logs.get_or_create(topic, int(partition))
        for _ in range(end):
            log.append_as_leader(batch(), 3)
    logs.write_high_watermarks(dict.fromkeys([("orders", 0), ("small", 1)], 2))
    logs.close_clean()
    disk.remove(CLEAN_SHUTDOWN_MARKER)
    assert len(segments(disk)) >= 3
    return disk


def segments(disk: Storage) -> list[str]:
    return [f"orders-0/{name}" for name in disk.list("orders-0") if name.endswith(".log")]


def ends(disk: Storage) -> dict[str, int]:
    """Return what a start finds, by log."""
    return {f"{it.topic}-{it.partition}": it.log_end_offset for it in LogManager(disk, SMALL).load()}


@pytest.mark.parametrize(
    ("done", "log_ends"),
    [
        pytest.param(Damage(what=What.TAIL), ENDS | {"orders-0": 11}, id="the last byte takes the last batch along"),
        pytest.param(
            Damage(what=What.TAIL, tail_bytes=10_000, log="small-1"),
            ENDS | {"small-1": 0},
            id="more than there is takes all of the last segment",
        ),
        pytest.param(Damage(what=What.INDEXES), ENDS, id="indexes are made again"),
        pytest.param(Damage(what=What.CHECKPOINT), ENDS, id="without recovery points every log is checked"),
        pytest.param(
            Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.LEADER_EPOCHS), ENDS, id="epochs are found in batches"
        ),
        pytest.param(Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.HIGH_WATERMARKS), ENDS, id="high watermarks"),
        pytest.param(Damage(what=What.LOG), {"small-1": 2}, id="a log is gone, the largest if none is named"),
        pytest.param(Damage(what=What.LOG, log="small-1"), {"orders-0": 12}, id="a log that is named"),
        pytest.param(Damage(what=What.DISK), {}, id="an empty disk"),
    ],
)
def test_what_a_start_finds_on_a_damaged_disk(disk: Storage, done: Damage, log_ends: dict[str, int]) -> None:
    before = states(disk)
    do_damage([disk], done)
    assert states(disk) != before
    assert logs_in(states(disk)) == log_ends.keys()
    assert ends(disk) == log_ends


def test_a_flipped_bit_in_a_closed_segment_is_found_and_costs_its_batch_and_all_that_follows(disk: Storage) -> None:
    before = states(disk)
    closed = segments(disk)[:-1]
    do_damage([disk], Damage(what=What.BIT_FLIP))
    after = states(disk)
    (flipped,) = {path for path in before if after.get(path) != before[path]} - {RECOVERY_POINTS}
    assert flipped in closed
    assert before[flipped].split()[0] == after[flipped].split()[0], "its size is what it was"
    first = int(flipped.removeprefix("orders-0/").removesuffix(".log"))
    assert first <= ends(disk)["orders-0"] < 12
    assert ends(disk)["small-1"] == 2


@pytest.mark.parametrize(
    ("done", "lost"),
    [
        pytest.param(Damage(what=What.CHECKPOINT), {RECOVERY_POINTS}, id="recovery points"),
        pytest.param(
            Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.HIGH_WATERMARKS), {HIGH_WATERMARKS}, id="high watermarks"
        ),
        pytest.param(
            Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.LEADER_EPOCHS, log="small-1"),
            {f"small-1/{LEADER_EPOCHS}"},
            id="leader epochs of a log",
        ),
    ],
)
def test_a_lost_checkpoint_is_all_that_is_lost(disk: Storage, done: Damage, lost: set[str]) -> None:
    before = states(disk)
    do_damage([disk], done)
    assert before.keys() - states(disk).keys() == lost


@pytest.mark.parametrize(
    ("done", "message"),
    [
        pytest.param(Damage(what=What.BIT_FLIP, log="small-1"), "no bit-flip of small-1.*orders-0", id="none closed"),
        pytest.param(Damage(what=What.TAIL, log="other-0"), "no tail of other-0.*orders-0, small-1", id="no such log"),
        pytest.param(
            Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.LOG_STARTS), "no log-start-offset", id="no checkpoint"
        ),
    ],
)
def test_what_is_not_there_cannot_be_damaged(disk: Storage, done: Damage, message: str) -> None:
    if done.what is What.CHECKPOINT:
        disk.remove(Checkpoint.LOG_STARTS)
    before = states(disk)
    with pytest.raises(ClusterError, match=message):
        do_damage([disk], done)
    assert states(disk) == before


def test_an_empty_log_has_no_tail(disk: Storage) -> None:
    LogManager(disk, SMALL).get_or_create("empty", 0)
    with pytest.raises(ClusterError, match="empty-0 is empty"):
        do_damage([disk], Damage(what=What.TAIL, log="empty-0"))


def test_of_several_data_directories_the_one_with_the_log_is_damaged_and_all_lose_a_checkpoint(tmp_path: Path) -> None:
    disks = [FileStorage(tmp_path / name) for name in ("one", "two")]
    for disk, topic, batches in zip(disks, ("orders", "small"), (2, 1), strict=True):
        logs = LogManager(disk, SMALL)
        for _ in range(batches):
            logs.get_or_create(topic, 0).append_as_leader(batch(), 3)
        logs.write_high_watermarks({(topic, 0): batches})
        logs.close_clean()
    do_damage(disks, Damage(what=What.LOG))
    assert [logs_in(states(disk)) for disk in disks] == [set(), {"small-0"}]
    do_damage(disks, Damage(what=What.TAIL, log="small-0"))
    do_damage(disks, Damage(what=What.CHECKPOINT, checkpoint=Checkpoint.HIGH_WATERMARKS))
    assert not any(disk.exists(HIGH_WATERMARKS) for disk in disks)
    do_damage(disks, Damage(what=What.DISK))
    assert [disk.list("") for disk in disks] == [[], []]


def test_the_log_of_the_quorum_is_no_log_of_a_partition(disk: Storage) -> None:
    name = f"{METADATA_TOPIC}-0/{0:020}.log"
    disk.make_folder(f"{METADATA_TOPIC}-0")
    file = disk.open_append(name)
    file.append(bytes(1_000_000))
    file.close()
    do_damage([disk], Damage(what=What.LOG))
    assert disk.exists(name), "it is the largest, and is not chosen"
    assert logs_in(states(disk)) == {"small-1"}, "no broker logs that it opens it"
