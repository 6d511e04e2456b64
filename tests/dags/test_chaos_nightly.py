"""The nightly suite on a real Airflow without any service up: shape, and runs of every outcome by `dag.test()`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaos_airflow.tasks.request import RunRequest
from chaos_airflow.tasks.suite import inconclusive, requests_of, summary_of, table_lines, write_summary
from harness.report.conclusion import Conclusion
from harness.store.folder import RunFolder
from tests.dags.snippets import python

HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka", "kazoo", "kafka"}

PARSE = """
import json, sys
import chaos_nightly
dag = chaos_nightly.nightly
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
    "pools": {task.task_id: task.pool for task in dag.tasks},
    "without_timeout": [task.task_id for task in dag.tasks if task.execution_timeout is None],
    "retried": [task.task_id for task in dag.tasks if task.retries],
    "dag": [dag.catchup, dag.max_active_runs, dag.dagrun_timeout],
}))
"""

RUN = """
import json, sys
from tests.dags import faked_phases
faked_phases.install(json.loads(sys.argv[1]))
import chaos_nightly
run = chaos_nightly.nightly.test(run_conf={"suite": sys.argv[2]})
from airflow.models.asset import AssetEvent
from airflow.settings import Session
events = [event.extra for event in Session().query(AssetEvent)]
states = {f"{ti.task_id}[{ti.map_index}]": ti.state for ti in run.get_task_instances()}
names = {f"{ti.task_id}[{ti.map_index}]": ti.rendered_map_index for ti in run.get_task_instances()}
print("RESULT", json.dumps({"state": run.state, "tasks": states, "names": names, "events": events}))
"""


def test_the_task_group_of_a_run_is_mapped_twice(airflow: dict[str, str]) -> None:
    parsed = python(PARSE, environment=airflow)
    assert HEAVY & set(parsed["modules"]) == set()
    of_a_run = {
        "start": ["suite"],
        "drive": ["run.start"],
        "collect_and_stop": ["run.drive", "run.start"],
        "judge": ["run.collect_and_stop"],
        "expectations": ["run.judge"],
        "report": ["run.collect_and_stop", "run.expectations", "run.judge", "suite"],
    }
    assert {name: parsed["tasks"][f"run.{name}"] for name in of_a_run} == of_a_run
    assert {parsed["pools"][f"{group}.{name}"] for group in ("run", "again") for name in of_a_run} == {"chaos"}
    assert {"run.drive", "run.report"} <= set(parsed["tasks"]["inconclusive"])
    assert {"again.drive", "again.report"} <= set(parsed["tasks"]["summary"])
    assert parsed["without_timeout"] == []
    assert set(parsed["retried"]) == {f"{g}.{t}" for g in ("run", "again") for t in ("start", "collect_and_stop")}
    assert parsed["dag"] == [False, 1, None]


@pytest.mark.rotating(3, of="dag.test()")
def test_runs_of_every_outcome(airflow: dict[str, str], tmp_path: Path) -> None:
    answers = {
        "smoke": ["PASS"],
        "kill-leader": ["UNKNOWN", "PASS"],
        "expire-session": ["FAIL", "PASS"],
        "controlled-shutdown": ["refused"],
        "no-truncation": ["FAIL"],
        "unclean-election": ["lost in drive"],
    }
    runs = [{"scenario": name, "seed": number} for number, name in enumerate(answers)]
    runs[4]["expect"] = "violated"
    suites = tmp_path / "suites.yaml"
    suites.write_text(json.dumps({"all": {"description": "Every outcome", "runs": runs}}))
    result = python(RUN, json.dumps(answers), f"{suites}:all", environment=airflow)

    (summary,) = (event for event in result["events"] if event["suite"].endswith(":all"))
    entries = {entry["scenario"]: (entry["outcome"], entry["tries"]) for entry in summary["entries"]}
    assert entries == {
        "smoke": ("held", 1),
        "kill-leader": ("held", 2),
        "expire-session": ("violated", 1),
        "controlled-shutdown": ("refused", 1),
        "no-truncation": ("violated", 1),
        "unclean-election": ("broken", 1),
    }
    assert summary["unexpected"] == 3
    (file,) = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"]).glob("all-*.json")
    assert json.loads(file.read_text()) == summary

    origins = [json.loads(file.read_text()) for file in file.parent.glob("*/origin.json")]
    assert sorted(origin["repeats"] for origin in origins if origin["task_id"] == "again.start") == [
        ["run.start", 1],
    ]

    assert result["state"] == "failed"
    states = result["tasks"]
    assert [states[f"run.report[{index}]"] for index in range(6)] == [
        "success",
        "failed",
        "failed",
        "skipped",
        "success",
        "failed",
    ]
    assert [states[f"run.{task}[3]"] for task in ("start", "drive", "collect_and_stop", "judge")] == ["skipped"] * 4
    assert states["again.report[0]"] == "success"
    assert (states["summary[-1]"], states["verdict[-1]"]) == ("success", "failed")
    assert result["names"]["run.judge[1]"] == "kill-leader · process · seed 1"
    assert result["names"]["run.start[3]"] == "controlled-shutdown · process · seed 3"


@pytest.mark.rotating(3, of="dag.test()")
def test_a_cluster_that_does_not_start_is_stopped_and_nothing_follows(airflow: dict[str, str], tmp_path: Path) -> None:
    suites = tmp_path / "suites.yaml"
    suites.write_text(json.dumps({"one": {"description": "One", "runs": [{"scenario": "pause", "seed": 1}]}}))
    suites.write_text(suites.read_text().replace("pause", "acks-all-on-append"))
    result = python(RUN, '{"acks-all-on-append": ["does not start"]}', f"{suites}:one", environment=airflow)
    states = result["tasks"]
    of_the_run = {
        name.removeprefix("run.").partition("[")[0]: state for name, state in states.items() if "run." in name
    }
    assert of_the_run == {
        "start": "failed",
        "drive": "upstream_failed",
        "collect_and_stop": "upstream_failed",
        "judge": "skipped",
        "expectations": "skipped",
        "report": "skipped",
    }
    (entry,) = next(event for event in result["events"] if event["suite"].endswith(":one"))["entries"]
    assert (entry["outcome"], entry["reason"]) == ("broken", "start is broken")
    folders = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"]).glob("acks-all-on-append-*")
    assert all('"stop"' in RunFolder(path).phases.read_text() for path in folders)


@pytest.mark.rotating(3, of="dag.test()")
def test_a_suite_that_is_refused_fails_alone_and_sends_no_event(airflow: dict[str, str], tmp_path: Path) -> None:
    result = python(RUN, "{}", f"{tmp_path}/suites.txt:none", environment=airflow)
    states = result["tasks"]
    of_the_suite = [states[f"{task}[-1]"] for task in ("suite", "inconclusive", "summary", "verdict")]
    assert (result["state"], of_the_suite) == ("failed", ["failed", "skipped", "skipped", "failed"])
    assert [event for event in result["events"] if "none" in event["suite"]] == []


def conclusion(outcome: str, scenario: str = "smoke") -> Conclusion:
    return Conclusion(
        run=f"/runs/{scenario}",
        scenario=scenario,
        driver="process",
        seed=7,
        outcome=outcome,
        fault="CONFIRMED",
        system="UNKNOWN",
        environment="CLEAN",
        objectives="",
        reason="" if outcome == "held" else "why",
    )


def test_only_what_proved_nothing_is_tried_again() -> None:
    outcomes = ("held", "violated", "inconclusive", "broken", "refused", "wrong")
    requests = [RunRequest(scenario=outcome) for outcome in outcomes]
    repeated = {"scenario": "inconclusive", "repeats": ("run.start", 2)}
    assert inconclusive("run", requests, map(conclusion, outcomes)) == [repeated]


def test_the_last_try_counts_and_what_was_not_tried_again_stays() -> None:
    requests = [RunRequest(scenario="a"), RunRequest(scenario="b"), RunRequest(scenario="c", expect="violated")]
    first = [conclusion("inconclusive", "a"), conclusion("inconclusive", "b"), conclusion("held", "c")]
    summary = summary_of("x", "manual", requests, first, [conclusion("held", "a")])
    assert [(entry["outcome"], entry["tries"]) for entry in summary["entries"]] == [
        ("held", 2),
        ("inconclusive", 1),
        ("held", 1),
    ]
    assert summary["unexpected"] == 2
    lines = table_lines(summary)
    assert lines[0].split()[:3] == ["scenario", "driver", "seed"]
    assert lines[-1] == "b inconclusive: why"


def test_a_summary_lies_beside_the_runs_whatever_the_suite_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", str(tmp_path / "runs"))
    summary = summary_of("my.yaml:../../elsewhere", "manual__1", [], [], [])
    write_summary(summary, datetime(2026, 11, 20, 2, tzinfo=UTC))
    (file,) = tmp_path.rglob("*.json")
    assert file == tmp_path / "runs" / "-elsewhere-20261120T020000.json"
    assert json.loads(file.read_text(encoding="utf-8")) == summary


def test_the_built_in_suite_has_driver_and_seed_decided() -> None:
    requests = requests_of("nightly")
    assert len(requests) >= 4
    assert {request["driver"] for request in requests} == {"process", "docker"}
    assert all(request["seed"] is not None for request in requests)
    assert [request["scenario"] for request in requests if request["expect"] == "violated"] == [
        "acks-all-on-append",
        "no-truncation",
        "no-crc-recovery",
        "controller-writes-unfenced",
        "isr-write-without-version",
        "leads-on-without-disk",
        "registration-of-old-session",
        "cut-off",
    ]
