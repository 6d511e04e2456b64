"""A fault says what it takes, happens, is confirmed from outside, and is healed."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness import phases
from harness.cluster.driver import CAPABILITIES, RunExecutor
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.faults import Fault
from harness.contracts.registry import Kind
from harness.contracts.targets import Role
from harness.errors import Refused
from harness.progress import Silent
from harness.run.journal import fault_results, readable_journal
from harness.scenario.capabilities import missing
from harness.scenario.file import load_scenario
from harness.scenario.model import FaultSpec, MixKind
from harness.scenario.plan import load_plan
from harness.scenario.source import set_option
from harness.store.history import InjectionStep
from harness.values import PYTHON
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
"""The target of a fault that no scenario of its distribution shows: the first of these that it accepts."""
BEGINS_S = 2.0
AFTER_S = 6.0
"""Of the load, once the fault is over."""


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
    fault = registry.fault(fault_name)
    driver = pytestconfig.getoption("chaos_driver") or driver_for(fault)
    name, spec = shown(fault)
    spec |= given(fault.name, pytestconfig.getoption("chaos_fault"))
    duration_s = spec["at_s"] + spec["duration_s"] + AFTER_S
    options = [f"driver={driver}", f"faults=[{json.dumps(spec)}]", "mix=null", f"duration_s={duration_s:g}"]
    if reason := system_named(load_scenario(name).system).lacks():
        pytest.skip(reason)
    scenario = load_scenario(name, [set_option(text) for text in options])
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


def driver_for(fault: Fault) -> str:
    """Return the first driver that can do what a fault takes; in virtual time, if that is enough."""
    every = sorted(registry.starting(), key=lambda name: not issubclass(registry.driver_class(name), RunExecutor))
    lacking = {name: missing(name, fault.requires) for name in every}
    for name, reasons in lacking.items():
        if not reasons:
            return name
    pytest.skip("; ".join(f"{name}: {', '.join(sorted(reasons.values()))}" for name, reasons in lacking.items()))


def shown(fault: Fault) -> tuple[str, dict[str, Any]]:
    """Return a scenario, and the fault as it stands there: a scenario of its distribution that has it, or `smoke`."""
    own = registry.provider_of(Kind.FAULT, fault.name)
    scenarios = [load_scenario(each.name) for each in registry.plugins(Kind.SCENARIO) if each.provider == own]
    intact = [each for each in scenarios if not each.planted_bugs and not each.steps]
    for scenario in sorted(intact, key=lambda each: each.system != PYTHON):
        specs: list[FaultSpec | MixKind] = [*scenario.faults, *(scenario.mix.kinds if scenario.mix else [])]
        for spec in (each for each in specs if each.kind == fault.name):
            lasts_s = spec.duration_s if isinstance(spec, FaultSpec) else max(spec.duration_s)
            return scenario.name, as_fault(fault, str(spec.target), lasts_s) | {"parameters": spec.parameters}
    target = next((text for role, text in TARGETS.items() if role in fault.accepts), "one")
    return "smoke", as_fault(fault, target, 3.0)


def as_fault(fault: Fault, target: str, duration_s: float) -> dict[str, Any]:
    """Return a fault of a scenario."""
    lasts_s = max(duration_s, fault.min_visible_s)
    return {"kind": fault.name, "at_s": BEGINS_S, "duration_s": lasts_s, "target": target}


def given(fault_name: str, options: list[str]) -> dict[str, Any]:
    """Return what the command line says of a fault."""
    spec: dict[str, Any] = {}
    for text in options:
        name, _, values = text.partition("=")
        if name == fault_name:
            spec |= YAML(typ="safe", pure=True).load(values)
    return spec
