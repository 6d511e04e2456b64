"""Gives each test the plugins of its kind, and what several tests share."""

import asyncio
import inspect
from pathlib import Path

import pytest

from harness import phases
from harness.contracts.registry import Kind
from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.scenario.source import set_option
from harness.store.folder import RunFolder
from kafka_chaos.conformance.chosen import chosen

NAMES = {
    "fault_name": Kind.FAULT,
    "check_name": Kind.CHECK,
    "workload_name": Kind.WORKLOAD,
    "system_name": Kind.SYSTEM,
    "driver_name": Kind.DRIVER,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each plugin of its kind."""
    for argument in NAMES.keys() & set(metafunc.fixturenames):
        names = chosen(metafunc.config, NAMES[argument])
        metafunc.parametrize(argument, names, scope="module" if argument == "driver_name" else None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of kinds of which no plugin is tested."""
    empty = [item for item in items if any("empty parameter set" in str(mark) for mark in item.iter_markers("skip"))]
    config.hook.pytest_deselected(items=empty)
    items[:] = [item for item in items if item not in empty]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; no other plugin is needed for it."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def intact_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The folder of a run without faults on a cluster that keeps its promises."""
    return carried_out("smoke", tmp_path_factory.mktemp("runs"), "faults=[]", "duration_s=5")


def carried_out(name: str, runs: Path, *options: str) -> RunFolder:
    """Return the folder of a simulated run of a scenario, up to the evidence; it is not judged."""
    scenario = load_scenario(name, [set_option(text) for text in ("driver=simulated", *options)])
    folder = phases.create_from(scenario, 1, runs)
    for phase in (phases.start, phases.drive, phases.collect):
        phase(folder, progress=Silent())
    return folder
