"""The trigger form of chaos_experiment: all that the models say, nothing they refuse, as the command line does it."""

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from airflow.sdk import Param
from airflow.sdk.exceptions import ParamValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from chaos_airflow.tasks import form_cache
from chaos_airflow.tasks.form import GROUPS, LEFT_OUT, PROPOSED, fields_of, form, request_of_form
from chaos_airflow.tasks.request import RunRequest, load
from chaos_airflow.tasks.suite import requests_of
from harness.cli.new import Made, new
from harness.contracts import registry
from harness.contracts.parameters import Strict
from harness.contracts.registry import Kind
from harness.errors import ScenarioError
from harness.scenario.file import load_scenario
from harness.scenario.model import ClusterSpec, FaultSpec, Scenario, TopicSpec, WorkloadSpec
from harness.scenario.source import options, set_option
from harness.system.plugins import FOLDERS
from tests.airflow_server import Airflow

ROOT = Path(__file__).resolve().parents[2]
FORM = form()
OWN_DRIVER = """\
from kafka_chaos.api.drivers import ProcessDriver


class PLUGIN(ProcessDriver):
    name = "own"
"""
MODELS: dict[str, type[BaseModel]] = {
    "": Scenario,
    "cluster.": ClusterSpec,
    "topics.0.": TopicSpec,
    "workloads.0.": WorkloadSpec,
    "fault.": FaultSpec,
    **{f"{name}.": registry.fault(name).Parameters for name in registry.names(Kind.FAULT)},
    **{f"{name}.": registry.workload(name).Parameters for name in registry.names(Kind.WORKLOAD)},
}
MODEL_FIELDS = {
    f"{prefix}{field}": (model, field, schema)
    for prefix, model in MODELS.items()
    for field, schema in model.model_json_schema()["properties"].items()
    if f"{prefix}{field}" not in GROUPS
}
"""Every field of the models, by its name in the form."""
FIELDS = sorted(MODEL_FIELDS.keys() - LEFT_OUT.keys())
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern")
HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka", "kazoo", "kafka"}


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a DAG run whose form was filled in like this, and otherwise left as it opens."""
    assert values.keys() <= FORM.keys()
    return {name: param.value for name, param in FORM.items()} | dict(values)


def accepted(param: Param, value: Any) -> bool:
    try:
        copy.copy(param).resolve(value)
    except ParamValidationError:
        return False
    return True


def probes(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Values around every bound, and values of every type."""
    yield from (
        "x",
        "",
        "true",
        "leader(orders,0)",
        True,
        0,
        1,
        2,
        3,
        -1,
        0.5,
        -0.5,
        1e12,
        ["x"],
        {"load": True},
        {"sync_ms": 1.0},
        ["I1"],
        [1, "all"],
        {"a": "b"},
        {"kinds": [{"kind": "kill"}]},
        {"no_write_s": 8.0},
    )
    for bound in BOUNDS:
        if isinstance(schema.get(bound), int | float):
            yield from (schema[bound] - 1, schema[bound] - 0.5, schema[bound], schema[bound] + 0.5, schema[bound] + 1)


def model_accepts(name: str, value: Any) -> bool:
    model, field, _ = MODEL_FIELDS[name]
    info = model.model_fields[field]
    annotation: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    config = ConfigDict(strict=True, allow_inf_nan=False)
    one_field: type[BaseModel] = create_model("OneField", __config__=config, value=(annotation, ...))
    try:
        one_field.model_validate({"value": value})
    except ValidationError:
        return False
    return True


