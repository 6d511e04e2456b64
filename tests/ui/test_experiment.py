"""One experiment as a person makes it: from the trigger form to the report, in a real Airflow and a real browser."""

import pytest

from harness.store.folder import RunFolder
from harness.store.result import RunResult
from tests.airflow_server import Airflow
from tests.ui.conftest import Person
from tests.verdicts import PASS

DAG = "chaos_experiment"
TASKS = {"start", "drive", "collect_and_stop", "judge", "expectations", "report"}
RUN_TIMEOUT_S = 900.0
FILLED_IN = {
    "scenario": "kill-leader",
    "seed": 7,
    "duration_s": 8,
    "checks": ["lost-write"],
    "fault.kind": "kill",
    "fault.at_s": 1,
    "fault.duration_s": 2,
    "fault.target": "leader(orders,0)",
}


def open_form(person: Person) -> None:
    person.goto(f"/dags/{DAG}")
    person.find("[data-testid=trigger-dag-button]").click()
    person.find("[name=element_seed]")


def states(person: Person) -> dict[str, str]:
    """Return the state of each task as the page of the run shows it."""
    names = person.texts("[data-testid=table-cell-task_display_name]")
    return dict(zip(names, person.texts("[data-testid=table-cell-state]"), strict=False))


@pytest.mark.airflow
@pytest.mark.cluster
def test_an_experiment_from_the_form_to_its_report(person: Person, airflow_server: Airflow) -> None:
    open_form(person)
    person.choose("scenario", str(FILLED_IN["scenario"]))
    person.type_into("seed", str(FILLED_IN["seed"]))
    person.type_into("duration_s", str(FILLED_IN["duration_s"]))
    person.choose("fault.kind", str(FILLED_IN["fault.kind"]))
    for field in ("fault.at_s", "fault.duration_s", "fault.target"):
        person.type_into(field, str(FILLED_IN[field]))
    person.shot("form")
    person.named("More of the scenario", "button").click()
    person.choose("checks", "lost-write")
    person.find("[data-testid=trigger-dag-submit]").click()

    person.wait(lambda driver: "/runs/" in driver.current_url, "the page of the new run")
    run_id = person.driver.current_url.rpartition("/runs/")[2]
    conf = airflow_server.run(DAG, run_id)["conf"]
    assert {name: value for name, value in conf.items() if value is not None} == FILLED_IN

    person.wait(lambda _: "Running" in states(person).values(), "a task that runs", RUN_TIMEOUT_S)
    person.shot("running")
    of_the_run = person.driver.current_url
    person.driver.get("about:blank")  # an open page asks for news all the time
    assert airflow_server.end_of(DAG, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
    person.driver.get(of_the_run)
    ended = {"Success", "Failed", "Upstream Failed", "Skipped"}
    person.wait(lambda _: (seen := states(person)) and {*seen.values()} <= ended, "the end of it")
    assert states(person) == dict.fromkeys(TASKS, "Success")
    person.shot("ended")

    person.named("Chaos run", "a").click()
    with person.inside("iframe[title='Chaos run']"):
        person.wait(lambda _: person.texts(".card b") == ["CONFIRMED", "PASS", "CLEAN"], "its verdicts")
        assert person.find("summary"), "what held is folded"
        person.wait(lambda _: any("kill" in text for text in person.texts("table")), "the fault")
    person.shot("run")

    person.find("[aria-label='Chaos runs']").click()
    with person.inside("iframe[title='Chaos runs']"):
        person.named("kill-leader", "a")
        person.shot("list")
        person.named("kill-leader", "a").click()
        person.named("Report", "a").click()
        with person.inside("iframe[title=Report]"):
            person.find("svg .trace")
            assert "kill-leader" in person.find("h1").text
        person.shot("report")


@pytest.mark.airflow
@pytest.mark.cluster
def test_a_run_that_is_stopped_on_its_page_is_healed_collected_and_judged(
    person: Person, airflow_server: Airflow
) -> None:
    runs = airflow_server.server.settings.runs
    before = set(runs.glob("smoke-*"))
    run_id = airflow_server.trigger(DAG, {"scenario": "smoke", "seed": 7, "duration_s": 300})
    person.wait(lambda _: set(runs.glob("smoke-*/phases.jsonl")) - {run / "phases.jsonl" for run in before}, "a run")
    (run,) = set(runs.glob("smoke-*")) - before
    person.goto(f"/kafka-chaos/runs/{run.name}")
    person.find("section[data-now] .live .window")
    person.shot("live")
    person.find(".stop summary").click()
    person.find("[data-stop]").click()
    person.wait(lambda _: person.texts(".stop [role=status]") == ["Stopping."], "that it stops")
    person.driver.get("about:blank")
    assert airflow_server.end_of(DAG, run_id, timeout_s=RUN_TIMEOUT_S) == "failed"
    result = RunResult.load(RunFolder(run).verdict)
    assert (result.outcome, result.residue) == ("inconclusive", [])
    assert "the phase drive was interrupted" in [remark.text for remark in result.remarks]
    assert any(check.verdict is PASS for check in result.checks)


@pytest.mark.airflow
@pytest.mark.rotating(1)
def test_every_kind_of_input_arrives_as_the_model_wants_it(person: Person, airflow_server: Airflow) -> None:
    open_form(person)
    person.choose("planted_bugs", "acks-all")
    person.named("More of the scenario", "button").click()
    person.choose("checks", "I10")
    person.choose("checks", "phantom")
    person.named("Cluster", "button").click()
    person.type_into("cluster.brokers", "2")
    person.choose("cluster.zookeeper_servers", "3")
    person.named("Load: produce-consume", "button").click()
    person.type_into("produce-consume.acks", '[1, "all"]')
    person.type_into("produce-consume.rate_per_s", "1234.5")
    person.choose("produce-consume.reread", "true")
    person.shot("form-load")
    person.find("[data-testid=trigger-dag-submit]").click()
    person.wait(lambda driver: "/runs/" in driver.current_url, "the page of the new run")
    run_id = person.driver.current_url.rpartition("/runs/")[2]
    assert {name: value for name, value in airflow_server.run(DAG, run_id)["conf"].items() if value is not None} == {
        "scenario": "smoke",
        "planted_bugs": ["acks-all-on-append"],
        "checks": ["I10", "phantom"],
        "cluster.brokers": 2,
        "cluster.zookeeper_servers": 3,
        "produce-consume.acks": [1, "all"],
        "produce-consume.rate_per_s": 1234.5,
        "produce-consume.reread": "true",
        "fault.at_s": 2.0,
    }
    assert airflow_server.end_of(DAG, run_id, timeout_s=RUN_TIMEOUT_S) == "failed", "three replicas on two brokers"


@pytest.mark.airflow
@pytest.mark.rotating(1)
def test_a_value_out_of_bounds_ends_in_start_with_its_field_and_limit(person: Person, airflow_server: Airflow) -> None:
    open_form(person)
    person.type_into("duration_s", "0")
    person.find("[data-testid=trigger-dag-submit]").click()
    person.wait(lambda driver: "/runs/" in driver.current_url, "the page of the new run")
    run_id = person.driver.current_url.rpartition("/runs/")[2]
    assert airflow_server.end_of(DAG, run_id, timeout_s=RUN_TIMEOUT_S) == "failed"
    person.goto(f"/dags/{DAG}/runs/{run_id}/tasks/start")
    person.wait(lambda _: "duration_s: must be greater than 0, not 0" in person.find("body").text, "the reason")
    person.shot("refused")


@pytest.mark.airflow
@pytest.mark.rotating(1)
def test_the_dag_says_what_it_does(person: Person) -> None:
    person.goto(f"/dags/{DAG}")
    person.find("[data-testid=markdown-button]").click()
    person.named("One experiment", "h3")
    person.shot("documentation")
