"""A sweep from the form: the command line that it stands for, and one that is carried out."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.runs import Origin
from chaos_airflow.tasks.form import form
from chaos_airflow.tasks.sweep import FOLDER, ORIGIN, arguments, carry_out
from harness.sweep.summary import Summary
from harness.verdict import ExitCode
from tests.dags.snippets import python

EMPTY = {name: param.value for name, param in form().items() if name not in ("driver", "system")}
RUN = """
import json, sys
import chaos_simulate
run = chaos_simulate.simulation.test(run_conf=json.loads(sys.argv[1]))
(ti,) = run.get_task_instances()
print("RESULT", json.dumps({"state": run.state, "summary": ti.xcom_pull(task_ids="sweep")}))
"""


@pytest.mark.parametrize(
    ("values", "command"),
    [
        pytest.param({}, ["--schedules=200", "--", "smoke"], id="an empty form is the scenario itself"),
        pytest.param({"seed": 0}, ["--schedules=200", "--seed=0", "--", "smoke"], id="a seed"),
        pytest.param({"shrink": True}, ["--schedules=200", "--shrink", "--", "smoke"], id="what is found made small"),
        pytest.param(
            {"scenario": "mix", "schedules": 3, "planted_bugs": ["acks-all-on-append"], "duration_s": 9},
            ["--schedules=3", "--planted-bug", "acks-all-on-append", "--set", "duration_s=9", "--", "mix"],
            id="what differs",
        ),
    ],
)
def test_a_form_stands_for_a_command_line(values: dict[str, Any], command: list[str]) -> None:
    filled = EMPTY | {"schedules": 200, "shrink": False} | values
    assert arguments(filled, Path("out")) == ["harness", "simulate", "--out=out", *command]


def test_a_sweep_that_cannot_be_carried_out_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__SCENARIOS", str(tmp_path))
    filled = EMPTY | {"schedules": 2, "shrink": False, "scenario_file": str(tmp_path / "absent.yaml")}
    instant = datetime.now(UTC)
    earlier = tmp_path / FOLDER / f"{instant:%Y%m%dT%H%M%S}" / "of-the-same-task" / "summary.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}")
    with pytest.raises(AirflowFailException, match="did not finish: exit code 2"):
        carry_out(filled, instant, Origin(dag_id="chaos_simulate", run_id="1", task_id="sweep"))


@pytest.mark.jvm
@pytest.mark.rotating(1, of="long")
def test_a_planted_bug_is_found_by_a_sweep_and_that_is_as_expected(airflow: dict[str, str]) -> None:
    request = {
        "scenario": "kill-leader",
        "seed": 1,
        "schedules": 3,
        "planted_bugs": ["acks-all-on-append"],
        "checks": ["I19"],
    }
    result = python(RUN, json.dumps(request), environment=airflow)
    summary = Summary.model_validate(result["summary"])
    assert (result["state"], summary.schedules, summary.exit_code) == ("success", 3, ExitCode.VIOLATED)
    assert summary.violations[0].replay.startswith("chaos run kill-leader")
    (note,) = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"], FOLDER).glob(f"*/{ORIGIN}")
    assert Origin.model_validate_json(note.read_bytes()).dag_id == "chaos_simulate", "its page is found by this note"
