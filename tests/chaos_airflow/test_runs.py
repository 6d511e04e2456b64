"""A run's name, its origin, and its copy for readers."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from chaos_airflow.runs import Origin, RunName, note_airflow_run, publish
from chaos_airflow.settings import runs_folder
from chaos_airflow.views.reading import Runs, State
from tests.chaos_airflow.run_folders import made

RUN = "kill-leader-20261120T020304-00000007"
CONTEXT: Any = {"ti": SimpleNamespace(dag_id="chaos_nightly", run_id="r", task_id="run.start", map_index=2)}


@pytest.mark.parametrize(
    ("text", "scenario", "seed"),
    [
        pytest.param("smoke-20261120T020304-0000000a", "smoke", 10, id="a scenario of one word"),
        pytest.param("acks-all-on-append-20261120T020304-0000000a", "acks-all-on-append", 10, id="of several"),
        pytest.param("smoke-20261120T020304-7fffffffffffffff", "smoke", 2**63 - 1, id="the largest seed"),
        pytest.param("smoke-20261120T020304-0000000a-2", "smoke", 10, id="the second of the same second"),
    ],
)
def test_a_name_says_what_was_run_and_when(text: str, scenario: str, seed: int) -> None:
    made_at = datetime(2026, 11, 20, 2, 3, 4, tzinfo=UTC)
    assert RunName.parse(text) == RunName(text=text, scenario=scenario, made=made_at, seed=seed)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("notes", id="another folder"),
        pytest.param(".", id="the folder itself"),
        pytest.param("..", id="the folder above"),
        pytest.param("../smoke-20261120T020304-0000000a", id="a path"),
        pytest.param("smoke-20261120T020304-0000000a/..", id="a path at its end"),
        pytest.param("smoke-20261120T020304-0000000a\n", id="a line's end"),
        pytest.param("smoke-20261120T020304-0000000a\0", id="NUL"),
        pytest.param("smoke-20261320T020304-0000000a", id="a month that is none"),
        pytest.param("<b>-20261120T020304-0000000a", id="a scenario that could not be named so"),
        pytest.param("smoke-20261120T020304-xyz", id="no seed"),
    ],
)
def test_what_no_run_is_called_is_no_name(text: str) -> None:
    assert RunName.parse(text) is None


class Remembering(MemoryFileSystem):  # type: ignore[misc] # it has no annotations
    """An object storage as most are: a listing is cached until it is invalidated."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: dict[str, list[Any]] = {}

    def ls(self, path: str, detail: bool = True, **more: Any) -> list[Any]:
        """Return what was there when it was last looked at."""
        seen: list[Any] = super().ls(path, detail=detail, **more)
        return seen if detail else self.listed.setdefault(path, seen)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Look again the next time."""
        self.listed.clear()


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    """An object storage that is configured for runs."""
    from airflow.sdk.io.store import attach

    filesystem = Remembering()
    attach("memory", fs=filesystem)
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", "memory://bucket/runs")
    yield filesystem
    filesystem.rm("/bucket", recursive=True)


def test_a_local_run_knows_its_task_and_stays_where_it_is(runs: Path) -> None:
    folder = made(runs, RUN)
    note_airflow_run(folder.root, CONTEXT)
    origin = Origin(dag_id="chaos_nightly", run_id="r", task_id="run.start", map_index=2)
    assert Origin.model_validate_json(folder.origin.read_bytes()) == origin
    assert publish(folder.root) == str(folder.root)
    assert Runs(runs_folder()).overview(RUN).origin == origin


def test_a_run_appears_at_the_remote_place_when_it_starts(remote: MemoryFileSystem, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    folder = made(tmp_path, f"smoke-{now:%Y%m%dT%H%M%S}-00000007")
    folder.verdict.unlink()
    note_airflow_run(folder.root, CONTEXT)
    (name,) = Runs(runs_folder()).names()
    (shown,) = Runs(runs_folder()).overviews([name])
    assert (name.text, shown.state, shown.result) == (folder.run_id, State.RUNNING, None)
    assert shown.origin is not None


def test_a_finished_run_is_published_whole_without_what_is_only_for_here(
    remote: MemoryFileSystem, tmp_path: Path
) -> None:
    folder = made(tmp_path, RUN)
    (folder.data_docs / "static").mkdir(parents=True)
    (folder.data_docs / "static" / "a.css").write_text("b {}", encoding="utf-8")
    folder.cluster.mkdir()
    (folder.cluster / "password").write_text("secret", encoding="utf-8")
    (folder.root / "link").symlink_to("/etc/passwd")
    for _ in range(2):  # a second time replaces
        assert publish(folder.root) == f"memory://bucket/runs/{RUN}"
    there = {path.removeprefix(f"/bucket/runs/{RUN}/") for path in remote.find("/bucket/runs")}
    assert there == {"verdict.json", "scenario.yaml", "data_docs/static/a.css"}
    shown = Runs(runs_folder()).overview(RUN)
    assert shown.state is State.HELD
    assert json.loads(Runs(runs_folder()).read(shown.name, "verdict.json"))["run_id"] == RUN


def test_what_draws_the_timelines_is_published_beside_the_runs_once(remote: MemoryFileSystem, tmp_path: Path) -> None:
    folder, library = made(tmp_path, RUN), "plotly-0123456789abcdef.min.js"
    (tmp_path / library).write_text("draw()", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    publish(folder.root)
    assert Runs(runs_folder()).beside(library) == b"draw()"
    (tmp_path / library).write_text("other", encoding="utf-8")
    publish(folder.root)
    assert Runs(runs_folder()).beside(library) == b"draw()", "it is called by its content"
    assert not remote.exists("/bucket/runs/notes.txt")


def test_a_new_run_is_seen_though_the_storage_remembers_what_it_listed(
    remote: MemoryFileSystem, tmp_path: Path
) -> None:
    for seed in (1, 2):
        publish(made(tmp_path, f"smoke-20261120T020000-0000000{seed}").root)
        assert len(Runs(runs_folder()).names()) == seed


def test_what_says_that_a_run_is_over_is_published_last(
    remote: MemoryFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, RUN)
    folder.report.write_text("report", encoding="utf-8")
    put, calls = remote.put, list[Any]()

    def watched(files: Any, places: Any) -> Any:
        calls.append(files)
        return put(files, places)

    monkeypatch.setattr(remote, "put", watched)
    publish(folder.root)
    assert str(folder.verdict) not in calls[0]
    assert str(folder.report) in calls[0]
    assert calls[-1] == [str(folder.verdict)]


def test_a_run_starts_though_the_remote_place_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", "nowhere://bucket/runs")
    folder = made(tmp_path, RUN)
    note_airflow_run(folder.root, CONTEXT)
    assert folder.origin.exists()
    assert "run.announce failed" in caplog.text
    with pytest.raises(OSError, match="nowhere"):
        publish(folder.root)
