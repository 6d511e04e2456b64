"""What a sweep costs on this machine at three sizes: its cost a schedule must not grow with their number.

    python -m benchmarks.sweep [--schedules 256] [--smoke] [--record]

Each size is a sweep as `chaos simulate` does it, in a process of its own: simulated over all cores, then judged. The
scenario is that of `benchmarks.schedules` (three brokers, ten seconds, about 200 operations, two faults), or `smoke`.
Processor seconds are those of Python, its workers and the JVM: on a machine with other work, better figures than time.
"""

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.measuring import SAMPLE_S, cpu_seconds, in_own_process, table_of_columns
from benchmarks.schedules import SCENARIO
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.model import Scenario
from harness.scenario.source import options
from harness.sweep.sweep import DRIVER, Sweep
from tools.results.rows import record

SIZES = 3
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """One sweep, in seconds of time and of processors."""

    schedules: int
    lines: int
    simulated_s: float
    simulated_cpu_s: float
    judged_s: float
    judged_cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=256, help="of the largest size; the others are a quarter each")
    parser.add_argument("--smoke", action="store_true", help="the scenario `smoke` instead")
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
    arguments = parser.parse_args()
    columns: list[dict[str, str]] = []
    for power in reversed(range(SIZES)):
        schedules = max(1, arguments.schedules // 4**power)
        swept, peak = in_own_process(sweep, schedules, arguments.smoke)
        columns.append(figures(swept, peak.jvm))
    if arguments.record and not arguments.smoke:
        of_one = {"simulated": swept.simulated_cpu_s, "judged": swept.judged_cpu_s}
        cpu_s = {f"sweeps.{name}_cpu_s": spent_s / swept.schedules for name, spent_s in of_one.items()}
        record(f"python -m benchmarks.sweep --schedules {arguments.schedules}", cpu_s)
    Console().print(table_of_columns(f"a sweep of {'smoke' if arguments.smoke else 'light'} schedules", columns))


def figures(swept: Swept, jvm_bytes: int) -> dict[str, str]:
    """Return one column of the table."""
    return {
        "schedules": f"{swept.schedules:,}",
        "lines": f"{swept.lines:,}",
        "simulated, schedules/s": f"{swept.schedules / swept.simulated_s:.1f}",
        "simulated, CPU s a schedule": f"{swept.simulated_cpu_s / swept.schedules:.3f}",
        "judged, schedules/s": f"{swept.schedules / swept.judged_s:.1f}",
        "judged, CPU s a schedule": f"{swept.judged_cpu_s / swept.schedules:.3f}",
        "judged, lines/s": f"{swept.lines / swept.judged_s:,.0f}",
        "peak memory of the JVM, MB": f"{jvm_bytes / 1e6:,.0f}",
    }


def sweep(schedules: int, smoke: bool, answer: Connection) -> None:
    """Carry a sweep out, and send what it cost; every schedule must hold, or the figures are worth nothing."""
    from harness.analysis.engine.session import spark_session
    from harness.analysis.sources.lines import SCHEMAS
    from harness.sweep import jobs

    with (
        tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as root,
        spark_session(jobs.patient(None), lasting=True) as spark,
        Processors() as processors,
    ):
        spark.range(1).count()
        whole = Sweep(scenario=scenario(smoke), seed=SEED, schedules=schedules, root=Path(root))
        instants, cpu_s = [time.monotonic()], [processors.seconds()]
        jobs.simulate(spark, whole, jobs.Unseen())
        instants.append(time.monotonic())
        cpu_s.append(processors.seconds())
        verdicts = jobs.judge(spark, whole, whole.scenario.checks, jobs.Unseen())
        instants.append(time.monotonic())
        cpu_s.append(processors.seconds())
        histories = spark.read.schema(jobs.HISTORIES).parquet(str(whole.histories))
        lines = histories.selectExpr(
            *(f"aggregate(map_values({kind}), 0, (n, l) -> n + size(l)) {kind}" for kind in SCHEMAS)
        )
        total = lines.selectExpr("sum(" + " + ".join(SCHEMAS) + ") lines").first()
    failed = [verdict.seed for verdict in verdicts if verdict.exit_code]
    if failed or total is None:
        raise SystemExit(f"schedules that do not hold: {failed}")
    answer.send(
        Swept(
            schedules=schedules,
            lines=int(total["lines"]),
            simulated_s=instants[1] - instants[0],
            simulated_cpu_s=cpu_s[1] - cpu_s[0],
            judged_s=instants[2] - instants[1],
            judged_cpu_s=cpu_s[2] - cpu_s[1],
        )
    )


def scenario(smoke: bool) -> Scenario:
    """Return what is simulated."""
    return load_scenario("smoke", options(DRIVER, [], [])) if smoke else read_scenario(SCENARIO, "benchmark")


class Processors:
    """What this process and all below it have used, those that have ended meanwhile as far as they were seen."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Processors":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def seconds(self) -> float:
        """Return the seconds so far."""
        self._look()
        return sum(self._seen.values())

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self._look()

    def _look(self) -> None:
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            try:
                self._seen[process.pid] = cpu_seconds(process)
            except psutil.NoSuchProcess:
                continue


if __name__ == "__main__":
    main()
