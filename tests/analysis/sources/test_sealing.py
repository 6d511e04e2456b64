"""Whatever evidence is read from, lines or the tables that it was sealed with, all facts are the same.

And what is not in perfect order is read from its lines, so that nothing of what is wrong with it is lost.
"""

import itertools
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from harness.analysis.engine.session import tuned
from harness.analysis.facts.build import built_facts, fact_path
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import read
from harness.analysis.sources.sealing.sealed import sealed_tables
from harness.store.folder import RunFolder
from harness.sweep.recorded import histories_in
from tests.analysis.corruptions import CORRUPTIONS
from tests.analysis.model_run import history
from tests.analysis.run_folders import lines_of, sealed_run
from tests.sampling import sampled

pytestmark = [pytest.mark.spark, pytest.mark.whole]

HISTORIES = Path(__file__).parents[2] / "histories"
Rows = dict[str, Counter[Any]]
"""How often each row is there, by fact."""


def recorded(path: Path) -> dict[str, dict[str, list[bytes]]]:
    """Return the lines of the one row of a table that a sweep left."""
    (row,) = parquet.read_table(path).to_pylist()
    return {
        kind: {place: [f"{line}\n".encode() for line in lines if line] for place, lines in row[kind]}
        for kind in row.keys() & SCHEMAS
    }


def unsealed(folder: RunFolder, root: Path) -> RunFolder:
    """Return a copy that only Spark reads."""
    ignored = shutil.ignore_patterns("seal.json", "tables")
    return RunFolder(Path(shutil.copytree(folder.root, root / folder.run_id, ignore=ignored)))


def hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(hashable, value))
    return tuple((name, hashable(each)) for name, each in value.items()) if isinstance(value, dict) else value


def facts_of(spark: SparkSession, folders: list[RunFolder], root: Path, *, small: bool = True) -> dict[str, Rows]:
    """Return all facts of each run, which are made at once; through files, as those of a large run, if not `small`."""
    sources = replace(read(spark, folders, root / "rows"), together=small)
    rows: dict[str, Rows] = {folder.run_id: {} for folder in folders}
    with tuned(spark, sources.size_bytes, together=sources.together), built_facts(sources, root) as facts:
        for fact, frame in facts.items():
            for row in frame.toArrow().to_pylist():
                rows[row["run_id"]].setdefault(fact, Counter())[hashable(row)] += 1
    return rows


@dataclass(frozen=True)
class Both:
    by_lines: dict[str, Rows]
    by_tables: dict[str, Rows]
    kinds: dict[str, set[str]]
    """What evidence of each run was read from tables."""
    intact: RunFolder
    """The first of the runs."""


def runs(root: Path) -> list[RunFolder]:
    """Write the histories of models, one with each corruption drawn, and those of its that sweeps have left."""
    models = {seed: history(seed) for seed in sampled(range(12), 3)}
    folders = [sealed_run(root, f"intact {seed}", lines_of(model)) for seed, model in models.items()]
    for number, (name, corruption) in sampled(list(enumerate(CORRUPTIONS.items())), 12):
        seeds = itertools.chain(range(number % 12, 12), range(number % 12), range(12, 60))
        for seed in seeds:
            copy = (models.get(seed) or history(seed)).copy()
            if corruption.plant(copy):
                folders.append(sealed_run(root, name, lines_of(copy)))
                break
    histories = sampled(list(histories_in(HISTORIES)), 2)
    return folders + [sealed_run(root, f"kept {each.name}", recorded(each.table)) for each in histories]


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Both:
    root = tmp_path_factory.mktemp("sealed")
    folders = runs(root / "sealed")
    plain = [unsealed(folder, root / "plain") for folder in folders]
    return Both(
        by_lines=facts_of(spark, plain, root / "of-lines"),
        by_tables=facts_of(spark, folders, root / "of-tables"),
        kinds={folder.run_id: set(sealed_tables(folder)) for folder in folders},
        intact=folders[0],
    )


def test_all_facts_of_tables_are_those_of_lines(both: Both) -> None:
    other = {
        run_id: [fact for fact in rows | both.by_tables[run_id] if rows.get(fact) != both.by_tables[run_id].get(fact)]
        for run_id, rows in both.by_lines.items()
    }
    assert {run_id: facts for run_id, facts in other.items() if facts} == {}


def test_an_intact_history_has_tables_of_everything(both: Both) -> None:
    whole = {run_id for run_id, kinds in both.kinds.items() if kinds == set(SCHEMAS)}
    assert {run_id for run_id in both.kinds if run_id.startswith(("intact", "kept"))} <= whole


def test_evidence_with_a_problem_has_no_tables(both: Both) -> None:
    kinds = {"operations": "operations", "value ids": "operations", "brokers": "state_changes", "replicas": "replicas"}
    for run_id, facts in both.by_lines.items():
        for _, (_, subject), *_ in facts.get("evidence", Counter()):
            kind = next((kind for place, kind in kinds.items() if subject.startswith(place)), subject.split(".")[0])
            assert kind not in both.kinds[run_id], f"{run_id}: {subject}"


@pytest.mark.rotating(1)
@pytest.mark.parametrize("form", ["lines", "tables"])
def test_facts_of_a_large_run_are_the_same_and_are_written(
    spark: SparkSession, both: Both, tmp_path: Path, form: str
) -> None:
    folder = both.intact if form == "tables" else unsealed(both.intact, tmp_path / "plain")
    facts = facts_of(spark, [folder], tmp_path / "facts", small=False)
    assert facts == {folder.run_id: both.by_lines[folder.run_id]}
    for fact, rows in facts[folder.run_id].items():
        written = parquet.read_table(fact_path(tmp_path / "facts", fact)).to_pylist()
        assert Counter(map(hashable, written)) == rows, fact