def test_every_field_of_a_model_is_in_the_form_or_left_out_for_a_reason() -> None:
    assert FORM.keys() - {"scenario", "scenario_file", "seed", "faults"} == set(FIELDS)
    assert MODEL_FIELDS.keys() >= LEFT_OUT.keys()


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_shows_the_description_and_every_bound_and_may_stay_empty(name: str) -> None:
    shown, schema = FORM[name].schema, MODEL_FIELDS[name][2]
    assert schema["description"] in shown["description_md"]
    for bound in BOUNDS:
        assert bound not in shown, "Airflow's form would refuse the value without saying why"
        assert bound not in schema or str(schema[bound]) in shown["description_md"]
    assert FORM[name].value == PROPOSED.get(name)
    assert accepted(FORM[name], None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"duration_s": 0}, "duration_s: must be greater than 0, not 0", id="too small"),
        pytest.param({"cluster.brokers": 99}, "brokers: must be less than or equal to 32, not 99", id="within a part"),
        pytest.param(
            {"fault.kind": "kill", "kill.confirm_timeout_s": -3},
            "confirm_timeout_s: must be greater than 0, not -3",
            id="of a fault",
        ),
        pytest.param({"produce-consume.rate_per_s": -5}, "rate_per_s: must be greater than 0, not -5", id="of a load"),
        pytest.param({"mix": {"foo": 1}}, "mix.foo: unknown key", id="within JSON"),
        pytest.param({"seed": -1}, "seed: must be from 0 to 9007199254740991, not -1", id="the seed"),
        pytest.param({"faults": [{"kind": "kil", "at_s": 1}]}, "faults.0.kind: unknown fault 'kil'", id="a list"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_field_and_limit(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        load(request_of_form(filled(values)))


WITH_LOAD = {
    "administer": "storm-sweep",
    "transact": "transactions",
    "exactly-once": "exactly-once",
    "play-scripts": str(ROOT / "tools/scripts-light.yaml"),
}
"""A scenario that has the load; `groups` has the others."""


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_that_is_filled_in_changes_what_is_run(name: str) -> None:
    shown = FORM[name].schema
    parts = (shown, *MODEL_FIELDS[name][2].get("anyOf", []))
    choices = [value for part in parts for value in part.get("enum", []) if value is not None]
    several = FORM[name].schema.get("items", {}).get("enum", [])[:1]
    possible = [value for value in probes(MODEL_FIELDS[name][2]) if model_accepts(name, value)]
    value = next(value for value in (*choices, several, *possible) if value and accepted(FORM[name], value))
    kind = name.partition(".")[0]
    beside: dict[str, Any] = {}
    if kind in ("fault", *registry.names(Kind.FAULT)):
        beside = {"fault.kind": kind if registry.known(Kind.FAULT, kind) else "kill"}
    elif registry.known(Kind.WORKLOAD, kind):
        beside = {"scenario": WITH_LOAD.get(kind, "groups")}
    before = RunRequest(scenario="smoke") if name == "fault.kind" else request_of_form(filled(beside))
    assert request_of_form(filled(beside | {name: value})) != before


def test_a_new_field_of_a_model_is_in_the_form_as_it_is() -> None:
    class Gained(Strict):
        level: Annotated[int, Field(ge=3, lt=9, description="How loud")] = 4
        quick: Annotated[bool, Field(description="Whether it is quick")] = False
        either: Annotated[int | None, Field(ge=2, description="A number or nothing")] = None

    made = fields_of(Gained, prefix="new.", section="New")
    assert made["new.level"].schema == {
        "type": ["null", "integer"],
        "section": "New",
        "title": "level",
        "description_md": "How loud *(at least 3, less than 9, default 4)*",
    }
    assert [value for value in (None, "true", "false", "yes", True) if accepted(made["new.quick"], value)] == [
        None,
        "true",
        "false",
    ]
    assert [value for value in (None, 1, 2, "2") if accepted(made["new.either"], value)] == [None, 1, 2]


@pytest.mark.parametrize(
    ("values", "driver", "bugs", "sets"),
    [
        pytest.param({}, None, [], [], id="an empty form is the scenario itself"),
        pytest.param({"duration_s": 40.5}, None, [], ["duration_s=40.5"], id="a number"),
        pytest.param({"cluster.brokers": 5}, None, [], ["cluster.brokers=5"], id="a number within a part"),
        pytest.param({"driver": "process"}, "process", [], [], id="a driver"),
        pytest.param({"planted_bugs": ["acks-all-on-append"]}, None, ["acks-all-on-append"], [], id="a planted bug"),
        pytest.param({"checks": ["I1", "phantom"]}, None, [], ["checks=[I1, phantom]"], id="several checks"),
        pytest.param(
            {"topics.0.config": {"min.insync.replicas": "1", "segment.bytes": "1048576"}},
            None,
            [],
            ["topics.0.config.min.insync.replicas=1", "topics.0.config.segment.bytes=1048576"],
            id="properties join those of the scenario",
        ),
        pytest.param(
            {"produce-consume.acks": [1, "all"], "produce-consume.reread": "true"},
            None,
            [],
            ["workloads.0.parameters.acks=[1, all]", "workloads.0.parameters.reread=true"],
            id="what the load takes",
        ),
        pytest.param(
            {"mix": {"kinds": [{"kind": "kill", "duration_s": [1, 4]}], "count": 3}},
            None,
            [],
            ["mix={kinds: [{kind: kill, duration_s: [1, 4]}], count: 3}"],
            id="a mix",
        ),
        pytest.param(
            {
                "driver": "simulated",
                "fault.kind": "isolate",
                "isolate.sides": ["peers", "zookeeper"],
                "isolate.direction": "inbound",
            },
            "simulated",
            [],
            ["faults=[{kind: isolate, at_s: 2.0, parameters: {sides: [peers, zookeeper], direction: inbound}}]"],
            id="which links a fault is about",
        ),
        pytest.param(
            {"fault.kind": "pause", "fault.duration_s": 3, "fault.target": "leader(orders,1)"},
            None,
            [],
            ["faults=[{kind: pause, at_s: 2.0, duration_s: 3, target: 'leader(orders,1)'}]"],
            id="a fault in the place of the scenario's",
        ),
        pytest.param(
            {"fault.kind": "kill", "fault.at_s": 4, "fault.target": "1,2", "kill.confirm_timeout_s": 12.5},
            None,
            [],
            ["faults=[{kind: kill, at_s: 4, target: '1,2', parameters: {confirm_timeout_s: 12.5}}]"],
            id="a fault with what its kind takes",
        ),
        pytest.param(
            {
                "fault.kind": "kill",
                "faults": [{"kind": "pause", "at_s": 5, "target": "controller"}],
            },
            None,
            [],
            ["faults=[{kind: kill, at_s: 2.0}, {kind: pause, at_s: 5, target: controller}]"],
            id="more than one fault",
        ),
    ],
)
def test_a_form_asks_for_what_the_command_line_would(
    values: dict[str, Any], driver: str | None, bugs: list[str], sets: list[str]
) -> None:
    assert load(request_of_form(filled(values))) == load_scenario("smoke", options(driver, bugs, sets))


def test_what_a_load_takes_goes_to_the_load_of_its_kind() -> None:
    requested = load(request_of_form(filled({"scenario": "groups", "consume-group.assignor": "range"})))
    assert requested == load_scenario("groups", options(None, [], ["workloads.1.parameters.assignor=range"]))
    assert requested != load_scenario("groups")


def test_a_scenario_of_your_own_and_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__SCENARIOS", f"/elsewhere:{tmp_path}")
    request = request_of_form(filled({"scenario_file": str(tmp_path / "mine.yaml"), "seed": 0}))
    assert (request["scenario"], request["seed"]) == (str(tmp_path / "mine.yaml"), 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"fault.target": "controller"}, "fault.target: filled in, but fault.kind is as", id="no fault"),
        pytest.param(
            {"fault.kind": "pause", "kill.confirm_timeout_s": 3}, "kill.confirm_timeout_s.*is pause", id="another fault"
        ),
        pytest.param(
            {"consume-group.members": 5},
            "consume-group.members: filled in, but the load of smoke is produce-consume",
            id="a load that the scenario does not have",
        ),
    ],
)
def test_a_field_of_what_is_not_there_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        request_of_form(filled(values))


