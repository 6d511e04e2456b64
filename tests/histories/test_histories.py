"""Recorded histories: judged again they get the verdict they got, and simulated again they give what is expected today.

Of each day some are judged by Apache Spark and some simulated again (CHAOS_SAMPLE=all: all of them); Sail judges all of
them every time (`tests/analysis/test_engines.py`).

`chaos keep SCENARIO tests/histories/NAME --seed N --about "…"` adds one. When what it shows is mended, `today` in its
`verdict.json` becomes `held`. `python -m tests.histories.of_run RUN tests/histories/NAME "…"` keeps a run of a real
cluster, which is only judged again.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from harness.scenario.file import scenario_yaml
from harness.sweep.executor import simulate_candidates
from harness.sweep.jobs import HISTORIES, judge_histories
from harness.sweep.recorded import History, answers, histories_in
from harness.sweep.summary import findings_of
from harness.sweep.sweep import Candidate, ScheduleVerdict
from tests.histories.one_table import one_table
from tests.sampling import sampled

pytestmark = [pytest.mark.spark, pytest.mark.jvm]

KEPT = histories_in(Path(__file__).parent)
TODAY = sampled(KEPT, 4)
AGAIN = sampled([each for each in KEPT if each.candidate().scenario.driver == "simulated"], 2)
OTHER_SEEDS = tuple(sampled((1, 2, 3), 1))
"""A change of the broker changes what one seed gives, so a bug that is still there may show under another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    recorded: dict[str, ScheduleVerdict]
    """By name of the history."""
    again: dict[str, list[ScheduleVerdict]]
    """The same, simulated today: under its own seed first."""


def candidate_of(history: History, seed: int | None = None) -> Candidate:
    """Return the schedule, to be judged by the checks that it was judged by; by all, if those must find nothing."""
    candidate, recorded = history.candidate(seed), history.recorded()
    simulated_and_held = seed is not None and recorded.today == "held"
    checks = [] if simulated_and_held else sorted(recorded.checks)
    return replace(candidate, scenario=candidate.scenario.model_copy(update={"checks": checks}))


def seeds_of(history: History) -> list[int]:
    recorded = history.recorded()
    others = OTHER_SEEDS if recorded.today == "found" else ()
    return list(dict.fromkeys([recorded.seed, *others]))


def simulated(candidates: list[Candidate]) -> list[pa.Table]:
    texts = {n: (scenario_yaml(each.scenario), each.plan.to_json()) for n, each in enumerate(candidates)}
    rows = [schedule.row() for schedule in simulate_candidates(texts, texts)]
    for row in rows:
        row["run_id"] += "-again"
    return [pa.Table.from_pylist([row], schema=to_arrow_schema(HISTORIES)) for row in rows]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Everything in one table, judged at once."""
    root = tmp_path_factory.mktemp("histories")
    again = [(each, candidate_of(each, seed)) for each in AGAIN for seed in seeds_of(each)]
    one_table(TODAY, simulated([candidate for _, candidate in again]), root / "all.parquet")
    candidates = [candidate_of(each) for each in TODAY] + [candidate for _, candidate in again]
    verdicts = judge_histories(spark, root / "all.parquet", candidates, root)
    by_name: dict[str, list[ScheduleVerdict]] = {}
    for (history, _), verdict in zip(again, verdicts[len(TODAY) :], strict=True):
        by_name.setdefault(history.name, []).append(verdict)
    recorded = {history.name: verdict for history, verdict in zip(TODAY, verdicts, strict=False)}
    return Judged(recorded=recorded, again=by_name)


@pytest.mark.parametrize("history", [pytest.param(each, id=each.name) for each in TODAY])
def test_judged_again_it_gets_the_recorded_verdict(history: History, judged: Judged) -> None:
    recorded, now = history.recorded(), answers(judged.recorded[history.name])
    assert {name: now[name] for name in recorded.checks} == recorded.checks


@pytest.mark.parametrize("history", [pytest.param(each, id=each.name) for each in AGAIN])
def test_simulated_again_it_gives_what_is_expected_today(history: History, judged: Judged) -> None:
    recorded = history.recorded()
    now = [findings_of(verdict) for verdict in judged.again[history.name]]
    if recorded.today == "held":
        assert now[0] == {}, f"{recorded.about}: it is back"
    else:
        assert any(recorded.found[0] in each for each in now), (
            f"{recorded.about}: not found any more; if that was mended, {history.verdict} says `held` from now on"
        )
