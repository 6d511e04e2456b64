"""Wall time of a whole `chaos run` against the windows that its scenario declares.

    python -m benchmarks.run [SCENARIO] [--runs 3] [--seed 7] [--driver process --driver docker]

The declared time is the scenario's `duration_s`: load and faults. All else is the harness's own: starting and stopping
a cluster, waiting for what is still open, collecting, judging, the report, and Python itself.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.scenario.file import scenario_of
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, ends
from harness.store.result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One run from the command to its exit."""

    wall_s: float
    declared_s: float
    phases_s: dict[Phase, float]
    exit_code: int
    verdicts: str

    @property
    def seconds(self) -> dict[str, float]:
        """Every row of the table."""
        phases = {phase.value: self.phases_s.get(phase, 0.0) for phase in Phase}
        return {
            **phases,
            "outside phases": self.wall_s - sum(phases.values()),
            "wall": self.wall_s,
            "declared": self.declared_s,
            "overhead": self.wall_s - self.declared_s,
        }


def timed(scenario: str, driver: str, runs: Path, seed: int | None) -> Timed:
    """Carry out one run as a user would."""
    command = [sys.executable, "-m", "harness", "run", scenario, "--driver", driver, "--runs", str(runs)]
    command += [] if seed is None else ["--seed", str(seed)]
    began = time.monotonic()
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - began
    folders = list(runs.iterdir()) if runs.is_dir() else []
    if len(folders) != 1:
        raise SystemExit(f"no run came of {scenario}, exit code {process.returncode}:\n{process.stderr.strip()}")
    folder = RunFolder(folders[0])
    verdicts = RunResult.load(folder.verdict).verdicts
    return Timed(
        wall_s=wall_s,
        declared_s=scenario_of(folder).duration_s,
        phases_s={phase: end.duration_s for phase, end in ends(folder).items()},
        exit_code=process.returncode,
        verdicts=f"{verdicts.fault.name} {verdicts.system.name} {verdicts.environment.name}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default="smoke", metavar="SCENARIO")
    parser.add_argument("--runs", type=int, default=3, help="how many runs")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--driver", action="append", help="cluster driver; repeatable")
    options = parser.parse_args()
    for driver in options.driver or ["process"]:
        with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
            run_folders = [Path(folder) / str(number) for number in range(options.runs)]
            show(
                f"{options.scenario} · {driver}",
                [timed(options.scenario, driver, it, options.seed) for it in run_folders],
            )


def show(title: str, results: list[Timed]) -> None:
    """Print a row for each phase and each sum, a column for each run."""
    table = Table("seconds", *(f"run {number + 1}" for number in range(len(results))), "median", title=title)
    for name in results[0].seconds:
        values = [result.seconds[name] for result in results]
        table.add_row(name, *(f"{value:.1f}" for value in values), f"{statistics.median(values):.1f}")
    table.add_row("verdicts", *(result.verdicts for result in results), "")
    table.add_row("exit code", *(str(result.exit_code) for result in results), "")
    Console().print(table)


if __name__ == "__main__":
    main()