@pytest.mark.parametrize("configured", ["", "/elsewhere", "own"])
def test_a_file_outside_the_folders_that_are_meant_for_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: str
) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__SCENARIOS", configured and str(tmp_path / configured))
    (tmp_path / "own").mkdir()
    (tmp_path / "secret.yaml").touch()
    (tmp_path / "own" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for name in ("secret.yaml", "own/../secret.yaml", "own/link.yaml"):
        with pytest.raises(ScenarioError, match=r"Airflow runs scenarios only from .*\[kafka_chaos\] scenarios"):
            request_of_form(filled({"scenario_file": str(tmp_path / name)}))
        with pytest.raises(ScenarioError, match="Airflow runs scenarios only from"):
            requests_of(f"{tmp_path / name}:all")


def test_the_form_that_was_made_ahead_is_the_one_that_would_be_made_now() -> None:
    again = "make it anew: make pages"
    made_ahead = json.loads(form_cache.FILE.read_bytes())
    assert made_ahead["content"] == form_cache.content(), again
    assert list(made_ahead["fields"].items()) == [
        (name, [param.value, param.schema]) for name, param in FORM.items()
    ], again


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("folder", "file", "text", "field"),
    [
        pytest.param("scenarios", "own.yaml", "description: Of one's own\n", "scenario", id="a scenario"),
        pytest.param("faults", "own_fault.py", '"""Of one\'s own."""\n', "fault.kind", id="a fault"),
        pytest.param("checks", "own.py", '"""Of one\'s own."""\n', "checks", id="a check"),
        pytest.param("drivers", "own.py", OWN_DRIVER, "driver", id="a driver"),
    ],
)
def test_content_that_is_installed_later_is_in_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, file: str, text: str, field: str
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / file).write_text(text, encoding="utf-8")
    known = registry.fault("kill")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    monkeypatch.setattr(registry, "fault", lambda _: known)
    param = form_cache.ready_form()[field].schema
    assert Path(file).stem.replace("_", "-") in (param.get("enum") or param["examples"])


