"""A run in progress as Prometheus sees it, and the dashboard that draws it."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest

from harness.errors import ClusterError
from harness.report.openmetrics import served
from harness.store.folder import RunFolder
from tests.report.test_live import add, driven, sends, step, znode

__all__ = ["driven"]
DASHBOARD = Path(__file__).parents[2] / "docs" / "examples" / "prometheus" / "grafana-dashboard.json"


def scraped(folder: RunFolder) -> dict[str, float]:
    """Return each sample of one scrape, without the labels that all have."""
    with served(folder, "smoke", 0) as port, urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if match := re.fullmatch(r"(chaos_\w+)\{(.*)\} (\S+)", line):
            labels = [each for each in match[2].split(",") if not each.startswith(("run=", "scenario="))]
            found[" ".join([match[1], *labels])] = float(match[3])
    return found


def test_a_scrape_counts_sends_faults_partitions_and_brokers(driven: RunFolder) -> None:
    add(driven.operations_of("producer-1"), *sends("ok", 5), *sends("fail", 2))
    add(driven.journal, step(0, "intended"), step(0, "confirmed"))
    add(
        driven.zookeeper,
        znode("/brokers/ids/0"),
        znode("/brokers/ids/1"),
        znode("/brokers/ids/1", type_="delete"),
        znode("/brokers/topics/orders", {"partitions": {"0": [0, 1], "1": [0, 1]}}),
        znode("/brokers/topics/orders/partitions/0/state", {"leader": 0, "isr": [0, 1]}),
        znode("/brokers/topics/orders/partitions/1/state", {"leader": -1, "isr": [1]}),
    )
    assert scraped(driven) == {
        'chaos_phase phase="drive"': 1,
        'chaos_faults_in_force fault="kill"': 1,
        'chaos_sends_total outcome="acknowledged"': 5,
        'chaos_sends_total outcome="unknown"': 0,
        'chaos_sends_total outcome="failed"': 2,
        "chaos_brokers_registered": 1,
        "chaos_partitions": 2,
        "chaos_partitions_without_leader": 1,
        "chaos_partitions_isr_not_full": 1,
    }


def test_a_port_that_is_taken_is_a_clear_error(driven: RunFolder) -> None:
    with (
        served(driven, "smoke", 0) as port,
        pytest.raises(ClusterError, match=f"metrics at 127.0.0.1:{port}: Address already in use"),
        served(driven, "smoke", port),
    ):
        pass


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(driven: RunFolder) -> None:
    add(driven.journal, step(0, "intended"), step(0, "confirmed"))
    text = DASHBOARD.read_text(encoding="utf-8")
    samples = {name.partition(" ")[0]: name for name in scraped(driven)}
    assert set(re.findall(r"chaos_\w+", text)) <= samples.keys()
    dashboard = json.loads(text)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            labels |= {each for named in re.findall(r"by \((.*?)\)", target["expr"]) for each in named.split(", ")}
            (metric,) = re.findall(r"chaos_\w+", target["expr"])
            assert labels <= {"run", "scenario", *re.findall(r"(\w+)=", samples[metric])}, target
    (faults,) = dashboard["annotations"]["list"]
    assert faults["target"]["expr"] == faults["expr"], "releases of Grafana read one or the other"
