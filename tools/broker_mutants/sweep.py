"""Puts mutants to the battery. A mutant costs seconds: it is put in force in a process forked from one that has
imported everything, only schedules that execute it are simulated, and only histories that differ are judged.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import process_time

from harness.simulation.own_process import MAX_MEMORY_BYTES, ProcessDied, in_own_processes, limited
from harness.simulation.schedule import simulate_plan
from harness.sweep.executor import schedule_of
from harness.sweep.sweep import Candidate
from tools.broker_mutants.battery import Intact
from tools.broker_mutants.in_force import put_in_force
from tools.broker_mutants.judging import Judging, leave
from tools.broker_mutants.trial import Simulated, Trial

ROUNDS = (4, 10)
"""A mutant that is found in the first so many schedules is not put to more; the last round has all others."""
BATCH = 24
"""Mutants whose histories are judged together."""
SLOWER = 6
"""A mutant takes so many times the processor time of the intact broker, or its schedule is ended."""
LEAST_CPU_S = 30.0
MOST_ERRORS = 2
"""A mutant that leaves so many schedules without a history is not put to more."""


@dataclass(slots=True, kw_only=True)
class MutantSweep:
    """One sweep of mutants."""

    candidates: Sequence[Candidate]
    intact: Sequence[Intact]
    scratch: Path
    at_once: int
    progress: Callable[[Trial], None]
    """Is told of each mutant that is through."""
    enough: int | None = None
    """A mutant with so many schedules that differ is not put to more; None for no limit."""

    def run(self, trials: Sequence[Trial], judge: Judging) -> None:
        """Put every mutant to the battery until it is found; the judge works while the next ones are simulated."""
        waiting = deque((trial, 0) for trial in trials)
        folders = (self.scratch / f"{number:05}" for number in count())
        judged: list[tuple[Trial, int]] = []
        folder = self.scratch
        while waiting or judged:
            batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
            before, folder = folder, next(folders) if batch else folder
            self._simulate(batch, folder)
            if judged:
                waiting.extend(self._settle(judged, judge, before))
            if batch:
                judge.ask(folder, [*self.candidates] * len(batch))
            judged = batch

    @property
    def _rounds(self) -> list[int]:
        """Where each round ends."""
        whole = len(self.candidates)
        return [*(each for each in ROUNDS if each < whole), whole]

    def _has_enough(self, trial: Trial) -> bool:
        return trial.errors >= MOST_ERRORS or (self.enough is not None and len(trial.differing) >= self.enough)

    def _simulate(self, batch: Sequence[tuple[Trial, int]], folder: Path) -> None:
        """Simulate the schedules of this round for each mutant of a batch."""
        folder.mkdir(exist_ok=True)
        begun: list[tuple[Trial, int]] = []
        for index, result in in_own_processes(self._works(batch, folder, begun), at_once=self.at_once):
            trial, place = begun[index]
            if isinstance(result, ProcessDied):
                result = Simulated(differs=True, cpu_s=0, error=str(result))
            trial.simulated[place] = result

    def _works(
        self, batch: Sequence[tuple[Trial, int]], folder: Path, begun: list[tuple[Trial, int]]
    ) -> Iterator[Callable[[], Simulated]]:
        """Yield the schedules of this round, and note each when it is begun."""
        for slot, (trial, part) in enumerate(batch):
            first, last = (0, *self._rounds)[part : part + 2]
            for place in (place for place in trial.executed if first <= place < last):
                if not self._has_enough(trial):
                    begun.append((trial, place))
                    number = slot * len(self.candidates) + place
                    yield partial(simulated, trial, self.candidates[place], self.intact[place], number, folder)

    def _settle(self, batch: Sequence[tuple[Trial, int]], judge: Judging, folder: Path) -> Iterator[tuple[Trial, int]]:
        """Take the answers on a batch, and yield the mutants that go into their next round."""
        answers = judge.answers()
        for slot, (trial, part) in enumerate(batch):
            for place in range(len(self.candidates)):
                answer = answers.get(slot * len(self.candidates) + place)
                if answer is not None:
                    trial.verdicts[place] = answer
            is_last = part + 1 == len(self._rounds)
            if trial.violated is not None or is_last or self._has_enough(trial):
                self.progress(trial)
            else:
                yield trial, part + 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.with_suffix(".judged"), ignore_errors=True)


def simulated(trial: Trial, candidate: Candidate, intact: Intact, number: int, folder: Path) -> Simulated:
    """Return what becomes of a schedule under a mutant, and leave its history in the folder where it differs.

    It changes the code of this process, which has to be one that is made for it.
    """
    put_in_force(trial.changed)
    scenario, plan = candidate.scenario, candidate.plan
    began_s = process_time()
    try:
        with limited(max(LEAST_CPU_S, SLOWER * intact.cpu_s), MAX_MEMORY_BYTES):
            history = simulate_plan(scenario, plan)
        if history.digest() == intact.digest:
            return Simulated(differs=False, cpu_s=process_time() - began_s)
        run_id = f"{scenario.name}-{number:06}-{plan.seed:016x}"
        left = schedule_of(history, number, run_id, scenario, plan)
    except Exception as error:  # noqa: BLE001  a mutant may raise anything
        what = f"{type(error).__name__}: {error}"
        return Simulated(differs=True, cpu_s=process_time() - began_s, error=what)
    leave(left, folder)
    return Simulated(differs=True, cpu_s=process_time() - began_s)
