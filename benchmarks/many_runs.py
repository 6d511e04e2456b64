"""How long do pages of many runs take, when nobody has read them before and from then on?

    python -m benchmarks.many_runs [--runs 10000] [--into FOLDER]

The runs are made: results of thirty nights as large as real ones, with plan, origin, coverage and the facts that are
looked into, in a new folder unless one of an earlier time is named. *First* is in a new process, for trend and coverage
without the table of an earlier look; *warm* is the fastest of five more. Airflow's list is measured by what reads it,
without its server.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from harness.analysis.coverage.transitions import POSSIBLE
from harness.analysis.tables.arrow import columns_of
from harness.analysis.tables.schemas import TABLES
from harness.contracts import registry
from harness.progress import Silent
from harness.report.trend.page import render
from harness.report.trend.summary import TABLE, summaries
from harness.scenario.file import load_scenario
from harness.scenario.plan import Plan, make_plan
from harness.store.coverage import Coverage, Injected, Played, When
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult
from harness.verdict import FaultVerdict, SystemVerdict

NIGHTS = 30
SCENARIOS = ("smoke", "kill-leader", "expire-session", "unclean-election", "storm", "mix")
FIRST_NIGHT = datetime(2026, 1, 1, 2, tzinfo=UTC)
WARM = 5
LARGE_MESSAGE = 200


def made(folder: Path, runs: int) -> None:
    """Make so many runs."""
    folder.mkdir(parents=True)
    draw = random.Random(7)
    templates = Path(tempfile.mkdtemp(prefix=".templates-", dir=folder))
    kinds = [_template(templates / scenario, scenario, draw) for scenario in SCENARIOS]
    for number in range(runs):
        night = FIRST_NIGHT + timedelta(days=number * NIGHTS // runs, seconds=number)
        template = kinds[number % len(kinds)]
        run = RunFolder(folder / f"{template.run_id}-{night:%Y%m%dT%H%M%S}-{number:08x}")
        run.facts.mkdir(parents=True)
        for file in (template.plan, *template.facts.iterdir()):
            (run.root / file.relative_to(template.root)).hardlink_to(file)
        result = RunResult.load(template.verdict).model_copy(
            update={"run_id": run.run_id, "started_at": night.isoformat()}
        )
        result.save(run.verdict)
        _coverage(load(template), draw).save(run.coverage)
        origin = f'{{"dag_id": "chaos_nightly", "run_id": "scheduled__{night:%Y-%m-%d}", "task_id": "run.start"}}\n'
        run.origin.write_text(origin, encoding="utf-8")


def load(template: RunFolder) -> Plan:
    """Return the plan of a run that others are made of."""
    return Plan.model_validate_json(template.plan.read_bytes())


def _template(root: Path, scenario: str, draw: random.Random) -> RunFolder:
    folder = RunFolder(root)
    folder.facts.mkdir(parents=True)
    plan = make_plan(load_scenario(scenario), 7)
    folder.plan.write_text(plan.to_json(), encoding="utf-8")
    checks = [registry.check(name) for name in registry.names(registry.Kind.CHECK)]
    RunResult(
        run_id="",
        scenario=scenario,
        driver="process",
        seed=7,
        started_at="",
        duration_s=draw.uniform(20, 60),
        phase_durations_s=dict.fromkeys(("start", "drive", "collect", "stop", "judge", "expectations", "report"), 5.0),
        faults=[
            FaultResult(
                injection=fault.injection,
                fault=fault.fault,
                targets=["1"],
                verdict=FaultVerdict.CONFIRMED,
                detail="d" * LARGE_MESSAGE,
            )
            for fault in plan.faults
        ],
        checks=[CheckResult(check=each.name, promise=each.promise, verdict=SystemVerdict.PASS) for each in checks],
        counts=dict.fromkeys(TABLES, 1000),
    ).save(folder.verdict)
    windows = [
        {"injection": fault.injection, "injected_ns": 10**9 * (index + 1), "healed_ns": 10**9 * (index + 2)}
        for index, fault in enumerate(plan.faults)
    ]
    gaps = [{"from_ns": 10**9 * second, "to_ns": 10**9 * second + 10**8, "gap_ms": 100.0} for second in range(20)]
    for name, rows in (("fault_windows", windows), ("availability", gaps)):
        pq.write_table(pa.Table.from_pylist(rows, columns_of(TABLES[name])), folder.facts / f"{name}.parquet")
    return folder


def _coverage(plan: Plan, draw: random.Random) -> Coverage:
    injected = {
        (fault.fault, role, draw.choice(list(When)))
        for fault in plan.faults
        for role in draw.sample([Played.LEADER, Played.FOLLOWER, Played.CONTROLLER, Played.COORDINATOR], 3)
    }
    transitions = {
        machine: {name: draw.randint(1, 500) for name in sorted(possible) if draw.random() < 0.6}
        for machine, possible in POSSIBLE.items()
    }
    apis = ("Produce", "Fetch", "OffsetCommit", "client's send")
    return Coverage(
        injected=[
            Injected(fault=fault, role=role, when=when, tried=1, confirmed=1) for fault, role, when in sorted(injected)
        ],
        transitions=transitions,
        errors={api: {"NOT_LEADER_FOR_PARTITION": 7, "REQUEST_TIMED_OUT": 3} for api in apis},
    )


def list_page(folder: Path) -> object:
    """Read what Airflow's list shows."""
    return _page_of(folder)


