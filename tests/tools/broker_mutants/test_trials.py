"""A mutant is in force everywhere, costs no more than it has to, and its outcome is what its histories say."""

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from harness.scenario.file import read_scenario
from harness.scenario.plan import make_plan
from harness.simulation.own_process import in_own_process
from harness.simulation.schedule import simulate_plan
from harness.sweep.sweep import Candidate
from harness.verdict import ExitCode
from tools.broker_mutants import sweep
from tools.broker_mutants.battery import Intact, import_all, traced
from tools.broker_mutants.in_force import Unfit, changed_functions, live_functions, put_in_force
from tools.broker_mutants.judging import Answers
from tools.broker_mutants.mutants import BROKER, Mutant, mutants_of
from tools.broker_mutants.results import row_of
from tools.broker_mutants.trial import NO_HISTORY, Outcome, Simulated, Trial

SCENARIO = """
name: small
description: One partition under one fault.
cluster: {properties: {offsets.topic.num.partitions: 1}}
topics: [{name: orders, partitions: 1, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, rate_per_s: 8, final_read_timeout_s: 10}}]
faults: [{kind: kill, at_s: 1, duration_s: 1, target: "leader(orders,0)"}]
duration_s: 3
"""
MILD = "counts and progress.log_end_offset < smallest => progress.log_end_offset < smallest"
DEADLY = "max-for-min: max(current, smallest) => min(current, smallest)"
REPLICATION = "replicas/replication.py"
NOT_EXECUTED = "controller/topic_deletion.py", "TopicDeletion._complete await-out"
DIGEST_OF_MUTATED_SOURCE = """
import importlib.abc, importlib.util, sys
from tools.broker_mutants.mutants import BROKER, mutants_of, mutated
path = BROKER / {module!r}
source = path.read_text()
(mutant,) = [each for each in mutants_of({module!r}, source) if each.key == {key!r}]
code = mutated(mutant, source, str(path))
assert {name!r} not in sys.modules
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, origin=str(BROKER)) if name == {name!r} else None
    def exec_module(self, module):
        exec(code, module.__dict__)
sys.meta_path.insert(0, Finder())
from tests.tools.broker_mutants.test_trials import CANDIDATE
from harness.simulation.schedule import simulate_plan
print(simulate_plan(CANDIDATE.scenario, CANDIDATE.plan).digest())
"""


HELD: tuple[ExitCode, dict[str, str]] = (ExitCode.HELD, {})
UNKNOWN: tuple[ExitCode, dict[str, str]] = (ExitCode.INCONCLUSIVE, {"i4 unknown": "It cannot tell."})
VIOLATED: tuple[ExitCode, dict[str, str]] = (ExitCode.VIOLATED, {"i1": "Lost.", "i4 unknown": "It cannot tell."})


def candidate() -> Candidate:
    scenario = read_scenario(SCENARIO, "a test")
    return Candidate(scenario=scenario, plan=make_plan(scenario, 5))


CANDIDATE = candidate()


@pytest.fixture(scope="module")
def intact() -> Intact:
    import_all()
    history, executed = in_own_process(partial(traced_digest))
    return Intact(digest=history, cpu_s=0.1, executed=executed, holds=True)


def traced_digest() -> tuple[str, frozenset[tuple[str, int]]]:
    history, executed = traced(CANDIDATE)
    return history.digest(), executed


def digest() -> str:
    return simulate_plan(CANDIDATE.scenario, CANDIDATE.plan).digest()


def mutant(module: str, text: str) -> Mutant:
    mutants = mutants_of(module, (BROKER / module).read_text(encoding="utf-8"))
    return next(each for each in mutants if text in each.key)


def trial(of: Mutant, executed: list[int]) -> Trial:
    return Trial(mutant=of, changed=changed_functions(of, live_functions()), executed=executed)


class Answering:
    """A judge that finds the same in every history that is left for it."""

    def __init__(self, answer: tuple[ExitCode, dict[str, str]]) -> None:
        self.answer = answer
        self.folders: list[list[int]] = []

    def ask(self, folder: Path, candidates: Sequence[Candidate]) -> None:
        self.folders.append(sorted(int(path.stem) for path in folder.glob("*.parquet")))

    def answers(self) -> Answers:
        return dict.fromkeys(self.folders[-1], self.answer)


def put_to(
    trials: list[Trial], judge: Answering, intact: Intact, folder: Path, *, enough: int | None = None, at_once: int = 2
) -> list[Trial]:
    """Return the trials in the order in which they are through a battery of seven times the same schedule."""
    through: list[Trial] = []
    mutant_sweep = sweep.MutantSweep(
        candidates=[CANDIDATE] * 7,
        intact=[intact] * 7,
        scratch=folder,
        at_once=at_once,
        progress=through.append,
        enough=enough,
    )
    mutant_sweep.run(trials, judge)
    assert list(folder.iterdir()) == []
    return through


def test_tracing_changes_no_history(intact: Intact) -> None:
    assert in_own_process(digest) == intact.digest


def test_a_schedule_runs_only_mutants_of_lines_that_it_executes(intact: Intact) -> None:
    assert intact.runs(mutant(REPLICATION, MILD))
    assert not intact.runs(mutant(*NOT_EXECUTED))


