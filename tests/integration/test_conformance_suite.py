"""The suite that others run on their plugins, on those of this project: as its users run it, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.contracts.registry import Kind, capabilities, fault, names

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(2)]


def ran(folder: Path, *arguments: str) -> str:
    """Return what the suite says, which must be that everything passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kafka_chaos.pytest_plugin", "-p", "no:cacheprovider"]
    env = os.environ | {"CHAOS_ENGINE": "sail"}
    done = subprocess.run(
        [*command, "--pyargs", "kafka_chaos.conformance", *arguments],
        check=False, capture_output=True, text=True, cwd=folder, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


@pytest.mark.parametrize("kind", [Kind.CHECK, Kind.WORKLOAD, Kind.SYSTEM])
def test_every_plugin_of_a_kind_passes(kind: Kind, tmp_path: Path) -> None:
    chosen = [f"--chaos-plugins={kind.singular}:{name}" for name in names(kind)]
    assert " passed" in ran(tmp_path, *chosen)


def test_every_fault_is_injected_confirmed_and_healed_without_an_option(tmp_path: Path) -> None:
    said = ran(tmp_path, "-rs", *(f"--chaos-plugins=fault:{name}" for name in faults_in_virtual_time()))
    assert f"{2 * len(faults_in_virtual_time())} passed" in said
    assert "skipped" not in said


def faults_in_virtual_time() -> list[str]:
    """Return those that need no real cluster."""
    return [name for name in names(Kind.FAULT) if set(fault(name).requires) <= capabilities("simulated")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param((), "no other distribution with plugins is installed", id="nothing to test"),
        pytest.param(("--chaos-plugins=gone",), "gone brings no plugins; those that do:", id="no such distribution"),
        pytest.param(("--chaos-plugins=fault:kil",), "did you mean kill?", id="no such plugin"),
    ],
)
def test_what_cannot_be_tested_is_an_error(arguments: tuple[str, ...], text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as refused:
        ran(tmp_path, *arguments)
    assert text in str(refused.value)
