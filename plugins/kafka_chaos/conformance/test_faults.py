"""A fault says what it takes, happens, is confirmed from outside, and is healed."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness import phases
from harness.cluster.driver import CAPABILITIES
from harness.contracts import registry
from harness.contracts.faults import Fault
from harness.contracts.registry import Kind
from harness.contracts.targets import Role
from harness.errors import Refused
from harness.experiment.journal import fault_results, readable_journal
from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.scenario.plan import load_plan
from harness.scenario.source import set_option
from harness.store.history import InjectionStep
from harness.verdict import FaultVerdict

TARGETS = {
    Role.LEADER: "leader(orders,0)",
    Role.FOLLOWERS: "followers(orders,0)",
    Role.ONE: "one",
    Role.CONTROLLER: "controller",
    Role.ZOOKEEPER: "zookeeper",
    Role.ALL: "all",
    Role.IDS: "1",
}
"""The target that a fault gets unless the command line names one: the first of these that it accepts."""


def test_it_declares_what_it_takes_and_every_parameter_is_described(fault_name: str) -> None:
    fault = registry.fault(fault_name)
    assert set(fault.requires) <= set(CAPABILITIES)
    assert fault.accepts
    assert set(fault.accepts) <= set(Role)
    undescribed = [name for name, field in fault.Parameters.model_fields.items() if not field.description]
    assert not undescribed, f"forms and pages show a sentence for each parameter: {undescribed}"
    entry = next(each for each in registry.plugins(Kind.FAULT) if each.name == fault.name)
    assert ast.get_docstring(ast.parse(entry.path.read_text("utf-8"))), "lists show the first line of its docstring"


def test_it_happens_is_confirmed_and_is_healed(fault_name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    fault, driver = registry.fault(fault_name), pytestconfig.getoption("chaos_driver")
    if lacking := set(fault.requires) - registry.capabilities(driver):
        pytest.skip(f"the driver {driver} lacks {', '.join(sorted(lacking))}; name another one with --chaos-driver")
    spec = spec_of(fault, pytestconfig.getoption("chaos_fault"))
    options = [f"driver={driver}", f"faults=[{json.dumps(spec)}]", "duration_s=12"]
    scenario = load_scenario("smoke", [set_option(text) for text in options])
    try:
        folder = phases.create_from(scenario, 1, tmp_path)
    except Refused as error:
        pytest.skip(f"{error}; name another driver with --chaos-driver")
    try:
        for phase in (phases.start, phases.drive, phases.collect):
            phase(folder, progress=Silent())
    finally:
        assert phases.stop(folder, progress=Silent()).residue == []
    entries, unreadable = readable_journal(folder.journal)
    assert not unreadable
    (result,) = fault_results(load_plan(folder.plan), entries, unreadable)
    assert result.verdict is FaultVerdict.CONFIRMED, result.detail
    assert InjectionStep.HEALED in {entry.step for entry in entries}


def spec_of(fault: Fault, given: list[str]) -> dict[str, Any]:
    """Return the fault of the scenario: what the command line says of it, else what it accepts and its defaults."""
    target = next((text for role, text in TARGETS.items() if role in fault.accepts), "one")
    spec = {"kind": fault.name, "at_s": 2.0, "duration_s": max(3.0, fault.min_visible_s), "target": target}
    for text in given:
        name, _, values = text.partition("=")
        if name == fault.name:
            spec |= YAML(typ="safe", pure=True).load(values)
    return spec