def violated_page(folder: Path) -> object:
    """Read the list of an outcome that no run has, for which it looks into as many as it ever does."""
    return _page_of(folder, outcome="violated")


def night_page(folder: Path) -> object:
    """Read the page of one night."""
    return _page_of(folder, dag_id="chaos_nightly", run_id="scheduled__2026-01-29")


def _page_of(folder: Path, *, outcome: str = "", dag_id: str = "", run_id: str = "") -> object:
    os.environ["CHAOS_RUNS"] = str(folder)
    from chaos_airflow import settings
    from chaos_airflow.views.listing import Filters, page_of
    from chaos_airflow.views.reading import Runs, State

    filters = Filters(outcome=State(outcome) if outcome else None, dag_id=dag_id, run_id=run_id)
    return page_of(Runs(settings.runs_folder()), filters, lambda origin: True)


def trend_rows(folder: Path) -> object:
    """Read all runs as rows."""
    return summaries(folder, Silent()).rows()


def coverage(folder: Path) -> object:
    """Add up what all runs covered."""
    return summaries(folder, Silent()).coverage()


def trend_page(folder: Path) -> object:
    """Make the whole page of all nights, trend and coverage."""
    return render(summaries(folder, Silent()), lambda run: run.name)


PAGES: dict[str, Callable[[Path], object]] = {
    "Airflow's list": list_page,
    "the list of an outcome": violated_page,
    "the list of a night": night_page,
    "runs for the trend": trend_rows,
    "coverage": coverage,
    "the whole page of all nights": trend_page,
}


def timed(page: Callable[[Path], object], folder: Path) -> tuple[float, float]:
    """Return seconds, and CPU seconds, of making a page."""
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    page(folder)
    return time.monotonic() - began_s, _cpu_s() - began_cpu_s


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(name: str, folder: Path) -> None:
    """Print seconds and CPU seconds of the first time, and of the fastest of some more."""
    page = PAGES[name]
    first = timed(page, folder)
    warm = [timed(page, folder) for _ in range(WARM)]
    print(*first, *(min(each) for each in zip(*warm, strict=True)))


def main() -> None:
    """Make the runs, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--into", type=Path, help="a folder for the runs, which stays, or one of an earlier time")
    parser.add_argument("--page", choices=PAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.page:
        measure(arguments.page, arguments.into)
        return
    with tempfile.TemporaryDirectory(prefix="chaos-many-runs-") as scratch:
        folder = arguments.into or Path(scratch) / "runs"
        if not folder.exists():
            made(folder, arguments.runs)
        table = Table("page", "first, s", "first, CPU s", "warm, s", "warm, CPU s", title=f"{arguments.runs:,} runs")
        for name in PAGES:
            (folder / TABLE).unlink(missing_ok=True)
            command = [sys.executable, "-m", "benchmarks.many_runs", "--into", str(folder), "--page", name]
            answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
            table.add_row(name, *(f"{float(figure):.2f}" for figure in answer.split()))
        Console().print(table)


if __name__ == "__main__":
    main()