def test_only_histories_that_a_mutant_changes_are_judged_and_only_until_it_is_found(
    intact: Intact, tmp_path: Path
) -> None:
    changing, idle = trial(mutant(REPLICATION, MILD), [3, 4]), trial(mutant(*NOT_EXECUTED), [0])
    judge = Answering(VIOLATED)
    put_to([idle, changing], judge, intact, tmp_path)
    assert [each for each in judge.folders if each] == [[7 + 3]]
    assert (changing.outcome(), sorted(changing.simulated), changing.violated) == (Outcome.FOUND, [3], 3)
    assert (idle.outcome(), sorted(idle.simulated)) == (Outcome.UNREACHED, [0])
    assert in_own_process(digest) == intact.digest, "nothing of a mutant is left in this process"


@pytest.mark.whole
@pytest.mark.rotating(2)
def test_a_mutant_that_is_not_found_is_put_to_the_whole_battery(intact: Intact, tmp_path: Path) -> None:
    changing = trial(mutant(REPLICATION, MILD), [5, 6])
    assert put_to([changing], Answering(HELD), intact, tmp_path) == [changing]
    assert (changing.outcome(), changing.differing) == (Outcome.UNSEEN, [5, 6])


@pytest.mark.whole
@pytest.mark.rotating(2)
def test_a_mutant_with_enough_schedules_that_differ_is_not_put_to_more(intact: Intact, tmp_path: Path) -> None:
    changing, judge = trial(mutant(REPLICATION, MILD), [0, 1, 2, 6]), Answering(HELD)
    put_to([changing], judge, intact, tmp_path, enough=2, at_once=1)
    assert (changing.outcome(), sorted(changing.simulated)) == (Outcome.UNSEEN, [0, 1])
    assert [each for each in judge.folders if each] == [[0, 1]]


@pytest.mark.whole
@pytest.mark.rotating(2)
def test_a_changed_function_is_the_changed_source_wherever_it_is_referred_to(intact: Intact) -> None:
    """Other modules have imported it by name before it was changed."""
    of = mutant(REPLICATION, MILD)
    source = DIGEST_OF_MUTATED_SOURCE.format(module=of.module, key=of.key, name="harness.broker.replicas.replication")
    command = subprocess.run([sys.executable, "-c", source], cwd=BROKER.parents[1], capture_output=True, text=True)
    assert command.returncode == 0, command.stderr
    changed = changed_functions(of, live_functions())
    assert in_own_process(partial(_digest_with, changed)) == command.stdout.strip() != intact.digest


def _digest_with(changed: list[tuple[FunctionType, CodeType]]) -> str:
    put_in_force(changed)
    return digest()


@pytest.mark.whole
@pytest.mark.rotating(2)
def test_a_mutant_that_leaves_no_history_is_in_doubt_and_says_why(
    intact: Intact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "LEAST_CPU_S", 1.0)
    hanging = trial(mutant("log/batch.py", "position += size => pass"), [0])
    put_to([hanging], Answering(HELD), intact, tmp_path)
    assert (hanging.outcome(), hanging.by()) == (Outcome.IN_DOUBT, [NO_HISTORY])
    assert "more CPU time than it may" in hanging.says()


@pytest.mark.whole
@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("module", "text"),
    [
        pytest.param(REPLICATION, DEADLY, id="it serves nothing"),
        pytest.param("log/segment_index.py", "SegmentIndex.__init__ early-return", id="it raises errors"),
    ],
)
def test_a_mutant_that_never_serves_leaves_a_history_of_its_start(
    module: str, text: str, intact: Intact, tmp_path: Path
) -> None:
    deadly, judge = trial(mutant(module, text), [0]), Answering(VIOLATED)
    put_to([deadly], judge, intact, tmp_path)
    assert [each for each in judge.folders if each] == [[0]]
    assert (deadly.outcome(), deadly.errors) == (Outcome.FOUND, 0)


def test_a_function_that_nothing_has_imported_is_no_mutant() -> None:
    (of, *_) = mutants_of("log/log.py", "def nowhere(a, b):\n    return min(a, b)\n")
    with pytest.raises((Unfit, KeyError)):
        changed_functions(of, live_functions())


@pytest.mark.parametrize(
    ("verdicts", "errors", "outcome", "by", "says"),
    [
        pytest.param({}, {}, Outcome.UNREACHED, [], "", id="no history differs"),
        pytest.param({1: HELD, 2: HELD}, {}, Outcome.UNSEEN, [], "", id="all that differ held"),
        pytest.param({1: HELD, 2: UNKNOWN}, {}, Outcome.IN_DOUBT, ["i4 unknown"], "It cannot tell.", id="unknown"),
        pytest.param({1: HELD}, {2: "Stuck"}, Outcome.IN_DOUBT, ["no history"], "Stuck", id="no history"),
        pytest.param({2: VIOLATED, 1: UNKNOWN}, {0: "Stuck"}, Outcome.FOUND, ["i1"], "Lost.", id="a check fails"),
    ],
)
def test_the_outcome_of_a_mutant(
    verdicts: dict[int, tuple[ExitCode, dict[str, str]]],
    errors: dict[int, str],
    outcome: Outcome,
    by: list[str],
    says: str,
) -> None:
    of = Trial(mutant=mutant(REPLICATION, MILD), changed=[], executed=[0, 1, 2, 3])
    of.simulated[3] = Simulated(differs=False, cpu_s=1)
    of.simulated |= {place: Simulated(differs=True, cpu_s=1) for place in verdicts}
    of.simulated |= {place: Simulated(differs=True, cpu_s=1, error=error) for place, error in errors.items()}
    of.verdicts |= verdicts
    assert (of.outcome(), of.by(), of.says()) == (outcome, by, says)
    row = row_of(of)
    assert (row.outcome, row.simulated, row.differ) == (outcome, len(of.simulated), len(of.differing))
    assert row.schedules == (3 if outcome is Outcome.FOUND else 0), "counted from 1"
