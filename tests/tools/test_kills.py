"""The kills that are drawn, and what is seen of a run that is left."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.disks import small_disks
from harness.cluster.disks.small_disks import IN_A_NAMESPACE, mounting
from harness.cluster.limits import control_groups
from harness.cluster.limits.control_groups import group_of
from harness.cluster.limits.resources import Resource
from harness.scenario.file import load_scenario
from harness.store.phase_log import Phase
from harness.system.pids import identify, write_pid_file
from tools.kills.kill import VICTIMS, Victim, drawn, drawn_under_faults
from tools.kills.left import Namespaces, left_of, namespaces_of
from tools.kills.place import BRIEF, Place

WINDOWS_S = {0: 3.0, 1: 20.0, 2: 5.0}
DURATIONS = {"process": dict.fromkeys(Phase, 2.0)}
SCENARIOS = {
    "process": {"intercept", "isolate", "disk-full", "slow-sync", "cpu-limit", "disk-error", "clock"},
    "docker": {"intercept", "isolate", "drop-packets", "disk-full", "cpu-limit"},
}
needs_mounts = pytest.mark.skipif(bool(small_disks.lacking()), reason=small_disks.lacking())
needs_groups = pytest.mark.skipif(
    bool(control_groups.lacking(Resource.CPU)), reason=control_groups.lacking(Resource.CPU)
)


@pytest.mark.parametrize("driver", VICTIMS)
def test_every_victim_and_every_fault_has_its_turn_within_the_time_of_the_fault(driver: str) -> None:
    number = len(VICTIMS[driver]) * len(WINDOWS_S)
    kills = list(drawn_under_faults(number, driver, 7, BRIEF, WINDOWS_S))
    assert {kill.victim for kill in kills} == set(VICTIMS[driver])
    assert sorted(kill.fault or 0 for kill in kills) == sorted([*WINDOWS_S] * len(VICTIMS[driver]))
    assert all(0 <= kill.after_s < WINDOWS_S[kill.fault or 0] for kill in kills)
    assert kills == list(drawn_under_faults(number, driver, 7, BRIEF, WINDOWS_S))
    assert kills != list(drawn_under_faults(number, driver, 8, BRIEF, WINDOWS_S))


def test_every_phase_has_its_turn_where_no_fault_matters() -> None:
    kills = list(drawn(2 * len(Phase), ["process"], 7, BRIEF, DURATIONS))
    assert [kill.phase for kill in kills] == [*Phase, *Phase]
    assert {kill.victim for kill in kills} == {Victim.HARNESS, Victim.ALL}


def test_a_guard_is_killed_where_there_is_one() -> None:
    assert [driver for driver, victims in VICTIMS.items() if Victim.GUARD in victims] == ["docker"]


@pytest.mark.parametrize(("driver", "kinds"), SCENARIOS.items())
def test_a_scenario_has_the_faults_that_could_leave_most(driver: str, kinds: set[str]) -> None:
    scenario = load_scenario(str(BRIEF.with_name(f"{driver}.yaml")))
    assert (scenario.driver, {fault.kind for fault in scenario.faults}) == (driver, kinds)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place with the run folder of a cluster."""
    place = Place(tmp_path)
    place.temporary.mkdir()
    (place.runs / "brief-1" / "cluster" / "relay").mkdir(parents=True)
    return place


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    """What is undone at the end of the test, the last first."""
    with ExitStack() as stack:
        yield stack


def _process(place: Place, ending: ExitStack, *behind: str, name: str = "") -> "subprocess.Popen[bytes]":
    argv = [*behind, sys.executable, "-c", "print('ready', flush=True); input()", name]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ending.callback(process.communicate, timeout=120)
    ending.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _run_root(place: Place) -> Path:
    run = place.run()
    assert run is not None
    return run.root


def a_process(place: Place, ending: ExitStack) -> str:
    process = _process(place, ending, name=f"{place.root}/slow-syncs-1.trace")
    return f"process {process.pid} is left: "


def a_temporary_file(place: Place, ending: ExitStack) -> str:
    path = place.temporary / "scratch"
    path.touch()
    ending.callback(path.unlink)
    return "scratch is left in the folder for temporary files"


def a_socket(place: Place, ending: ExitStack) -> str:
    path = _run_root(place) / "cluster" / "relay" / "probes.sock"
    path.touch()
    ending.callback(path.unlink)
    return "the socket cluster/relay/probes.sock is left"


def a_mount(place: Place, ending: ExitStack) -> str:
    folder = _run_root(place) / "cluster" / "log"
    folder.mkdir()
    subprocess.run(mounting(folder), check=True)
    ending.callback(subprocess.run, ["umount", str(folder)], check=True)
    return "a mount is left, as process "


def a_control_group(place: Place, ending: ExitStack) -> str:
    group = group_of(_run_root(place), "broker-1", Resource.CPU)
    group.limit(0.5)
    ending.callback(group.remove)
    return f"the control group {group.folder} is left"


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(a_process, id="a process whose arguments name the run, as strace's and a ballast's do"),
        pytest.param(a_temporary_file, id="a temporary file"),
        pytest.param(a_socket, id="a socket of the relay"),
        pytest.param(a_mount, marks=needs_mounts, id="a mount"),
        pytest.param(a_control_group, marks=needs_groups, id="a control group"),
    ],
)
def test_what_is_left_is_seen(place: Place, ending: ExitStack, leave: Callable[[Place, ExitStack], str]) -> None:
    assert list(left_of(place, Namespaces())) == []
    expected = leave(place, ending)
    texts = list(left_of(place, Namespaces()))
    assert texts
    assert all(text.startswith(expected) for text in texts)
    ending.close()
    assert list(left_of(place, Namespaces())) == []


@needs_mounts
def test_who_names_no_run_is_known_by_a_namespace_of_it(place: Place, ending: ExitStack) -> None:
    first = _process(place, ending, *IN_A_NAMESPACE, name=str(place.root))
    beside = _process(place, ending, "nsenter", f"--mount=/proc/{first.pid}/ns/mnt")
    namespaces = namespaces_of(place)
    first.kill()
    first.communicate(timeout=120)
    assert list(left_of(place, Namespaces())) == []
    assert list(left_of(place, replace(namespaces, seen_s=0.0))) == [], "a later one reuses that number"
    assert list(left_of(place, namespaces)) == [f"process {beside.pid} is left in {', '.join(namespaces.names)}"]


def test_a_victim_is_known_by_its_pid_file(place: Place) -> None:
    assert place.pids_of("supervisor") == []
    identity = identify(os.getpid())
    assert identity is not None
    folder = _run_root(place) / "cluster" / "pids"
    folder.mkdir()
    write_pid_file(folder / "supervisor.pid", identity)
    assert place.pids_of("supervisor") == [os.getpid()]
