"""What a kill comes to in a run whose phases a scheduler calls one by one, each in its own process, as Airflow does.

The scheduler goes on whatever is killed: it calls collect and stop again when their worker was killed, and every other
phase once. When start fails, nothing but stop follows; when its worker is killed, nothing does.
"""

import random
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import phases
from harness.scenario.file import load_scenario
from harness.scenario.source import Override
from harness.store.folder import RunFolder
from harness.store.phase_log import GATHERING, Phase, ends, entries
from harness.store.result import RunResult
from harness.verdict import EnvironmentVerdict, SystemVerdict
from tools.kills.kill import LONGEST_S, Kill, Outcome, Victim, comes, killed, left_after_reaping, wait_for_the_end
from tools.kills.left import Namespaces, left_of, namespaces_of
from tools.kills.place import SEED, Place

TEARDOWN = (Phase.COLLECT, Phase.STOP)
"""One task of Airflow's, which is tried again when its worker was killed."""
WHILE_IT_LIVES = (Phase.START, Phase.DRIVE, *TEARDOWN)
"""Phases in which there is a cluster."""
VICTIMS = {
    Victim.WORKER: tuple(Phase),
    Victim.SUPERVISOR: WHILE_IT_LIVES,
    Victim.CLIENT: (Phase.DRIVE,),
    Victim.GUARD: WHILE_IT_LIVES,
}
"""The killed processes, and the phases in which there is one."""


def cells(driver: str) -> list[tuple[Victim, Phase]]:
    """Return every process of a run with every phase in which there is one."""
    return [
        (victim, phase)
        for victim, alive_in in VICTIMS.items()
        for phase in alive_in
        if victim is not Victim.GUARD or driver == "docker"
    ]


def drawn_one_by_one(
    kills: int, drivers: Sequence[str], seed: int, scenario: Path, durations: Mapping[str, Mapping[Phase, float]]
) -> Iterator[Kill]:
    """Yield kills of every process in every phase, in turn and in an order drawn, at any instant of the phase."""
    rng = random.Random(seed)
    every = [(driver, *cell) for driver in drivers for cell in cells(driver)]
    rng.shuffle(every)
    for number in range(kills):
        driver, victim, phase = every[number % len(every)]
        after_s = rng.random() * durations[driver][phase]
        yield Kill(number=number, driver=driver, scenario=scenario, victim=victim, phase=phase, after_s=after_s)


def carried_out_one_by_one(kill: Kill, place: Place) -> Outcome:
    """Carry out a run phase by phase, kill once, and say what is wrong then."""
    outcome = Outcome(kill=kill)
    run, namespaces = create(kill.scenario, kill.driver, place), Namespaces()
    workers: dict[Phase, subprocess.Popen[bytes]] = {}
    coming = list(Phase)
    while coming:
        phase = coming.pop(0)
        worker = place.start_phase(phase, run)
        if phase is kill.phase and phase not in workers:
            hit = comes(kill, worker, place)
            namespaces = namespaces_of(place)
            outcome.ended_before = not (hit and killed(victims(kill, worker, place)))
        workers[phase] = worker
        was_killed = worker.wait(timeout=LONGEST_S) == -signal.SIGKILL
        if phase is Phase.START and worker.returncode:
            coming = [] if was_killed else [Phase.STOP]
        elif phase in TEARDOWN and was_killed:
            coming = [*TEARDOWN, *(each for each in coming if each not in TEARDOWN)]
    wait_for_the_end(place)
    if Phase.STOP in workers and kill.phase in WHILE_IT_LIVES:  # else a reaper removes what a killed phase left
        outcome.wrong += left_of(place, namespaces)
    outcome.wrong += left_after_reaping(place, namespaces)
    outcome.wrong += _wrong_verdict(run)
    return outcome


def create(scenario: Path, driver: str, place: Place) -> RunFolder:
    """Make the run folder."""
    named = Override(option="--driver", key="driver", text=driver)
    return phases.create_from(load_scenario(str(scenario), [named]), SEED, place.runs)


def victims(kill: Kill, worker: "subprocess.Popen[bytes]", place: Place) -> list[int]:
    """Return the pids of the processes to be killed; none when they are gone."""
    if kill.victim is Victim.WORKER:
        return [worker.pid] if worker.poll() is None else []
    if kill.victim is Victim.CLIENT:
        pids = [pid for name in place.client_names() for pid in place.pids_of(name)]
        return pids[kill.number % len(pids) :][:1] if pids else []
    return place.pids_of(kill.victim)


def _wrong_verdict(run: RunFolder) -> Iterator[str]:
    """Yield a sentence for each thing that the verdict should not say: no bug was planted."""
    if not run.verdict.exists():
        yield "the run has no verdict"
        return
    result = RunResult.load(run.verdict)
    if result.verdicts.system is SystemVerdict.FAIL:
        yield "an intact cluster is accused"
    if result.verdicts.environment is not EnvironmentVerdict.CLEAN:
        yield f"something was left: {'; '.join(result.residue)}"
    incomplete = [entry.phase for entry in entries(run) if entry.phase in GATHERING and entry.error != ""]
    if result.verdicts.system is SystemVerdict.PASS and incomplete:
        yield f"it passed although {', '.join(incomplete)} did not come to a good end"
    cut_off = {phase: end.duration_s for phase, end in ends(run).items() if not end.over}
    yield from (f"{phase} was cut off and lasted no time" for phase, lasted_s in cut_off.items() if not lasted_s)


def whole_run_one_by_one(scenario: Path, driver: str, place: Place) -> RunFolder:
    """Carry out a run, phase by phase, without kills; raises SystemExit if a phase fails."""
    run = create(scenario, driver, place)
    for phase in Phase:
        if status := place.start_phase(phase, run).wait(timeout=LONGEST_S):
            raise SystemExit(f"{phase} of a run without kills ended with {status}: {place.log}")
    return run
