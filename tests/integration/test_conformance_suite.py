"""The suite that others run on their plugins, on those of this project: as its users run it, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.contracts.registry import Kind, names

pytestmark = [pytest.mark.cluster, pytest.mark.by_turns(2)]
CONFIRMED_BY_DEFAULTS = ("kill", "pause", "isolate", "delay", "expire-session", "bounce")
"""Of the faults those that need no parameters and no special cluster, one for each kind of effect."""


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


def test_faults_are_injected_confirmed_and_healed(tmp_path: Path) -> None:
    said = ran(tmp_path, *(f"--chaos-plugins=fault:{name}" for name in CONFIRMED_BY_DEFAULTS))
    assert f"{2 * len(CONFIRMED_BY_DEFAULTS)} passed" in said


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
