"""What is read of a replica's markers, aborted transactions and producers, and what is said of damaged files."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.broker.log.file_storage import FileStorage
from harness.broker.log.manager import LogManager
from harness.evidence.replicas import dump_replicas
from harness.store.folder import RunFolder
from tests.broker.log.logs import end_transaction, from_producer, write_in_transaction


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A broker's directory after a clean stop: one transaction was aborted, one committed, one is open."""
    folder = tmp_path / "log"
    logs = LogManager(FileStorage(folder))
    logs.load()
    log = logs.get_or_create("t", 0)
    write_in_transaction(log, 0)
    write_in_transaction(log, 0, producer_id=8)
    end_transaction(log, commits=False, coordinator_epoch=5)
    end_transaction(log, commits=True, producer_id=8, coordinator_epoch=6)
    write_in_transaction(log, 1)
    logs.get_or_create("without", 0)
    logs.close_clean()
    return folder


def dumped(tmp_path: Path, log_dir: Path) -> tuple[list[dict[str, Any]], str]:
    run = RunFolder(tmp_path / "run")
    states = dump_replicas(run, 1, log_dir)
    lines = run.transactions_dump(1).read_text().splitlines()
    return [json.loads(line) for line in lines], states[0].damage


def test_markers_index_and_snapshot_are_dumped(tmp_path: Path, log_dir: Path) -> None:
    lines, damage = dumped(tmp_path, log_dir)
    assert damage == ""
    assert {(line["broker"], line["topic"], line["partition"]) for line in lines} == {(1, "t", 0)}
    markers = [line for line in lines if line["type"] == "marker"]
    assert [(each["offset"], each["producer_id"], each["result"], each["coordinator_epoch"]) for each in markers] == [
        (2, 7, "abort", 5),
        (3, 8, "commit", 6),
    ]
    (aborted,) = [line for line in lines if line["type"] == "aborted"]
    names = ("segment", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    assert [aborted[name] for name in names] == [0, 7, 0, 2, 1]
    producers = [line for line in lines if line["type"] == "producer"]
    assert [
        (each["snapshot_offset"], each["producer_id"], each["last_sequence"], each["transaction_first_offset"])
        for each in producers
    ] == [(5, 7, 1, 4), (5, 8, 0, -1)]


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [
        pytest.param(f"{0:020}.txnindex", b"\0" * 40, f"{0:020}.txnindex: 6 bytes after 1 transactions", id="cut"),
        pytest.param(f"{0:020}.txnindex", b"\1" * 34, f"{0:020}.txnindex: version 257 at byte 0", id="version"),
        pytest.param(f"{5:020}.snapshot", b"\0" * 7, f"{5:020}.snapshot: a snapshot of 7 bytes", id="short"),
        pytest.param(
            f"{5:020}.snapshot",
            b"\0\1" + b"\0" * 8,
            f"{5:020}.snapshot: version 1, 0 producers in 10 bytes, or a wrong CRC",
            id="a wrong CRC",
        ),
    ],
)
def test_what_cannot_be_read_is_damage(tmp_path: Path, log_dir: Path, name: str, damage: bytes, problem: str) -> None:
    (log_dir / "t-0" / name).write_bytes(damage)
    assert dumped(tmp_path, log_dir)[1] == problem


def test_without_transactions_and_producers_nothing_is_written(tmp_path: Path) -> None:
    logs = LogManager(FileStorage(tmp_path / "log"))
    logs.load()
    logs.get_or_create("t", 0)
    logs.close_clean()
    run = RunFolder(tmp_path / "run")
    dump_replicas(run, 1, tmp_path / "log")
    assert not run.transactions_dump(1).exists()


def test_an_idempotent_producer_alone_is_dumped(tmp_path: Path) -> None:
    logs = LogManager(FileStorage(tmp_path / "log"))
    logs.load()
    logs.get_or_create("t", 0).append_as_leader(from_producer(3), 0)
    logs.close_clean()
    ((line,), _) = dumped(tmp_path, tmp_path / "log")
    assert (line["producer_id"], line["last_sequence"], line["coordinator_epoch"]) == (7, 3, -1)
