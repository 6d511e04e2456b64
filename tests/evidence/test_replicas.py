import hashlib
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from harness.evidence.replicas import dump_replicas
from harness.store.folder import RunFolder
from harness.store.history import ReplicaState, read_jsonl


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A broker's data directory as Kafka leaves it, without replicas."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (folder / "replication-offset-checkpoint").write_text("0\n2\nt 0 2\nt.x-y 10 0\n")
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    return folder


def replica(log_dir: Path, name: str, *batches: bytes, epochs: str | None = "0\n1\n0 0\n") -> None:
    (log_dir / name).mkdir()
    (log_dir / name / "00000000000000000000.log").write_bytes(b"".join(batches))
    if epochs is not None:
        (log_dir / name / "leader-epoch-checkpoint").write_text(epochs)


def lines(run: RunFolder, topic: str, partition: int) -> list[dict[str, Any]]:
    return list(read_jsonl(run.replica_dump(1, topic, partition)))


def test_a_dump_begins_with_the_state_and_goes_on_with_the_records(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    replica(log_dir, "t-0", batch(b"a"), batch(b"b", b"c", base_offset=1, leader_epoch=4), epochs="0\n2\n0 0\n4 1\n")
    run = RunFolder(tmp_path / "run")

    (state,) = dump_replicas(run, 1, log_dir)

    assert state == ReplicaState(
        broker=1,
        topic="t",
        partition=0,
        log_start_offset=0,
        log_end_offset=3,
        high_watermark=2,
        recovery_point=1,
        leader_epochs=((0, 0), (4, 1)),
        damage="",
    )
    first, *records = lines(run, "t", 0)
    assert (first["type"], first["leader_epochs"]) == ("replica", [[0, 0], [4, 1]])
    assert [(line["type"], line["offset"], line["leader_epoch"], line["key"], line["value"]) for line in records] == [
        ("record", 0, 0, "k", "a"),
        ("record", 1, 4, "k", "b"),
        ("record", 2, 4, "k", "c"),
    ]
    assert [path.name for path in run.replica_dump(1, "t", 0).parent.iterdir()] == ["replica-t-0.jsonl"]


def test_only_whole_replicas_are_dumped_by_topic_and_partition(tmp_path: Path, log_dir: Path) -> None:
    for name in ("t.x-y-10", "t.x-y-9", "a-0", "gone-0.3f-delete", "moving-0.3f-future", "notes"):
        replica(log_dir, name)
    (log_dir / "file-0").write_text("")
    states = dump_replicas(RunFolder(tmp_path / "run"), 1, log_dir)
    assert [(state.topic, state.partition) for state in states] == [("a", 0), ("t.x-y", 9), ("t.x-y", 10)]
    assert [state.high_watermark for state in states] == [-1, -1, 0]


def test_what_is_left_of_deleted_replicas_is_listed(tmp_path: Path, log_dir: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    dump_replicas(folder, 1, log_dir)
    assert not folder.deleted_logs(1).exists()
    for name in ("t.x-y-10.0-delete", "gone-0.3fc1-delete", "gone-0-delete", "moving-0.3f-future"):
        replica(log_dir, name)
    dump_replicas(folder, 1, log_dir)
    lines = [json.loads(line) for line in folder.deleted_logs(1).read_text(encoding="utf-8").splitlines()]
    assert [(line["broker"], line["topic"], line["partition"], line["folder"]) for line in lines] == [
        (1, "gone", 0, "gone-0.3fc1-delete"),
        (1, "t.x-y", 10, "t.x-y-10.0-delete"),
    ]


def test_of_a_cluster_of_others_only_the_runs_own_topics_are_dumped(tmp_path: Path, log_dir: Path) -> None:
    for name in ("theirs-0", "theirs-1.0a-delete", "__transaction_state-0", "own-t-0", "own-t-1.0a-delete"):
        replica(log_dir, name)
    folder = RunFolder(tmp_path / "run")
    assert [state.topic for state in dump_replicas(folder, 1, log_dir, "own-")] == ["own-t"]
    assert len(list(folder.replica_dump(1, "own-t", 0).parent.glob("replica-*"))) == 1
    lines = folder.deleted_logs(1).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["topic"] for line in lines] == ["own-t"]


def test_replicas_of_several_data_directories_are_dumped_each_with_its_own_checkpoints(
    tmp_path: Path, log_dir: Path, batch: Any
) -> None:
    other = tmp_path / "all" / "disk2"
    shutil.copytree(log_dir, other)
    log_dir = log_dir.rename(tmp_path / "all" / "disk1")
    (other / "replication-offset-checkpoint").write_text("0\n1\na 0 1\n")
    replica(log_dir, "t-0", batch(b"a"), batch(b"b", base_offset=1))
    replica(other, "a-0", batch(b"a"))
    states = dump_replicas(RunFolder(tmp_path / "run"), 1, tmp_path / "all")
    assert [(state.topic, state.high_watermark, state.log_end_offset) for state in states] == [("a", 1, 1), ("t", 2, 2)]


def test_a_broker_that_never_had_a_data_directory_has_no_replicas(tmp_path: Path) -> None:
    assert dump_replicas(RunFolder(tmp_path / "run"), 1, tmp_path / "nowhere") == []


def test_values_that_are_no_text_become_digests_and_null_is_empty(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    replica(log_dir, "t-0", batch(b"\xff", None, "\u00e9\n".encode(), key=None))
    run = RunFolder(tmp_path / "run")
    dump_replicas(run, 1, log_dir)
    assert [(line["key"], line["value"]) for line in lines(run, "t", 0)[1:]] == [
        ("", hashlib.sha256(b"\xff").hexdigest()),
        ("", ""),
        ("", "\u00e9\n"),
    ]


def test_a_digest_tells_apart_whatever_is_different(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    contents: list[dict[str, Any]] = [
        {"key": b"a", "values": (b"b",)},
        {"key": b"ab", "values": (b"",)},
        {"key": b"ab", "values": (None,)},
        {"key": None, "values": (b"ab",)},
        {"key": b"a", "values": (b"b",), "headers": (("h", b"1"),)},
        {"key": b"a", "values": (b"b",), "headers": (("h", None),)},
        {"key": b"a", "values": (b"b",)},
    ]
    batches = [
        batch(*content.pop("values"), base_offset=offset, leader_epoch=offset, **content)
        for offset, content in enumerate(contents)
    ]
    replica(log_dir, "t-0", *batches)
    run = RunFolder(tmp_path / "run")
    dump_replicas(run, 1, log_dir)
    digests = [line["digest"] for line in lines(run, "t", 0)[1:]]
    assert len(set(digests)) == 6
    assert digests[0] == digests[-1]


@pytest.mark.parametrize(
    ("epochs", "expected", "damage"),
    [
        pytest.param(None, (), "", id="a replica without an epoch checkpoint has no epochs"),
        pytest.param("0\n0\n", (), "", id="an empty checkpoint is fine"),
        pytest.param("0\n2\n0 0\n", (), "leader-epoch-checkpoint: not a checkpoint", id="a line is missing"),
        pytest.param("0\n1\n0 x\n", (), "leader-epoch-checkpoint: not a checkpoint", id="an offset is no number"),
        pytest.param("9\n1\n0 0\n", (), "leader-epoch-checkpoint: not a checkpoint", id="an unknown version"),
        pytest.param("", (), "", id="an empty file is a new one"),
    ],
)
def test_epoch_checkpoints(
    tmp_path: Path, log_dir: Path, batch: Any, epochs: str | None, expected: tuple[Any, ...], damage: str
) -> None:
    replica(log_dir, "t-0", batch(b"a"), epochs=epochs)
    (state,) = dump_replicas(RunFolder(tmp_path / "run"), 1, log_dir)
    assert (state.leader_epochs, state.damage, state.log_end_offset) == (expected, damage, 1)


def test_damage_of_the_log_and_of_a_shared_checkpoint_are_both_noted(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    replica(log_dir, "t-0", batch(b"a"), b"torn")
    (log_dir / "replication-offset-checkpoint").write_text("garbage")
    (state,) = dump_replicas(RunFolder(tmp_path / "run"), 1, log_dir)
    assert (state.log_end_offset, state.high_watermark, state.recovery_point) == (1, -1, 1)
    assert "half a batch header (4 bytes)" in state.damage
    assert "replication-offset-checkpoint: not a checkpoint" in state.damage


def test_the_log_start_is_the_checkpointed_one_when_records_were_deleted(
    tmp_path: Path, log_dir: Path, batch: Any
) -> None:
    replica(log_dir, "t-0", batch(b"a", b"b", b"c"))
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    (state,) = dump_replicas(RunFolder(tmp_path / "run"), 1, log_dir)
    assert state.log_start_offset == 2


def test_committed_offsets_are_readable(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 0)
    value = struct.pack(">hqihq", 3, 42, 7, 0, 99)
    replica(log_dir, "__consumer_offsets-2", batch(value, None, key=key), batch(b"odd", base_offset=2, key=b"odd"))
    run = RunFolder(tmp_path / "run")
    dump_replicas(run, 1, log_dir)
    committed, taken_back, odd = lines(run, "__consumer_offsets", 2)[1:]
    assert json.loads(committed["key"]) == {"type": "offset", "group": "g", "topic": "t", "partition": 0}
    assert json.loads(committed["value"])["offset"] == 42
    assert (taken_back["key"], taken_back["value"]) == (committed["key"], "")
    assert (odd["key"], odd["value"]) == ("odd", "odd")


def test_of_a_cluster_of_others_the_commits_of_the_runs_groups_are_dumped(
    tmp_path: Path, log_dir: Path, batch: Any
) -> None:
    """A dump ends where the last of them does, as others commit meanwhile."""
    keys = [struct.pack(">hh5sh1si", 1, 5, group, 1, b"t", 0) for group in (b"own-g", b"their", b"own-g", b"their")]
    value = struct.pack(">hqihq", 3, 42, 7, 0, 99)
    replica(log_dir, "__consumer_offsets-2", *(batch(value, base_offset=at, key=key) for at, key in enumerate(keys)))
    replica(log_dir, "__consumer_offsets-3", batch(value, key=keys[1]))
    run = RunFolder(tmp_path / "run")
    assert [state.log_end_offset for state in dump_replicas(run, 1, log_dir, "own-")] == [3, 0]
    assert [line["offset"] for line in lines(run, "__consumer_offsets", 2)[1:]] == [0, 2]
    assert lines(run, "__consumer_offsets", 3)[1:] == []


def test_a_hundred_thousand_records_are_read(tmp_path: Path, log_dir: Path, batch: Any) -> None:
    values = [bytes(100)] * 500
    one = batch(*values)
    replica(log_dir, "t-0", *((offset * 500).to_bytes(8, "big") + one[8:] for offset in range(200)))
    (state,) = dump_replicas(RunFolder(tmp_path / "run"), 1, log_dir)
    assert state.log_end_offset == 100_000
