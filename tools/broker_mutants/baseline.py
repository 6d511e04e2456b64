"""What does the intact broker do in the battery? Its digests, and the lines that each schedule executes.

Both depend on the source alone, so they are measured once for each state of it and kept.
"""

import hashlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import process_time

from harness.simulation.own_process import ProcessDied, in_own_processes
from harness.simulation.schedule import simulate_plan
from harness.sweep.executor import schedule_of
from harness.sweep.sweep import Candidate
from harness.system.whole_file import replace_text
from harness.verdict import ExitCode
from tools.broker_mutants.battery import Intact, traced
from tools.broker_mutants.judging import Judging, leave

ROOT = Path(__file__).parents[2]
SOURCES = ("harness", "plugins/kafka_chaos", "tools/broker_mutants")
LOCK = "requirements.txt"


class IntactAccused(Exception):
    """The battery proves nothing of mutants: it accuses the broker that is not changed."""


def intact_schedules(
    candidates: Sequence[Candidate], judge: Judging, cache: Path, scratch: Path, at_once: int
) -> list[Intact]:
    """Return what the intact broker does in each schedule.

    Raises:
        IntactAccused: a check says FAIL of it, or a schedule has no history.
    """
    file = cache / f"{source_digest(candidates)}.jsonl"
    if not file.exists():
        measured = _measured(candidates, judge, scratch / "intact", at_once)
        cache.mkdir(parents=True, exist_ok=True)
        replace_text(file, "".join(f"{each.to_json()}\n" for each in measured))
    return [Intact.from_json(line) for line in file.read_text(encoding="utf-8").splitlines()]


def source_digest(candidates: Sequence[Candidate]) -> str:
    """Return a hash over all that decides what the intact broker does: sources, libraries and schedules."""
    whole = hashlib.sha256(sys.version.encode())
    whole.update((ROOT / LOCK).read_bytes())
    for candidate in candidates:
        whole.update(candidate.scenario.model_dump_json().encode() + candidate.plan.to_json().encode())
    for path in _sources():
        whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def _sources() -> Iterator[Path]:
    for name in SOURCES:
        yield from (path for path in sorted((ROOT / name).rglob("*.py")) if "__pycache__" not in path.parts)


def _measured(candidates: Sequence[Candidate], judge: Judging, folder: Path, at_once: int) -> list[Intact]:
    folder.mkdir(parents=True)
    measured: dict[int, Intact] = {}
    works = [partial(_intact, candidate, number, folder) for number, candidate in enumerate(candidates)]
    for number, made in in_own_processes(works, at_once=at_once):
        if isinstance(made, ProcessDied):
            raise IntactAccused(f"{candidates[number].scenario.name}: {made}")
        measured[number] = made
    judge.ask(folder, candidates)
    answers = judge.answers()
    shutil.rmtree(folder)
    for number, candidate in enumerate(candidates):
        code, findings = answers.get(number, (ExitCode.INCONCLUSIVE, {}))
        if code is ExitCode.VIOLATED:
            raise IntactAccused(f"{candidate.scenario.name}, seed {candidate.plan.seed}: {findings}")
        measured[number].holds = code is ExitCode.HELD
    return [measured[number] for number in sorted(measured)]


def _intact(candidate: Candidate, number: int, folder: Path) -> Intact:
    """Return what the intact broker does in a schedule, and leave the history in the folder."""
    scenario, plan = candidate.scenario, candidate.plan
    began_s = process_time()
    history = simulate_plan(scenario, plan)
    cpu_s = process_time() - began_s
    again, executed = traced(candidate)
    if again.digest() != history.digest():
        raise IntactAccused(f"{scenario.name}, seed {plan.seed}: two simulations differ")
    left = schedule_of(history, number, f"intact-{number:06}", scenario, plan)
    leave(left, folder)
    return Intact(digest=history.digest(), cpu_s=cpu_s, executed=executed)
