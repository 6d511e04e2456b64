"""How many operations a second Spark and Great Expectations judge, and the memory that they take.

    python -m benchmarks.judging [--operations 100000 1000000] [--sparse] [--clients-alone] [--keep FOLDER]
    python -m benchmarks.judging --transactions [--operations 1000000]
    python -m benchmarks.judging --typed --operations 10000000

Each size is an intact synthetic history, written to disk first, and judged in a process of its own as a run is: a
Spark session, the facts, the checks, the suites. Every check must pass, or the figures are not shown. With clients
alone, what they saw is all the evidence, as for checkers that know no replicas; it is judged as `chaos judge` does. So
are transactions (`tools/transactional_history.py`).
Typed histories are made as the tables that evidence is sealed into: of clients, replicas and ZooKeeper, and without
suites. Checks that they have no evidence for are UNKNOWN; no other may be, nor any fail. With CHAOS_ENGINE=sail Sail
judges, whose memory is that of Python.
"""

import argparse
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from rich.console import Console

from benchmarks.measuring import Peak, cpu_seconds, in_own_process, jvms, table_of_columns
from harness.analysis.sources.reading import ROW_BYTES, SEALED_LINE_BYTES, as_lines, session_bytes
from harness.contracts.checks import Settings
from harness.ingest.settings import AllowedSettings
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.values import ACKS_ALL
from harness.verdict import SystemVerdict
from tools import transactional_history
from tools.results.rows import FIGURES, load, record
from tools.synthetic_history import generate
from tools.typed_history import RUN_ID, TypedHistory, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_EVIDENCE = "nothing to judge"
JudgingResult = tuple[int, list[tuple[str, SystemVerdict]], float]
"""How many rows the facts have, the verdict of each check and suite, and when the last check had ended."""
Judging = Callable[["SparkSession", RunFolder], JudgingResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One history as it was judged."""

    facts_rows: int
    session_s: float
    """Until Spark takes the first job."""
    facts_s: float
    checks_s: float
    suites_s: float
    cpu_s: float
    """User and system time of Python and its JVM: on a machine with other work, a better figure than seconds."""
    failed: tuple[str, ...]
    """Checks and suites that did not pass."""


SPARK = "spark"
CPU_SIZE = 6
"""The power of ten of operations whose CPU time has an id in results/figures.json."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--sparse", action="store_true", help="offsets with gaps, up to 2^40")
    parser.add_argument("--clients-alone", action="store_true", help="the operations of clients are all the evidence")
    parser.add_argument("--transactions", action="store_true", help="clients alone, which use transactions")
    parser.add_argument("--typed", action="store_true", help="made as typed tables, for millions of operations")
    parser.add_argument("--keep", type=Path, help="make the run folders here, and leave them for `chaos rejudge`")
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
    options = parser.parse_args()
    columns: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as temporary:
        for number in options.operations:
            if options.typed:
                column, recorded = typed_figures(Path(temporary, str(number)), number)
                columns.append(column)
                if options.record and recorded:
                    record(f"python -m benchmarks.judging --typed --operations {number}", recorded)
                continue
            if options.transactions:
                folder = RunFolder(Path(options.keep or temporary, f"transactions-{number}"))
                operations = transactional_history.generate(folder.root / "operations", number)
            else:
                folder, operations = generate(
                    options.keep or Path(temporary), number, sparse=options.sparse, clients_alone=options.clients_alone
                )
            clients_alone = options.clients_alone or options.transactions
            judging = judged_as_history if clients_alone else judged_as_run
            size_bytes = folder.evidence_bytes() if clients_alone else session_bytes([folder])
            judged, peak = in_own_process(judge, folder, size_bytes, judging)
            if judged.failed:
                raise SystemExit(f"{folder.root}: an intact history must pass, and these did not: {judged.failed}")
            columns.append(figures(operations, judged, peak))
            if options.record and options.transactions:
                record(
                    f"python -m benchmarks.judging --transactions --operations {number}",
                    transactional_figures(operations, judged, peak),
                )
    Console().print(table_of_columns("judging an intact history", columns))


def typed_figures(root: Path, number: int) -> tuple[dict[str, str], dict[str, float]]:
    """Make a typed history; return its column of the table, and the figures of results/figures.json."""
    root.mkdir()
    history = make(root, number)
    size_bytes = as_lines(history.paths.values()) * SEALED_LINE_BYTES // ROW_BYTES
    judged, peak = in_own_process(judge, RunFolder(root / RUN_ID), size_bytes, partial(judged_as_tables, history))
    if judged.failed:
        raise SystemExit(f"{root}: an intact history must pass, and these did not: {judged.failed}")
    engine = os.environ.get("CHAOS_ENGINE", SPARK)
    memory_gb = (peak.jvm if engine == SPARK else peak.python) / 1e9
    size = round(math.log10(number))
    figures_of_size = {
        f"large.typed_{engine}_cpu_s": judged.cpu_s if size == CPU_SIZE else None,
        f"large.typed{size}_{engine}_s": history.operations / (judged.facts_s + judged.checks_s),
        f"large.typed{size}_{engine}_gb": memory_gb,
    }
    known = {row["id"] for row in load(FIGURES)}
    recorded = {name: value for name, value in figures_of_size.items() if value is not None and name in known}
    return figures(history.operations, judged, peak), recorded


