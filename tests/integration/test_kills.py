"""Any process of a run may be killed in any phase: no intact cluster is accused, and nothing is left behind.

The phases are called one by one, as Airflow calls them. The commit draws some kills, and the instant of each within its
phase; `tools/kills` draws more of them at night.
"""

import random
from pathlib import Path

import pytest

from harness.scenario.capabilities import missing
from harness.store.phase_log import Phase
from tests.sampling import DRAW
from tools.kills.kill import Kill, Victim
from tools.kills.one_by_one import carried_out_one_by_one, cells
from tools.kills.place import BRIEF, Place

MARKS = {"process": pytest.mark.cluster, "docker": pytest.mark.docker}
WITHIN_S = 0.8
"""From the beginning of a phase, or of the fault: no phase is shorter, on whatever machine."""


def kill_of(number: int, driver: str, victim: Victim, phase: Phase) -> Kill:
    """Return a kill in a phase, under load in that of the drive; the commit draws the instant."""
    after_s = random.Random(f"{DRAW} {driver} {victim} {phase}").random() * WITHIN_S
    fault = 0 if phase is Phase.DRIVE else None
    return Kill(number=number, driver=driver, scenario=BRIEF, victim=victim, phase=phase, fault=fault, after_s=after_s)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(kill_of(number, driver, *cell), marks=mark, id=f"{driver}: the {cell[0]} in {cell[1]}")
        for driver, mark in MARKS.items()
        for number, cell in enumerate(cells(driver))
    ],
)
def test_a_process_that_is_killed_accuses_no_cluster_and_leaves_nothing(
    kill: Kill, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kill.driver == "docker":
        request.getfixturevalue("docker_images")
    if reasons := missing(kill.driver, ()):
        pytest.skip("; ".join(reasons.values()))
    assert carried_out_one_by_one(kill, Place(tmp_path)).wrong == []


def test_every_process_of_a_run_is_killed_in_every_phase_in_which_it_lives() -> None:
    assert {victim for victim, _ in cells("docker")} - {victim for victim, _ in cells("process")} == {Victim.GUARD}
    assert {phase for victim, phase in cells("process") if victim is Victim.WORKER} == set(Phase)
