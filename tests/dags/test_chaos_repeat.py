"""One scenario with many seeds on an Airflow without any service up, and notifications when a run does not hold."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer, ThreadingTCPServer
from threading import Thread

import pytest

from chaos_airflow.tasks.form import scenario_name
from chaos_airflow.tasks.request import RunRequest
from chaos_airflow.tasks.suite import repetitions
from tests.dags.snippets import python

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = re.compile(r"```python\n(.*?)```", re.DOTALL)

RUN = """
import json, sys
from tests.dags import faked_phases
faked_phases.install(json.loads(sys.argv[1]))
from airflow.dag_processing.dagbag import DagBag
bag = DagBag("dags/chaos_repeat.py")
run = bag.dags["chaos_repeat"].test(run_conf=json.loads(sys.argv[2]))
states = {f"{ti.task_id}[{ti.map_index}]": ti.state for ti in run.get_task_instances()}
print("RESULT", json.dumps({"state": run.state, "tasks": states}))
"""


@pytest.mark.parametrize(
    ("request_", "seeds", "expect"),
    [
        pytest.param(RunRequest(scenario="smoke", seed=7), [7, 8, 9], "held", id="each has the next seed"),
        pytest.param(
            RunRequest(scenario="smoke", seed=0, planted_bugs=["acks-all-on-append"]),
            [0, 1, 2],
            "violated",
            id="where bugs are planted each must find one",
        ),
    ],
)
def test_a_run_is_repeated_with_other_seeds(request_: RunRequest, seeds: list[int], expect: str) -> None:
    runs = repetitions(request_, 3)
    assert [run["seed"] for run in runs] == seeds
    assert {(run["driver"], run["expect"]) for run in runs} == {("process", expect)}


def test_without_a_seed_another_one_is_drawn_each_time() -> None:
    drawn = [repetitions(RunRequest(scenario="smoke"), 2) for _ in range(2)]
    assert [second["seed"] - first["seed"] for first, second in drawn] == [1, 1]  # type: ignore[operator]
    assert drawn[0][0]["seed"] != drawn[1][0]["seed"]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        pytest.param(None, "smoke", id="a built-in scenario"),
        pytest.param("/own/mine.yaml", "mine", id="a file, beside which the scenario's name says nothing"),
    ],
)
def test_the_runs_are_called_by_what_is_run(file: str | None, name: str) -> None:
    assert scenario_name({"scenario": "smoke", "scenario_file": file}) == name


class Mailbox(StreamRequestHandler):
    """Takes mails as an SMTP server does."""

    mails: list[str]

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while (line := self.rfile.readline()) and not line.upper().startswith(b"QUIT"):
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                mail = b""
                while (text := self.rfile.readline()) not in (b".\r\n", b""):
                    mail += text
                self.mails.append(mail.decode())
            self.wfile.write(b"250 ok\r\n")
        self.wfile.write(b"221 bye\r\n")


@contextmanager
def serving(server: TCPServer) -> Iterator[int]:
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


@pytest.mark.rotating(3, of="dag.test()")
def test_every_run_has_its_seed_and_who_is_documented_as_told_is_told(airflow: dict[str, str], tmp_path: Path) -> None:
    Mailbox.mails = []
    (documented,) = DOCUMENTED.findall((ROOT / "docs" / "how-to" / "run-in-airflow.md").read_text(encoding="utf-8"))
    with serving(ThreadingTCPServer(("127.0.0.1", 0), Mailbox)) as mail:
        (tmp_path / "airflow_local_settings.py").write_text(documented, encoding="utf-8")
        environment = airflow | {
            "PYTHONPATH": f"{tmp_path}:{airflow['PYTHONPATH']}",
            "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(
                {
                    "conn_type": "smtp",
                    "host": "127.0.0.1",
                    "port": mail,
                    "extra": {"disable_ssl": True, "disable_tls": True},
                }
            ),
        }
        request = {"scenario": "kill-leader", "seed": 5, "times": 3}
        answers = {"kill-leader": ["PASS"], "kill-leader-00000006": ["FAIL"]}
        result = python(RUN, json.dumps(answers), json.dumps(request), environment=environment)
    assert result["state"] == "failed"
    assert [result["tasks"][f"run.report[{index}]"] for index in range(3)] == ["success", "failed", "success"]
    (path,) = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"]).glob("repeat-kill-leader-*.json")
    summary = json.loads(path.read_text())
    assert [(entry["seed"], entry["outcome"]) for entry in summary["entries"]] == [
        (5, "held"),
        (6, "violated"),
        (7, "held"),
    ]
    broken = "Chaos repeat: the system broke a promise: "
    assert [broken in text for text in Mailbox.mails] == [True, False]
    assert "Chaos repeat: 1 of 3 runs are not as expected" in Mailbox.mails[1]
