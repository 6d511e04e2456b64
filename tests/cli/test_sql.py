"""Questions of a person's own, put to judged runs."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.analysis.sql import FINDINGS, MEANINGS, OVERVIEW
from harness.analysis.tables.schemas import TABLES
from harness.store.folder import RunFolder
from harness.system.engine import Engine
from tests.shared import ROOT

pytestmark = pytest.mark.spark


@pytest.fixture
def ask(chaos: Any, spark: SparkSession, folder: RunFolder, add_findings: Callable[..., None]) -> Callable[..., Any]:
    for view in spark.sql("show tables").collect():  # of an earlier question; the catalog needs code generation
        spark.catalog.dropTempView(view.tableName)
    folder.plan.touch()
    add_findings({"check": "I10", "severity": "violation", "message": "seven is lost", "topic": "orders"})
    return lambda *arguments: chaos("sql", str(folder.root), *arguments)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        pytest.param(
            "select outcome, count(*) n from sends group by outcome order by outcome",
            [{"outcome": "fail", "n": 1}, {"outcome": "info", "n": 1}, {"outcome": "ok", "n": 111}],
            id="facts",
        ),
        pytest.param(
            "select `check`, message from findings", [{"check": "I10", "message": "seven is lost"}], id="findings"
        ),
        pytest.param("SELECT COUNT(*) n FROM SENDS", [{"n": 113}], id="a name in capitals"),
        pytest.param("with s as (select 1 from `sends`) select count(*) n from s", [{"n": 113}], id="one in quotes"),
        pytest.param("select count(*) n\nfrom identifier('sen' || 'ds')", [{"n": 113}], id="a name that is made"),
        pytest.param("select * from truncations", [], id="a fact without rows"),
        pytest.param(
            "select * from tables where table = 'sends'",
            [{"table": "sends", "a_row_is": "one record that a client tried to write", "rows": 113}],
            id="what there is",
        ),
        pytest.param(
            "select * from columns where table = 'sends' and name = 'acks'",
            [{"table": "sends", "name": "acks", "type": "int", "about": "0, 1 or -1 for all"}],
            id="what a column holds",
        ),
    ],
)
def test_it_answers(ask: Any, query: str, rows: list[dict[str, Any]]) -> None:
    status, out, _ = ask(query, "--json")
    assert (status, json.loads(out)) == (0, rows)


def test_whoever_wants_to_see_the_tables_sees_all(ask: Any) -> None:
    status, out, _ = ask("show tables", "--rows", "200", "--json")
    assert status == 0
    assert {*TABLES, FINDINGS, OVERVIEW, MEANINGS} <= {row["tableName"] for row in json.loads(out)}


def test_a_table_ends_with_what_was_asked_for_and_says_that_there_is_more(ask: Any) -> None:
    status, out, err = ask("select index, outcome from sends", "--rows", "2")
    assert (status, out.count("│ ok")) == (0, 2)
    assert "there are more rows; --rows 20" in err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("selekt", "selekt", id="no query"),
        pytest.param("select * from nosuch", "nosuch", id="no such table"),
        pytest.param("select 1/0", " by zero", id="one that fails on the way"),
    ],
)
def test_a_query_that_cannot_be_carried_out_is_refused_in_a_sentence(ask: Any, query: str, message: str) -> None:
    status, _, err = ask(query)
    assert status == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_columns_of_one_name_are_shown_and_are_no_json(ask: Any) -> None:
    assert ask("select 1 a, 2 a")[0] == 0
    status, out, err = ask("select 1 a, 2 a", "--json")
    assert (status, out) == (2, "")
    assert "different names of columns; rename them with `as`: a, a" in err


def test_a_damaged_fact_is_named(ask: Any, folder: RunFolder) -> None:
    damaged = next((folder.facts / "sends.parquet").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    status, _, err = ask("select * from sends")
    assert status == 2
    assert "chaos rejudge writes it again" in err


@pytest.mark.whole
def test_sail_answers_too(ask: Any, folder: RunFolder) -> None:
    query = "select s.outcome, count(*) n from sends s, tables t where t.table = 'sends' group by 1 order by 1"
    command = [sys.executable, "-m", "harness", "sql", str(folder.root), query, "--engine", Engine.SAIL, "--json"]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    counts = [("fail", 1), ("info", 1), ("ok", 111)]
    assert json.loads(ended.stdout) == [{"outcome": name, "n": count} for name, count in counts]


def test_folders_are_called_what_their_owner_likes(chaos: Any, ask: Any, folder: RunFolder) -> None:
    other = folder.root.rename(folder.root.with_name("run[1]"))
    status, out, _ = chaos("sql", str(other), "select count(*) n from sends", "--json")
    assert (status, json.loads(out)) == (0, [{"n": 113}])


def test_a_run_that_was_not_judged_is_named_with_the_command_that_judges_it(
    chaos: Any, ask: Any, folder: RunFolder
) -> None:
    other = RunFolder(folder.root.with_name("other"))
    other.root.mkdir()
    other.plan.touch()
    message = f"{other.root} was not judged: chaos rejudge {other.root}\n"
    status, _, err = chaos("sql", str(other.root), "show tables")
    assert (status, err) == (2, message)
    status, out, err = chaos("sql", str(folder.root), str(other.root), "select count(*) n from sends", "--json")
    assert (status, json.loads(out), f"left out: {message}" in err) == (0, [{"n": 113}], True)
