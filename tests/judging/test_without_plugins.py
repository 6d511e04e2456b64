import json
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.systems.system import system_named
from harness.judging.assessment import remarks_without_plugins
from harness.judging.needs import answerable, answerable_in, require_evidence
from harness.run.emits import logged_by
from harness.run.run import Run
from harness.scenario.file import load_scenario, scenario_of, scenario_yaml
from harness.scenario.plan import make_plan
from harness.scenario.used_plugins import missing_plugins, plugins_of, write_plugins
from harness.store.folder import RunFolder
from harness.store.version import write_version
from harness.verdict import SystemVerdict


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """The folder of a run that was made here."""
    folder, scenario = RunFolder(tmp_path / "run"), load_scenario("smoke")
    folder.root.mkdir()
    plan = make_plan(scenario, 1)
    folder.plan.write_text(plan.to_json(), encoding="utf-8")
    write_version(folder, logged_by(system_named(scenario.logging_system)))
    folder.scenario.write_text(scenario_yaml(scenario), encoding="utf-8")
    write_plugins(folder, scenario, plan)
    return folder


def bring(folder: RunFolder, kind: str, name: str) -> None:
    """Let the run have used a plugin of others."""
    used = json.loads(folder.plugins.read_bytes())
    provider: dict[str, Any] = {"distribution": "acme-chaos", "version": "1.0", "folder": False}
    used["providers"].append({**provider, "plugins": {kind: [name]}})
    folder.plugins.write_text(json.dumps(used), encoding="utf-8")


def test_a_run_names_the_distribution_and_version_of_each_plugin(folder: RunFolder) -> None:
    (own,) = plugins_of(folder)
    assert (own.distribution, own.folder) == ("kafka-chaos-harness", False)
    assert own.version[0].isdigit()
    assert own.plugins.keys() == {"drivers", "systems", "faults", "workloads", "checks"}
    assert "I10" in own.plugins["checks"]
    assert not missing_plugins([own])
    assert not answerable_in(Run.load(folder)).without_plugin


def test_a_missing_check_is_not_judged_by_its_name_and_forbids_pass(folder: RunFolder) -> None:
    bring(folder, "checks", "ghost")
    table = answerable_in(Run.load(folder))
    (answer,) = table.without_plugin
    assert (answer.check, answer.verdict) == ("ghost", SystemVerdict.NOT_JUDGED)
    assert answer.lacks_plugin
    assert "the check ghost is not installed: acme-chaos 1.0 brings it" in answer.reason
    (remark,) = remarks_without_plugins([answer])
    assert remark.forbids_pass
    assert table.judged == [], "the others are judged"


@pytest.mark.parametrize("kind", ["faults", "systems"])
def test_without_a_fault_or_the_system_no_check_is_judged(folder: RunFolder, kind: str) -> None:
    bring(folder, kind, "ghost")
    answers = answerable_in(Run.load(folder)).without_plugin
    assert {answer.check for answer in answers} == set(plugins_of(folder)[0].plugins["checks"])
    assert {answer.verdict for answer in answers} == {SystemVerdict.NOT_JUDGED}
    assert len(remarks_without_plugins(answers)) == 1


def test_the_scenario_of_a_run_is_read_without_the_plugins_that_are_missing(folder: RunFolder) -> None:
    text = folder.scenario.read_text(encoding="utf-8")
    folder.scenario.write_text(text.replace("kind: kill", "kind: ghost"), encoding="utf-8")
    bring(folder, "faults", "ghost")
    assert "ghost" in [kind for kind, _ in scenario_of(folder).kinds]


def test_a_scenario_that_names_only_missing_checks_asks_none() -> None:
    scenario = load_scenario("smoke").model_copy(update={"checks": ["ghost"]})
    assert answerable(scenario).judged is None
    require_evidence(scenario)


def test_a_run_of_before_names_none(folder: RunFolder) -> None:
    folder.plugins.unlink()
    assert not plugins_of(folder)
    assert not answerable_in(Run.load(folder)).without_plugin
