"""The pages of sweeps: which schedules, what was found, and how each is done again."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.sweep.sweep import request_file
from tests.chaos_airflow.run_folders import SWEEP, swept

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

NAME = "20261120T030000"
PLACE = f"/kafka-chaos/sweeps/{NAME}"
REPLAY = "chaos run smoke --driver simulated --seed"


def test_no_sweep_yet_is_an_empty_list(viewer: "TestClient") -> None:
    assert "No sweep here." in viewer.get("/kafka-chaos/sweeps").text


@pytest.mark.parametrize(
    ("broken", "planted", "state", "answer"),
    [
        pytest.param([], [], "held", "3 schedules held, and nothing was found", id="one that held"),
        pytest.param([1], [], "violated", "in 1 schedule", id="a broken promise"),
        pytest.param([1], ["acks-all-on-append"], "violated", "found, as it must be", id="a planted bug is found"),
        pytest.param([], ["acks-all-on-append"], "held", "a planted bug was not found", id="a planted bug is missed"),
    ],
)
def test_a_sweep_begins_with_its_answer(
    viewer: "TestClient", runs: Path, broken: list[int], planted: list[str], state: str, answer: str
) -> None:
    swept(runs, NAME, *broken, planted_bugs=planted)
    page = viewer.get(PLACE).text
    assert f">{state}</span></h1>" in page
    assert answer in page
    assert PLACE in viewer.get("/kafka-chaos/sweeps").text


def test_each_schedule_that_is_found_is_a_link_beside_the_command_that_replays_it(
    viewer: "TestClient", runs: Path
) -> None:
    swept(runs, NAME, 1, 2)
    page = viewer.get(PLACE).text
    for seed in (71, 72):
        assert f'href="{PLACE}/{seed}"' in page
        assert f"{REPLAY} {seed}</code>" in page
        of_schedule = viewer.get(f"{PLACE}/{seed}").text
        assert f"{REPLAY} {seed}</code>" in of_schedule
        assert "What was acknowledged is there." in of_schedule
    assert f"{PLACE}/70" not in page, "nothing was found in that one"


def test_airflow_leads_to_the_sweep_of_a_dag_run(viewer: "TestClient", runs: Path) -> None:
    swept(runs, NAME)
    swept(runs, "20261120T040000")
    (runs / "sweeps" / "20261120T040000" / "origin.json").unlink()
    parameters = {"dag_id": SWEEP["dag_id"], "run_id": SWEEP["run_id"]}
    assert viewer.get("/kafka-chaos/of", params=parameters).headers["location"] == PLACE
    assert "sweeps" not in viewer.get("/kafka-chaos/of", params=parameters | {"run_id": "another"}).headers["location"]


def test_a_sweep_without_a_summary_says_so(viewer: "TestClient", runs: Path) -> None:
    swept(runs, NAME).summary.unlink()
    for place in (PLACE, "/kafka-chaos/sweeps"):
        assert "still running, or stopped early" in viewer.get(place).text


def test_a_damaged_summary_is_said_and_leaves_the_others_alone(viewer: "TestClient", runs: Path) -> None:
    swept(runs, NAME).summary.write_text('{"scenario": 3}')
    swept(runs, "20261120T040000", 1)
    page = viewer.get("/kafka-chaos/sweeps").text
    assert "summary.json is not a summary: " in page
    assert "violated" in page


def fifo(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 << 20)


ARABIC = "".join(chr(0x660 + int(digit)) if digit.isdecimal() else digit for digit in NAME)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param("20261399T000000", Path.mkdir, id="an instant that there is not"),
        pytest.param(ARABIC, Path.mkdir, id="an instant in other digits"),
        pytest.param("20261120T050000", Path.touch, id="a file"),
        pytest.param("20261120T050000", lambda path: path.symlink_to(path.with_name(NAME)), id="a link"),
    ],
)
def test_what_is_no_sweep_leaves_the_others_alone(
    viewer: "TestClient", runs: Path, name: str, make: Callable[[Path], None]
) -> None:
    swept(runs, NAME)
    make(runs / "sweeps" / name)
    assert viewer.get("/kafka-chaos/sweeps").text.count(">held<") == 1
    parameters = {"dag_id": SWEEP["dag_id"], "run_id": SWEEP["run_id"]}
    assert viewer.get("/kafka-chaos/of", params=parameters).headers["location"] == PLACE


@pytest.mark.parametrize(
    ("make", "remark"),
    [
        pytest.param(Path.mkdir, "summary.json is not a file", id="a folder"),
        pytest.param(fifo, "summary.json is not a file", id="a pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "summary.json is not a file", id="a link"),
        pytest.param(huge, "summary.json is larger than 4 MiB", id="a large file"),
    ],
)
def test_a_summary_that_cannot_be_read_is_said_and_leaves_the_others_alone(
    viewer: "TestClient", runs: Path, make: Callable[[Path], None], remark: str
) -> None:
    summary = swept(runs, NAME).summary
    summary.unlink()
    make(summary)
    swept(runs, "20261120T040000", 1)
    page = viewer.get("/kafka-chaos/sweeps").text
    assert remark in page
    assert "violated" in page


@pytest.mark.parametrize("make", [pytest.param(fifo, id="pipes"), pytest.param(Path.mkdir, id="folders")])
def test_nobody_waits_for_what_lies_where_files_should(
    viewer: "TestClient", runs: Path, make: Callable[[Path], None]
) -> None:
    sweep = swept(runs, NAME, 1)
    for path in (sweep.root.parent / "origin.json", request_file(sweep.root), sweep.verdicts):
        path.unlink()
        make(path)
    page = viewer.get(PLACE).text
    assert ">violated</span></h1>" in page
    assert REPLAY not in page
    assert viewer.get(f"{PLACE}/71").status_code == 404


def test_a_verdict_outside_of_a_sweep_is_not_shown(viewer: "TestClient", runs: Path) -> None:
    sweep = swept(runs, NAME, 1)
    outside = runs / "verdicts.jsonl"
    sweep.verdicts.rename(outside)
    sweep.verdicts.symlink_to(outside)
    assert viewer.get(f"{PLACE}/71").status_code == 404


def test_a_sweep_that_was_cleared_shows_its_last_try(viewer: "TestClient", runs: Path) -> None:
    swept(runs, NAME)
    last = swept(runs, NAME, 1)
    last.summary.unlink()
    page = viewer.get(PLACE).text
    assert "still running, or stopped early" in page
    assert "held" not in page
    assert f"{REPLAY} 71</code>" in viewer.get(f"{PLACE}/71").text


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("20261120T999999", id="no instant"),
        pytest.param("20261120T030001", id="one that is not there"),
        pytest.param("%2e%2e", id="the folder above"),
        pytest.param("20261120T050000", id="a link"),
        pytest.param(f"{NAME}/9", id="a schedule that is not there"),
        pytest.param("20261120T060000/70", id="a schedule of one without verdicts"),
    ],
)
def test_what_is_not_there_is_not_found(viewer: "TestClient", runs: Path, place: str) -> None:
    swept(runs, NAME)
    swept(runs, "20261120T060000").verdicts.unlink()
    (runs / "sweeps" / "20261120T050000").symlink_to(runs / "sweeps" / NAME)
    assert viewer.get(f"/kafka-chaos/sweeps/{place}").status_code == 404


def test_sweeps_stay_where_they_were_made(viewer: "TestClient", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", "memory://runs")
    page = viewer.get("/kafka-chaos/sweeps")
    assert page.status_code == 404
    assert "on the worker that made them" in page.text