def transactional_figures(operations: int, judged: Judged, peak: Peak) -> dict[str, float]:
    """Return the figures of results/figures.json about a history of transactions."""
    name = f"large.transactions{round(math.log10(operations))}_{os.environ.get('CHAOS_ENGINE', SPARK)}"
    return {
        f"{name}_s": operations / (judged.facts_s + judged.checks_s),
        f"{name}_cpu_s": judged.cpu_s,
        f"{name}_gb": (peak.python + peak.jvm) / 1e9,
    }


def figures(operations: int, judged: Judged, peak: Peak) -> dict[str, str]:
    """Return one column of the table."""
    return {
        "operations": f"{operations:,}",
        "facts, rows": f"{judged.facts_rows:,}",
        "start of the session, s": f"{judged.session_s:.1f}",
        "facts, s": f"{judged.facts_s:.1f}",
        "checks, s": f"{judged.checks_s:.1f}",
        "suites, s": f"{judged.suites_s:.1f}",
        "facts and checks, operations/s": f"{operations / (judged.facts_s + judged.checks_s):,.0f}",
        "CPU of all, s": f"{judged.cpu_s:.1f}",
        "peak memory of Python, MB": f"{peak.python / 1e6:,.0f}",
        "peak memory of the JVM, MB": f"{peak.jvm / 1e6:,.0f}",
    }


def judge(folder: RunFolder, size_bytes: int, judging: Judging, answer: Connection) -> None:
    """Judge a run folder by a session that is fitted to so much evidence, and send the figures."""
    from harness.analysis.engine.session import spark_session

    instants = [time.time()]
    with spark_session(size_bytes=size_bytes, anywhere=True) as spark:
        spark.range(1).count()
        instants.append(time.time())
        facts_rows, verdicts, checked = judging(spark, folder)
        instants += [facts_written(folder), checked, time.time()]
        cpu_s = sum(cpu_seconds(process) for process in [psutil.Process(), *jvms(psutil.Process())])
    session_s, facts_s, checks_s, suites_s = (after - before for before, after in itertools.pairwise(instants))
    answer.send(
        Judged(
            facts_rows=facts_rows,
            session_s=session_s,
            facts_s=facts_s,
            checks_s=checks_s,
            suites_s=suites_s,
            cpu_s=cpu_s,
            failed=tuple(name for name, verdict in verdicts if verdict is not SystemVerdict.PASS),
        )
    )


def judged_as_run(_spark: "SparkSession", folder: RunFolder) -> JudgingResult:
    """Judge as the judge phase does, suites included."""
    from expectations import runner
    from harness.analysis.judge import judge as judge_facts

    settings = Run.load(folder).settings
    judgement = judge_facts(folder, settings)
    checked = time.time()
    suites = runner.run(folder, settings)
    verdicts = [(check.check, check.verdict) for check in judgement.checks]
    verdicts += [(suite.suite, suite.verdict) for suite in suites]
    return sum(judgement.counts.values()), verdicts, checked


def judged_as_history(spark: "SparkSession", folder: RunFolder) -> JudgingResult:
    """Judge as `chaos judge --operations` does, without a report; there are no suites."""
    from harness.ingest.judging import judge_history

    paths = {"operations": [str(folder.root / "operations")]}
    result = judge_history(spark, paths, AllowedSettings(min_insync_replicas=2), folder)
    verdicts = [(check.check, check.verdict) for check in result.checks]
    verdicts += [(f"of all checks: {remark}", SystemVerdict.UNKNOWN) for remark in result.remarks]
    return sum(result.counts.values()), verdicts, time.time()


def judged_as_tables(history: TypedHistory, spark: "SparkSession", folder: RunFolder) -> JudgingResult:
    """Judge a typed history by all checks that it has evidence for."""
    from harness.analysis.judge import Question, judge_sources

    folder.root.mkdir()
    settings = Settings(
        acks=frozenset({ACKS_ALL}), min_insync_replicas=2, unclean_leader_election=False, idempotence=False
    )
    question = Question(settings={folder.run_id: settings})
    (judgement,) = judge_sources(spark, history.sources(spark), [question], into=folder)
    verdicts = [(each.check, each.verdict) for each in judgement.checks if not each.reason.startswith(NO_EVIDENCE)]
    return sum(judgement.counts.values()), verdicts, time.time()


def facts_written(folder: RunFolder) -> float:
    """Return when the last fact was on disk: then the checks begin."""
    return max(file.stat().st_mtime for file in folder.facts.glob("*/*.parquet"))


if __name__ == "__main__":
    main()