def test_a_fault_of_a_folder_has_its_parameters_in_the_form_and_is_asked_for_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new(Made.FAULT, "doze", tmp_path)
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    params = form_cache.ready_form()
    assert params["doze.see_timeout_s"].schema["section"] == "Fault: doze"
    filled_in = {name: param.value for name, param in params.items()}
    request = request_of_form({**filled_in, "fault.kind": "doze", "doze.see_timeout_s": 3})
    (fault,) = load_scenario("smoke", [set_option(text) for text in request["set"]]).faults
    assert (fault.kind, fault.parameters["see_timeout_s"]) == ("doze", 3)


def test_a_fault_that_breaks_is_left_out_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "bang.py").write_text("1/0", encoding="utf-8")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    kind = form_cache.ready_form()["fault.kind"].schema
    assert "kill" in kind["enum"]
    assert "bang" not in kind["enum"]
    assert "cannot be imported: ZeroDivisionError" in kind["description_md"]


def test_a_file_that_is_no_yaml_by_its_name_is_refused() -> None:
    with pytest.raises(ScenarioError, match=re.escape("/etc/shadow: the name of a scenario's file ends with .yaml or")):
        request_of_form(filled({"scenario_file": "/etc/shadow"}))


PARSE = """
import json, sys, time
began_s = time.process_time()
import airflow.sdk, airflow.providers.standard.operators.python
import chaos_airflow.tasks.form
took_s = {"Airflow": time.process_time() - began_s}
def refuse():
    sys.exit("the form is made while a DAG is parsed, and not read")
chaos_airflow.tasks.form.form = refuse
for dag in ("chaos_experiment", "chaos_repeat", "chaos_simulate"):
    began_s = time.process_time()
    __import__(dag)
    took_s[dag] = time.process_time() - began_s
dag = sys.modules["chaos_repeat"].repeat
from airflow.serialization.serialized_objects import DagSerialization
copies = [task.task_id for task in dag.tasks if task.params]
size = len(json.dumps(DagSerialization.to_dict(dag)))
print(json.dumps([sorted({name.partition(".")[0] for name in sys.modules}), took_s, len(dag.params), copies, size]))
"""


def test_parsing_imports_nothing_heavy_takes_a_moment_and_copies_no_form() -> None:
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("dags", "plugins", ""))
    command = [sys.executable, "-c", PARSE]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, timeout=120, check=True)
    modules, took_s, fields, copies, size = json.loads(done.stdout.splitlines()[-1])
    assert (fields, copies) == (len(FORM) + 1, [])
    assert size < 2 * form_cache.FILE.stat().st_size
    assert HEAVY & set(modules) == set()
    assert max(took_s, key=took_s.__getitem__) == "Airflow", "whose import takes ten times as long on any machine"


@pytest.mark.airflow
@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        pytest.param({"duration_s": -1}, "duration_s: must be greater than 0, not -1", id="a value out of range"),
        pytest.param({"cluster.brokers": 2}, "3 replicas do not fit on 2 brokers; allowed: 1 to 2", id="a rule"),
    ],
)
def test_a_bad_value_ends_in_start_alone_with_the_reason(
    airflow_server: Airflow, conf: dict[str, Any], reason: str
) -> None:
    runs = airflow_server.server.settings.runs
    before = set(runs.glob("kill-leader-*"))
    conf = conf | {"scenario": "kill-leader"}
    run_id = airflow_server.trigger("chaos_experiment", conf)
    assert airflow_server.end_of("chaos_experiment", run_id, timeout_s=120) == "failed"
    assert airflow_server.task_states("chaos_experiment", run_id) == {
        "start": "failed",
        "drive": "upstream_failed",
        "collect_and_stop": "upstream_failed",
        "judge": "skipped",
        "expectations": "skipped",
        "report": "skipped",
    }
    assert reason in airflow_server.log("chaos_experiment", run_id, "start")
    assert set(runs.glob("kill-leader-*")) == before
