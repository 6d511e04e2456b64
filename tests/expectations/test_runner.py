"""The runner on run folders: results, Data Docs, and nothing sent anywhere."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from tests.analysis.fact_rows import Row, committed, fetched, held, led, read
from tests.analysis.protocol_rows import waited_for
from tests.verdicts import FAIL, NOT_JUDGED, PASS, UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Network:
    """The hosts that this process looked up while `watched`."""

    watched: bool = False
    hosts: list[str] = field(default_factory=list)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watched:
            return
        if event in ("socket.getaddrinfo", "socket.gethostbyname"):
            self.note(str(arguments[0]))
        elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
            self.note(str(arguments[1][0]))

    def note(self, host: str) -> None:
        try:
            is_local = ip_address(host).is_loopback
        except ValueError:
            is_local = host == "localhost"
        if not is_local:
            self.hosts.append(host)


SETTINGS = Settings(acks=frozenset({-1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=False)
LOST = [committed(5, at=(1, 2), counts_ns=2), fetched(-1, at=(3, 4), counts_ns=3)]


def write(folder: RunFolder, *rows: Row) -> None:
    """Write these rows, each as a file of its own, where the checks would have written facts."""
    for place, (name, row) in enumerate(rows):
        schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in TABLES[name].columns])
        path = folder.facts / f"{name}.parquet"
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row], schema), path / f"part-{place}.parquet")


NETWORK = Network()
sys.addaudithook(NETWORK.hook)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, dict[str, Any]]:
    """A run whose leader epochs go back and whose committed offsets are without a row."""
    from expectations.runner import run

    folder = RunFolder(tmp_path_factory.mktemp("runs") / "run-1")
    write(folder, led(1, 3, zxid=5), led(1, 2, zxid=6))
    NETWORK.watched = True
    results = {result.suite: result for result in run(folder, SETTINGS)}
    NETWORK.watched = False
    return folder, results


def test_a_broken_expectation_fails_its_suite_and_is_told_in_a_sentence(
    judged: tuple[RunFolder, dict[str, Any]],
) -> None:
    result = judged[1]["leader_epochs"]
    assert (result.verdict, result.evaluated, result.unsuccessful) == (FAIL, 6, 1)
    (failure,) = result.failures
    assert failure.startswith("leader_epoch must strictly increase in the order of zxid, for each run_id, topic")
    assert ", leader_epoch 2, " in failure


def test_a_fact_without_rows_is_no_evidence(judged: tuple[RunFolder, dict[str, Any]]) -> None:
    result = judged[1]["committed_offsets"]
    assert (result.verdict, result.evaluated) == (UNKNOWN, 0)
    assert result.reason == "nothing to judge: no rows in committed_offsets"


def test_that_nothing_was_found_is_no_evidence_where_nothing_was_judged(tmp_path: Path) -> None:
    from expectations.runner import run

    folder = RunFolder(tmp_path / "run-1")
    folder.findings.mkdir(parents=True)
    assert {result.verdict for result in run(folder, SETTINGS)} == {UNKNOWN}
    write(folder, led(1, 3, zxid=5))
    assert {result.suite: result.verdict for result in run(folder, SETTINGS)}["findings"] is PASS


def test_a_table_that_a_system_does_not_tell_whole_is_not_judged_whatever_is_in_it(tmp_path: Path) -> None:
    from expectations.runner import run

    folder = RunFolder(tmp_path / "run-1")
    write(folder, led(1, 3, zxid=5), led(1, 2, zxid=6))
    results = {result.suite: result for result in run(folder, SETTINGS, not_judged={"leader_epochs": "no epochs"})}
    assert (results["leader_epochs"].verdict, results["leader_epochs"].reason) == (NOT_JUDGED, "no epochs")


def test_results_are_kept_as_json(judged: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, results = judged
    stored = json.loads(folder.expectations.read_text(encoding="utf-8"))
    assert stored == [result.model_dump(mode="json") for result in results.values()]


def test_data_docs_show_the_sentence_and_open_without_a_network(judged: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, _ = judged
    pages = list(folder.data_docs.rglob("*.html"))
    texts = {page.relative_to(folder.data_docs).parts[0]: page.read_text(encoding="utf-8") for page in pages}
    assert set(texts) == {"index.html", "expectations", "validations"}
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", texts["validations"]))
    assert "leader_epoch must strictly increase in the order of zxid" in plain
    assert "run-1" in texts["index.html"]
    for text in texts.values():
        assert not re.search(r"<(script|link|img)\b[^>]*(src|href)=[\"'](https?:)?//", text)


def test_links_of_the_index_lead_to_pages(judged: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, _ = judged
    links = re.findall(r'href="([^"]+)"', (folder.data_docs / "index.html").read_text(encoding="utf-8"))
    assert len(links) >= 3
    assert all((folder.data_docs / link).is_file() for link in links)


def test_nothing_is_sent_anywhere(judged: tuple[RunFolder, dict[str, Any]]) -> None:
    assert NETWORK.hosts == []


PAST_THE_END = [committed(6, at=(1, 2), process="c1"), waited_for([1, 2], 5), waited_for([1, 2], 2)]

RUNS: dict[str, tuple[list[Row], dict[str, Any], list[str], dict[str, str]]] = {
    "a reader that committed more than it can have read fails": (
        [*PAST_THE_END, led(1, 0), read("a", 0, process="c1"), read("b", 1, process="c1")],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "FAIL", "findings": "UNKNOWN"},
    ),
    "a client that reads nothing may commit any offset": (
        [*PAST_THE_END, led(1, 0), read("a", 0, process="c2")],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "PASS", "findings": "UNKNOWN"},
    ),
    "a suite that holds passes, and one without rows is judged where a check needs them": (
        [led(1, 0), committed(5, at=(1, 2), counts_ns=2)],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "PASS", "findings": "UNKNOWN"},
    ),
    "a suite without rows that no check needs is not judged": (
        [led(1, 0)],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "findings": "UNKNOWN"},
    ),
    "a committed offset that is gone fails": (
        [*LOST, led(1, 0)],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "FAIL", "findings": "UNKNOWN"},
    ),
    "a committed offset that a power loss may take is expected": (
        [*LOST, led(1, 0)],
        {"power_loss": True},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "PASS, expected", "findings": "UNKNOWN"},
    ),
    "a committed offset that an allowed unclean election took is expected": (
        [*LOST, led(1, 0, topic="__consumer_offsets", unclean=True, unclean_allowed=True)],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "PASS, expected", "findings": "UNKNOWN"},
    ),
    "an unclean election of another topic takes no committed offset": (
        [*LOST, led(1, 0, unclean=True, unclean_allowed=True)],
        {},
        ["I1"],
        {"leader_epochs": "PASS", "committed_offsets": "FAIL", "findings": "UNKNOWN"},
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_what_the_suites_make_of_a_run(case: str, tmp_path: Path) -> None:
    from expectations.runner import run

    rows, settings, checks, verdicts = RUNS[case]
    folder = RunFolder(tmp_path / "run-2")
    write(folder, *rows)
    results = run(folder, replace(SETTINGS, **settings), checks)
    assert {one.suite: one.verdict.name + (", expected" if one.expected else "") for one in results} == verdicts
    assert all("1 rows break this." in sentence for one in results for sentence in one.expected)


def test_large_tables_are_judged_by_spark_as_small_ones_by_pandas(
    apache_spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expectations import tables
    from expectations.runner import run

    monkeypatch.setattr(tables, "SMALL_ROWS", 0)
    folder = RunFolder(tmp_path / "run-3")
    write(folder, held(1, "a", 0), held(2, "b", 0), *PAST_THE_END, read("a", 0, process="c1"))
    offsets, records = (one for one in run(folder, SETTINGS, ["I1"]) if one.evaluated)
    assert (offsets.verdict, offsets.evaluated, offsets.unsuccessful) == (FAIL, 4, 1)
    assert (records.verdict, records.evaluated, records.unsuccessful) == (FAIL, 4, 1)
    assert records.failures[0].startswith("There must be one digest at each offset of one leader_epoch")


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("script", "imported"),
    [
        pytest.param("import expectations.runner", set(), id="nothing before a suite runs"),
        pytest.param("import expectations.runner as r; r.import_library()", {"great_expectations"}, id="it alone"),
        pytest.param(
            "import sqlalchemy, expectations.runner as r; r.import_library()",
            {"great_expectations", "sqlalchemy"},
            id="what is there already stays",
        ),
        pytest.param(
            "import expectations.runner as r; r.import_library(); import sqlalchemy, pyspark.ml",
            {"great_expectations", "sqlalchemy", "pyspark.ml"},
            id="what was passed over can be imported later",
        ),
        pytest.param(
            "from harness.judging.judge import suites_imported_meanwhile as m\nwith m(): pass",
            {"great_expectations"},
            id="by a thread, which is waited for",
        ),
    ],
)
def test_what_is_imported_for_the_suites(script: str, imported: set[str]) -> None:
    heavy = ("great_expectations", "sqlalchemy", "pyspark.ml", "jsonschema.validators")
    script += f"\nimport sys; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=300, capture_output=True, text=True)
    assert set(done.stdout.split()) == imported


def test_a_table_that_only_spark_can_hold_is_unknown_where_there_is_no_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expectations.runner import run
    from expectations.tables import HELD_ROWS

    monkeypatch.setenv("CHAOS_ENGINE", "sail")
    folder = RunFolder(tmp_path / "run-1")
    write(folder, led(1, 2, zxid=5))
    names = [(column.name, ARROW_TYPES[column.type]) for column in TABLES["high_watermarks"].columns]
    path = folder.facts / "high_watermarks.parquet"
    path.mkdir()
    rows = pa.table({name: pa.nulls(HELD_ROWS + 1, type_) for name, type_ in names})
    pq.write_table(rows, path / "part-0.parquet")
    results = {result.suite: result for result in run(folder, SETTINGS)}
    large = [result for result in results.values() if "only Apache Spark can judge" in result.reason]
    assert [(each.verdict, each.evaluated) for each in large] == [(UNKNOWN, 0)] * len(large)
    assert large
    assert large[0].reason == "high_watermarks has 5,000,001 rows, which only Apache Spark can judge (--engine spark)"
