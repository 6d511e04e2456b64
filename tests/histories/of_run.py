"""Keeps a run of a real cluster as a recorded history: its evidence as one row, and the verdict of the checks on it.

`python -m tests.histories.of_run RUN FOLDER "what it shows"`.
"""

import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.engine.session import spark_session
from harness.scenario.file import scenario_of
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.sweep.executor import SimulatedSchedule, evidence_of
from harness.sweep.jobs import HISTORIES, judge_histories, patient
from harness.sweep.recorded import History
from harness.sweep.summary import findings_of
from harness.sweep.sweep import Candidate
from harness.system.scratch import scratch_folder
from harness.verdict import SystemVerdict


def keep(run: RunFolder, history: History, about: str) -> list[str]:
    """Keep a run that has ended, judged anew by the checks that could judge it; return what was found."""
    result = RunResult.from_json(run.verdict.read_bytes(), str(run.verdict))
    judged = [answer.check for answer in result.checks if answer.verdict is not SystemVerdict.NOT_JUDGED]
    scenario = scenario_of(run).model_copy(update={"checks": judged})
    evidence = evidence_of(run)
    row = SimulatedSchedule(
        number=0,
        run_id=result.run_id,
        seed=result.seed,
        result=result.model_copy(update={"checks": [], "suites": [], "counts": {}}).model_dump_json(),
        size_bytes=run.evidence_bytes(),
        evidence=evidence,
    ).row()
    with spark_session(patient(None)) as spark, scratch_folder() as scratch:
        table = scratch / "runs.parquet"
        parquet.write_table(pa.Table.from_pylist([row], schema=to_arrow_schema(HISTORIES)), table)
        candidate = Candidate(scenario=scenario, plan=make_plan(scenario, result.seed))
        (verdict,) = judge_histories(spark, table, [candidate], scratch)
        history.write(scenario, table, verdict, about)
    return list(findings_of(verdict))


if __name__ == "__main__":
    _, of_run, into, shown = sys.argv
    print(keep(RunFolder(Path(of_run)), History(Path(into)), shown))  # noqa: T201
