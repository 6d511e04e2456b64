"""How long each DAG file is parsed, and what Airflow adds to a run: the same scenario and seed by `chaos run`, and by
the tasks of the DAG `chaos_smoke`.

    python -m benchmarks.airflow [SCENARIO] [--runs 1] [--seed 7]

A file is parsed in a Python of its own, in which Airflow is imported already, as in the DAG processor. The wall time
of the tasks includes what a running Airflow has done long before: Python and Airflow start, and a metadata database
is made. So the time from the first phase to the last is what is compared.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.store.folder import RunFolder
from harness.store.history import read_jsonl
from harness.store.phase_log import ends

ROOT = Path(__file__).resolve().parent.parent

PARSE = """
import sys, time
import airflow.sdk
began_s = time.process_time()
__import__(sys.argv[1])
print(time.process_time() - began_s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One run, however it was carried out."""

    wall_s: float
    """From the command to its exit."""
    run_s: float
    """From the first phase's beginning to the last one's end."""
    phases_s: float

    @property
    def between_s(self) -> float:
        """What passed between the phases."""
        return self.run_s - self.phases_s


def timed(command: list[str], runs: Path) -> Timed:
    """Carry out one run by a command that makes its folder in `runs`."""
    began_s = time.monotonic()
    process = subprocess.run([*command, "--runs", str(runs)], cwd=ROOT, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - began_s
    folders = [path for path in runs.iterdir() if path.is_dir()] if runs.is_dir() else []
    if process.returncode or len(folders) != 1:
        raise SystemExit(
            f"{' '.join(command)}: exit code {process.returncode}\n{process.stdout[-2000:]}{process.stderr[-2000:]}"
        )
    folder = RunFolder(folders[0])
    instants = [datetime.fromisoformat(line["utc"]) for line in read_jsonl(folder.phases)]
    run_s = (instants[-1] - instants[0]).total_seconds()
    return Timed(wall_s=wall_s, run_s=run_s, phases_s=sum(end.duration_s for end in ends(folder).values()))


def parsed_s(file: Path) -> float:
    """Return the CPU seconds that a DAG file is parsed."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("dags", "plugins", ""))
    command = [sys.executable, "-c", PARSE, file.stem]
    process = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    return float(process.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default="smoke", metavar="SCENARIO")
    parser.add_argument("--runs", type=int, default=1, help="how many of each")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    parsing = Table("DAG file", "CPU seconds (median)", title="parsing")
    for file in sorted((ROOT / "dags").glob("*.py")):
        parsing.add_row(file.name, f"{statistics.median(parsed_s(file) for _ in range(options.runs)):.2f}")
    Console().print(parsing)
    seed = ["--seed", str(options.seed)]
    commands = {
        "chaos run": [sys.executable, "-m", "harness", "run", options.scenario, *seed],
        "Airflow tasks": [sys.executable, "dags/chaos_smoke.py", "--scenario", options.scenario, *seed],
    }
    table = Table("seconds (median)", "wall", "first to last phase", "in phases", "between", title=options.scenario)
    medians: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for name, command in commands.items():
            results = [timed(command, Path(folder) / f"{name}-{number}") for number in range(options.runs)]
            rows = ([r.wall_s for r in results], [r.run_s for r in results], [r.phases_s for r in results])
            between = [r.between_s for r in results]
            table.add_row(name, *(f"{statistics.median(row):.1f}" for row in (*rows, between)))
            medians[name] = statistics.median(rows[1])
    Console().print(table)
    Console().print(f"Airflow's tasks add {medians['Airflow tasks'] - medians['chaos run']:.1f} s")


if __name__ == "__main__":
    main()
