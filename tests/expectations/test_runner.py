"""The runner on run folders: results, Data Docs, and nothing sent anywhere."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import pytest

from harness.store import RunFolder
from tests.analysis.fact_rows import committed, led, table_of

pytestmark = pytest.mark.spark


@dataclass
class Network:
    """What this process asked of the network while `watched`."""

    watched: bool = False
    asked: list[str] = field(default_factory=list)

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
            self.asked.append(host)


NETWORK = Network()
sys.addaudithook(NETWORK.hook)


@pytest.fixture(scope="module")
def judged(spark, tmp_path_factory) -> tuple[RunFolder, dict[str, Any]]:
    """A run whose leader epochs go back and whose committed offsets are without a row."""
    from expectations.runner import run
    from harness.analysis.facts.build import fact_path

    folder = RunFolder(tmp_path_factory.mktemp("runs") / "run-1")
    rows = [row for _, row in (led(1, 3, zxid=5), led(1, 2, zxid=6))]
    table_of(spark, "leader_epochs", rows).write.parquet(str(fact_path(folder.facts, "leader_epochs")))
    NETWORK.watched = True
    results = {result.suite: result for result in run(folder)}
    NETWORK.watched = False
    return folder, results


def test_a_broken_expectation_fails_its_suite_and_is_told_in_a_sentence(judged):
    result = judged[1]["leader_epochs"]
    assert (result.verdict, result.evaluated, result.unsuccessful) == ("FAIL", 4, 1)
    (failure,) = result.failures
    assert failure.startswith("leader_epoch must strictly increase in the order of zxid, for each run_id, topic")
    assert '"leader_epoch": 2' in failure


def test_a_fact_without_rows_is_no_evidence(judged):
    result = judged[1]["committed_offsets"]
    assert (result.verdict, result.evaluated) == ("UNKNOWN", 0)


def test_results_are_kept_as_json(judged):
    folder, results = judged
    stored = json.loads(folder.expectations.read_text(encoding="utf-8"))
    assert stored == [result.model_dump(mode="json") for result in results.values()]


def test_data_docs_show_the_sentence_and_open_without_a_network(judged):
    folder, _ = judged
    pages = list(folder.data_docs.rglob("*.html"))
    texts = {page.relative_to(folder.data_docs).parts[0]: page.read_text(encoding="utf-8") for page in pages}
    assert set(texts) == {"index.html", "expectations", "validations"}
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", texts["validations"]))
    assert "leader_epoch must strictly increase in the order of zxid" in plain
    assert "run-1" in texts["index.html"]
    for text in texts.values():
        assert not re.search(r"<(script|link|img)\b[^>]*(src|href)=[\"'](https?:)?//", text)


def test_links_of_the_index_lead_to_pages(judged):
    folder, _ = judged
    links = re.findall(r'href="([^"]+)"', (folder.data_docs / "index.html").read_text(encoding="utf-8"))
    assert len(links) >= 3
    assert all((folder.data_docs / link).is_file() for link in links)


def test_nothing_is_sent_anywhere(judged):
    assert NETWORK.asked == []


def test_a_suite_that_holds_passes(spark, tmp_path):
    from expectations.runner import run
    from harness.analysis.facts.build import fact_path

    folder = RunFolder(tmp_path / "run-2")
    for name, row in (led(1, 0), committed(5, at=(1, 2), counts_ns=2)):
        table_of(spark, name, [row]).write.parquet(str(fact_path(folder.facts, name)))
    assert [(result.suite, result.verdict, result.failures) for result in run(folder)] == [
        ("leader_epochs", "PASS", []),
        ("committed_offsets", "PASS", []),
    ]


def test_great_expectations_is_imported_when_a_suite_runs_and_not_before():
    script = "import sys, expectations.runner; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
