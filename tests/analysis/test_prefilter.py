"""Sliced checks find in slices what they find in all rows, whatever is wrong with a history."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.check_helpers.assumptions import UNIQUE_VALUES
from harness.analysis.check_helpers.settings import settings_at_once
from harness.analysis.engine.session import tuned
from harness.analysis.facts.build import Facts, built_facts, fact_path, read_facts
from harness.analysis.facts.steps import poll_steps
from harness.analysis.prefilter import SLICED, dirty_blocks, slices
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import LINES, from_table
from harness.contracts import registry
from harness.contracts.checks import Check, Settings, handed_to
from harness.sweep.jobs import HISTORIES
from harness.sweep.recorded import histories_in
from tests.analysis.corruptions import CORRUPTIONS
from tests.analysis.model_evidence import Evidence
from tests.analysis.model_run import history
from tests.analysis.prefilter_histories import settings, tables
from tests.histories.one_table import one_table

pytestmark = [pytest.mark.spark, pytest.mark.whole]

NUMBER = int(os.environ.get("CHAOS_GATE_HISTORIES", "2000"))
FIRST = int(os.environ.get("CHAOS_GATE_FIRST", "0"))
BATCH = 20_000
BITS = (1, 2)
"""Of a block: so few offsets that many a tiny history has blocks that are left out."""
SETTINGS = Settings(acks=frozenset({-1, 0, 1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=True)
RUNS = T.StructType([T.StructField("run_id", T.StringType()), *(T.StructField(kind, LINES) for kind in SCHEMAS)])
CHECKS = [check for check in map(registry.check, registry.names(registry.Kind.CHECK)) if check.prefiltered]


@dataclass(frozen=True)
class Judged:
    left_out: dict[int, float]
    """Share of all rows, by the bits of a block."""
    number: Counter[str]
    """Findings of all rows, by check."""
    differing: list[str]
    """What either has and the other has not."""


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    number: Counter[str] = Counter()
    rows, staying = 0, Counter[int]()
    odd = []
    for first in range(FIRST, FIRST + NUMBER, BATCH):
        seeds = range(first, min(first + BATCH, FIRST + NUMBER))
        folder = tmp_path_factory.mktemp(f"facts-{first}")
        facts = facts_of(spark, seeds, folder)
        repeated = repeated_values(facts)
        rows += sum(facts[name].count() for name in SLICED)
        full = {check.name: findings(check, facts, settings(seeds), repeated) for check in CHECKS}
        number += Counter({name: len(each) for name, each in full.items()})
        for bits in BITS:
            stay = slices(facts, dirty_blocks(facts, bits), folder / f"slices-{bits}", bits)
            staying[bits] += sum(stay[name].count() for name in SLICED)
            for check in CHECKS:
                sliced = findings(check, facts | stay, settings(seeds), repeated)
                odd += differing(check, full[check.name], sliced, bits)
    return Judged(left_out={bits: 1 - number / rows for bits, number in staying.items()}, number=number, differing=odd)


def differing(check: Check, full: Counter[str], sliced: Counter[str], bits: int) -> list[str]:
    """Return in words what a check finds in all rows alone, or in slices alone."""
    place = f"{check.name}, blocks of {2**bits}: "
    missing, more = full - sliced, sliced - full
    return [f"{place}slices lack {each}" for each in missing] + [f"{place}slices alone have {each}" for each in more]


def facts_of(spark: SparkSession, seeds: range, folder: Path) -> Facts:
    """Return the facts of these histories, read from files."""
    for name, table in tables(seeds).items():
        fact_path(folder, name).mkdir()
        pq.write_table(table, fact_path(folder, name) / "part-0.parquet")
    facts = read_facts(spark, folder)
    poll_steps(facts["polls"]).write.parquet(str(fact_path(folder, "poll_steps")))
    return read_facts(spark, folder)


def repeated_values(facts: Facts) -> set[str]:
    """Return the runs in which a value id was sent twice: a check that needs unique ones does not judge them."""
    rows = facts["sends"].groupBy("run_id", "value").count().where("count > 1 and value is not null")
    return {row.run_id for row in rows.select("run_id").distinct().collect()}


def findings(check: Check, facts: Facts, allowed: Mapping[str, Settings], repeated: set[str]) -> Counter[str]:
    """Return what a check finds, each as JSON, without the runs that it does not judge."""
    rows: DataFrame = check.findings(handed_to(check, facts), settings_at_once(allowed))
    texts = rows.select("run_id", F.to_json(F.struct(*rows.columns)).alias("text")).toArrow().to_pylist()
    unjudged = repeated if UNIQUE_VALUES in check.assumes else set()
    return Counter(row["text"] for row in texts if row["run_id"] not in unjudged)


def test_a_sliced_check_finds_what_it_finds_in_all_rows(judged: Judged) -> None:
    assert judged.differing[:5] == []


def test_every_sliced_check_finds_something(judged: Judged) -> None:
    assert {check.name for check in CHECKS if judged.number[check.name] < NUMBER / 200} == set()


def test_slices_leave_out_what_they_can(judged: Judged) -> None:
    assert judged.left_out[1] > 0.2
    assert judged.left_out[2] > 0.05


def test_whatever_is_planted_in_a_whole_run_is_found_in_slices(spark: SparkSession, tmp_path: Path) -> None:
    """With all evidence, of which all facts are made; and recorded histories beside."""
    planted = {name: next(filter(None, (with_it(name, seed) for seed in range(60))), None) for name in CORRUPTIONS}
    runs = {f"{number}": run for number, run in enumerate(planted.values()) if run is not None}
    assert len(runs) > len(CORRUPTIONS) - 5
    rows = pa.Table.from_pylist([run.row(run_id) for run_id, run in runs.items()], schema=to_arrow_schema(RUNS))
    pq.write_table(rows, tmp_path / "planted.parquet")
    one_table(histories_in(Path("tests/histories")), [], tmp_path / "kept.parquet")
    number: Counter[str] = Counter()
    for name, columns in {"planted": RUNS, "kept": HISTORIES}.items():
        path = tmp_path / f"{name}.parquet"
        sources = from_table(
            spark.read.schema(columns).parquet(str(path)), path.stat().st_size, tmp_path / f"{name} rows"
        )
        allowed = dict.fromkeys(pq.read_table(path, columns=["run_id"])["run_id"].to_pylist(), SETTINGS)
        with tuned(spark, 0, together=True), built_facts(sources, tmp_path / name, write=False) as facts:
            repeated = repeated_values(facts)
            for bits in (0, 1):
                stay = slices(facts, dirty_blocks(facts, bits), tmp_path / f"{name}-{bits}", bits)
                assert bits or stay["sends"].count() < facts["sends"].count()
                for check in CHECKS:
                    full = findings(check, facts, allowed, repeated)
                    assert differing(check, full, findings(check, facts | stay, allowed, repeated), bits) == []
                    number[check.name] += len(full)
    assert {check.name for check in CHECKS if not number[check.name]} == set()


def with_it(name: str, seed: int) -> Evidence | None:
    """Return the history of a seed with one thing wrong, None where it does not have what that takes."""
    run = history(seed)
    return run if CORRUPTIONS[name].plant(run) else None
