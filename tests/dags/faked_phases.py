"""The phases over a cluster in memory, for a process of its own: what each try of a scenario comes to is told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import phases
from harness.contracts.faults import Injection
from harness.errors import ClusterError, Refused
from harness.judging.assessment import Checked
from harness.report import page
from harness.run.journal import Journal
from harness.run.run import Run
from harness.scenario.model import Scenario
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep
from harness.store.result import CheckResult, SuiteResult
from harness.verdict import SystemVerdict
from tests.fake_cluster import FakeCluster

STEPS = (InjectionStep.INTENDED, InjectionStep.INJECTED, InjectionStep.CONFIRMED, InjectionStep.HEALED)
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
REFUSED = "refused"
CREATE_FROM = phases.create_from
NO_START, LOST = "does not start", "lost in drive"


def install(answers: Mapping[str, Sequence[str]]) -> None:
    """Replace what is slow or needs a machine.

    Args:
        answers: For each scenario what its checks say, try by try; or how a try fails before that. A key of scenario
            and seed, such as "smoke-00000006", goes before: Airflow begins tries of different seeds in any order.
    """

    def answer(folder: RunFolder) -> str:
        name, _, seed = folder.run_id.rsplit("-", 2)
        made = sorted(folder.root.parent.glob(f"{name}-*"))  # by instant and seed
        tries = answers.get(f"{name}-{seed}", answers[name])
        return tries[min(made.index(folder.root), len(tries) - 1)]

    def create_from(scenario: Scenario, seed: int | None, runs: Path, *, owned: bool) -> RunFolder:
        if answers[scenario.name][0] == REFUSED:
            raise Refused("the driver process cannot do this here")
        return CREATE_FROM(scenario, seed, runs, owned=owned)

    def driver_of(folder: RunFolder, _scenario: Scenario) -> FakeCluster:
        return FakeCluster(root=folder.root, broken={"start"} if answer(folder) == NO_START else set())

    async def drive(run: Run, *_arguments: Any) -> None:
        folder = run.folder
        journal = Journal(folder.journal)
        for planned in run.plan.faults:
            for step in STEPS:
                injection = Injection(fault=planned.fault, targets=(1,))
                journal.note(planned.injection, planned.fault, step, injection=injection)
        journal.close()
        if answer(folder) == LOST:
            raise ClusterError("the cluster is gone")

    async def collect(*_arguments: Any) -> None: ...

    def run_checks(run: Run, *_arguments: Any) -> Checked:
        folder = run.folder
        verdict = answer(folder) if answer(folder) in (FAIL, UNKNOWN) else PASS
        reason = "" if verdict == PASS else f"{verdict} it is"
        return Checked(checks=[CheckResult(check="I1", promise="p", verdict=SystemVerdict[verdict], reason=reason)])

    def write(run: Run, *, alone: bool) -> Path:
        run.folder.report.write_text("a page that stands alone" if alone else "page")
        return run.folder.report

    suite = SuiteResult(suite="s", verdict=SystemVerdict.PASS, evaluated=1, unsuccessful=0)
    vars(phases).update(create_from=create_from, driver_of=driver_of, drive_cluster=drive, collect_from=collect)
    vars(phases).update(run_checks=run_checks, run_suites=lambda *_arguments: [suite])
    vars(page).update(write=write)
