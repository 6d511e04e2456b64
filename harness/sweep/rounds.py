"""A guided search as Spark jobs: each round is one table of histories; what it reached decides the next one."""

import shlex
import time
from collections.abc import Sequence

from pyspark.sql import SparkSession

from harness.progress import number_of
from harness.scenario.file import scenario_yaml
from harness.sweep import jobs
from harness.sweep.guided import Guide, rounds_of
from harness.sweep.summary import Summary, SweepFinding, findings_of, summarize
from harness.sweep.sweep import DRIVER, ROUNDS, Candidate, ScheduleVerdict, Sweep, SweepProgress

ROUND = 8
"""Schedules of the first rounds: fewer are guided better. Later ones have more, which keeps executors busy."""


def search(spark: SparkSession, sweep: Sweep, progress: SweepProgress) -> list[Candidate]:
    """Simulate rounds of schedules, each by what all before it have reached; return all in the order of their numbers.

    Raises:
        ClusterError: Spark gave the simulation up.
    """
    guide = Guide(scenario=sweep.scenario, seed=sweep.seed)
    tried: list[Candidate] = []
    for number, size in enumerate(rounds_of(sweep.schedules, ROUND)):
        candidates, first = guide.next_round(size), len(tried)
        histories = sweep.root / ROUNDS / f"{number:04}.parquet"
        jobs.simulate_candidates(spark, candidates, histories, progress, first)
        tried += candidates
        new = guide.learn(candidates, jobs.features_in(histories, range(first, len(tried))))
        progress.message(f"round {number + 1}: {number_of(new, 'new feature')}, {len(guide.corpus)} in all")
    return tried


def judge_rounds(
    spark: SparkSession, sweep: Sweep, candidates: Sequence[Candidate], progress: SweepProgress, *, simulated_s: float
) -> Summary:
    """Judge all rounds at once, write the verdicts, and a scenario for the first schedule of each finding."""
    began_s = time.monotonic()
    verdicts = jobs.judge_histories(spark, sweep.root / ROUNDS, candidates, sweep.root, progress)
    sweep.verdicts.write_text("".join(each.model_dump_json() + "\n" for each in verdicts), encoding="utf-8")
    summary = summarize(sweep, verdicts, simulated_s=simulated_s, judged_s=time.monotonic() - began_s)
    return summary.model_copy(
        update={
            "violations": [_replayed(finding, verdicts, candidates, sweep) for finding in summary.violations],
            "doubts": [_replayed(finding, verdicts, candidates, sweep) for finding in summary.doubts],
        }
    )


def _replayed(
    finding: SweepFinding, verdicts: Sequence[ScheduleVerdict], candidates: Sequence[Candidate], sweep: Sweep
) -> SweepFinding:
    """Return a finding with the command that does its first schedule again, whose scenario is written for it."""
    number = next(each.number for each in verdicts if finding.what in findings_of(each))
    candidate = candidates[number]
    path = sweep.root / "found" / f"schedule-{number:06}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(scenario_yaml(candidate.scenario, brief=True), encoding="utf-8")
    replay = shlex.join(["chaos", "run", str(path), "--driver", DRIVER, "--seed", str(candidate.plan.seed)])
    return finding.model_copy(update={"replay": replay})
