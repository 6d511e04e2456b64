"""Damaged evidence accuses no broker and lets nothing pass: an intact run, and some in which something is wrong.

CHAOS_DAMAGES=2000 tries as many damages; `pytest --log-cli-level=INFO` says how far they are.
"""

import logging
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness import phases
from harness.analysis import judge_many
from harness.analysis.judge import Judgement
from harness.broker.background import sliced
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.errors import HarnessError
from harness.judging.assessment import within_holes
from harness.judging.needs import evidence_of
from harness.progress import Silent
from harness.run.run import Run
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.store.folder import RunFolder
from harness.sweep.recorded import History
from harness.verdict import SystemVerdict
from tests.experiment.damage import DAMAGES, REMOVED, REPLACED, damaged, files_of
from tests.sampling import DRAW, sampled
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.verdicts import FAIL, PASS

logger = logging.getLogger(__name__)

JUDGED = int(os.environ.get("CHAOS_DAMAGES", "5"))
"""Damaged runs that are judged; of all of them it is asked whether the damage is noticed."""
SAMPLE = 100
A_BATCH = 100
"""Damaged runs that one set of jobs judges."""
HISTORIES = Path(__file__).parents[1] / "histories"
FAILING = ("acks-all-on-append", "no-truncation-by-leader-epoch")
"""Scenarios with a planted bug: one that clients see, and one that replicas show; the commit draws one."""
SEED = 323614864888300530
"""Of a schedule in which both are found with little load: the fewer lines, the more of them a finding needs."""
LITTLE = {"rate_per_s": 4, "batch_records": 1}


@dataclass(frozen=True)
class Runs:
    intact: RunFolder
    failing: list[RunFolder]
    other: RunFolder
    """Another run of the intact scenario, by another seed."""

    @property
    def all(self) -> list[RunFolder]:
        return [self.intact, *self.failing]


def gathered(declaration: Scenario, plan: Plan, root: Path) -> RunFolder:
    """Return a run whose cluster has ended."""
    folder = phases.create(declaration, plan, root)
    for phase in (phases.start, phases.drive, phases.collect, phases.stop):
        phase(folder, progress=Silent())
    return folder


def with_little_load(name: str) -> Scenario:
    recorded = History(HISTORIES / name).candidate().scenario
    (load,) = recorded.workloads
    return recorded.model_copy(
        update={"workloads": [load.model_copy(update={"parameters": {**load.parameters, **LITTLE}})]}
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("runs")
    declaration = scenario(KILL_LEADER, driver="simulated")
    return Runs(
        intact=gathered(declaration, make_plan(declaration, 5), root),
        failing=[gathered(each, make_plan(each, SEED), root) for each in map(with_little_load, sampled(FAILING, 1))],
        other=gathered(declaration, make_plan(declaration, 6), root),
    )


@dataclass(frozen=True)
class Case:
    run: RunFolder
    place: Path
    damage: str


def cases(runs: Runs) -> list[Case]:
    """Return every kind of damage to every file, in the order that the commit draws."""
    names = (*DAMAGES, REMOVED, REPLACED)
    every = [Case(run, place, name) for run in runs.all for place in files_of(run) for name in names]
    random.Random(DRAW).shuffle(every)
    return every


def settings(run: RunFolder) -> Settings:
    return Run.load(run).settings


def copy_of(run: RunFolder, root: Path, number: int) -> RunFolder:
    return RunFolder(Path(shutil.copytree(run.root, root / f"{run.run_id}-{number:05}")))


def unreadable(folder: RunFolder, case: Case) -> bool:
    """Return whether the run is unknown, so that it is refused; in all others the damage is noticed."""
    try:
        holes = Run.load(folder).holes
    except HarnessError:
        return True
    assert holes, case
    return False


def test_an_intact_run_has_no_holes(runs: Runs) -> None:
    for run in (*runs.all, runs.other):
        assert Run.load(run).holes == []


def noticed(runs: Runs, some: list[Case]) -> None:
    rng = random.Random(DRAW)
    for case in some:
        path = case.run.root / case.place
        whole = path.read_bytes()
        if damaged(case.run, case.place, case.damage, runs.other, rng):
            unreadable(case.run, case)
        path.write_bytes(whole)


def test_damage_is_noticed(runs: Runs) -> None:
    noticed(runs, cases(runs)[:SAMPLE])


@pytest.mark.whole
@pytest.mark.rotating(1)
def test_every_damage_to_every_file_is_noticed(runs: Runs) -> None:
    noticed(runs, cases(runs))


@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.rotating(1)
def test_no_damage_accuses_an_intact_run_or_lets_a_failing_one_pass(
    spark: SparkSession, runs: Runs, tmp_path: Path
) -> None:
    as_they_are = {run: run for run in runs.all}
    failing: dict[RunFolder, list[str]] = {}
    left = JUDGED
    for number, some in enumerate(sliced(cases(runs) * (1 + JUDGED // 100), A_BATCH)):
        root = tmp_path / f"{number:04}"
        tried = damaged_runs(runs, some, root, left)
        runs_tried = {run: case.run for run, case in tried.items()}
        answered = dict(answers_of(spark, runs_tried if failing else as_they_are | runs_tried, root))
        failing = failing or failures(runs, answered)
        for folder, case in tried.items():
            answers = answered[folder]
            if case.run is runs.intact:
                assert FAIL not in answers.values(), case
            assert all(answers[name] is not PASS for name in failing[case.run]), case
        left -= len(tried)
        logger.info("%d of %d damaged runs are judged", JUDGED - left, JUDGED)
        shutil.rmtree(root)
        if left == 0:
            break
    assert left == 0


def failures(runs: Runs, answered: dict[RunFolder, dict[str, SystemVerdict]]) -> dict[RunFolder, list[str]]:
    """Return the checks that fail in each run as it is."""
    failing = {run: [name for name, verdict in answered[run].items() if verdict is FAIL] for run in runs.all}
    assert [bool(failing[run]) for run in runs.all] == [False, *(True for _ in runs.failing)]
    return failing


def damaged_runs(runs: Runs, some: Sequence[Case], root: Path, at_most: int) -> dict[RunFolder, Case]:
    """Return those of the damaged runs that can be judged."""
    rng = random.Random(f"{DRAW} {root.name}")
    tried: dict[RunFolder, Case] = {}
    for number, case in enumerate(some):
        folder = copy_of(case.run, root / "runs", number)
        if damaged(folder, case.place, case.damage, runs.other, rng) and not unreadable(folder, case):
            tried[folder] = case
        if len(tried) == at_most:
            break
    return tried


def answers_of(
    spark: SparkSession, undamaged: dict[RunFolder, RunFolder], root: Path
) -> Iterator[tuple[RunFolder, dict[str, SystemVerdict]]]:
    """Judge each run as the one that it was before; yield what each check answers."""
    to_judge = [judge_many.Case(folder=run, settings=settings(before), checks=()) for run, before in undamaged.items()]
    for folder, judgement in judge_many.judge_many(spark, to_judge, root / "scratch", keep=False, progress=Silent()):
        assert isinstance(judgement, Judgement), folder
        holes, emits = Run.load(folder).holes, Run.load(undamaged[folder]).emits
        evidence = evidence_of(map(registry.check, registry.names(registry.Kind.CHECK)), emits)
        yield folder, {each.check: each.verdict for each in within_holes(judgement.checks, holes, evidence)}
