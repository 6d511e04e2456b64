"""A cluster that runs already is described once, in a file of its own, and named by a scenario or an option."""

from pathlib import Path

import pytest

from harness.errors import ScenarioError
from harness.scenario.external import claimed, place_of
from harness.scenario.file import load_scenario, read_scenario, scenario_yaml
from harness.scenario.source import options

CLUSTER = """\
id: j9KTpdNPRMKxMmSK201HcQ
bootstrap_servers: one:9092,other:9092
controllers: {1: one:9093}
brokers: [{id: 1, host: one}, {id: 2, host: other}]
properties: {min.insync.replicas: 2}
client:
  security.protocol: SASL_SSL
  sasl.username: me
  sasl.password: ${env:PW}
  ssl.ca.location: ca.pem
commands: {pause: "ssh {host} stop", resume: "ssh {host} cont", data: "copy {prefix} {into}"}
"""
SCENARIO = """\
name: mine
description: A pause
cluster: {}
topics: [{{name: orders, replication_factor: 2}}]
workloads: [{{kind: produce-consume}}]
faults:
  - {{kind: pause, at_s: 1, duration_s: 3, target: 2}}
  - {{kind: expire-session, at_s: 9, only_with_zookeeper: true}}
duration_s: 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scenario and the file of its cluster."""
    (tmp_path / "mine.yaml").write_text(SCENARIO.format("clusters/ours.yaml"), encoding="utf-8")
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "ours.yaml").write_text(CLUSTER, encoding="utf-8")
    return tmp_path


def test_it_is_found_from_where_the_scenario_is_and_becomes_part_of_it(folder: Path) -> None:
    scenario = load_scenario(str(folder / "mine.yaml"))
    assert (scenario.system, scenario.driver, scenario.cluster.brokers) == ("external", "external", 2)
    assert scenario.cluster.properties == {"min.insync.replicas": "2"}
    assert [fault.kind for fault in scenario.faults] == ["pause"], "the cluster has no ZooKeeper"
    place = place_of(claimed(scenario))
    assert place is not None
    assert place.client["ssl.ca.location"] == str(folder / "clusters" / "ca.pem")
    assert place.client["sasl.password"] == "${env:PW}"
    assert read_scenario(scenario_yaml(scenario), "s.yaml") == scenario, "a run folder needs no file beside it"


def test_an_option_takes_its_place_and_others_change_it(folder: Path) -> None:
    file = str(folder / "clusters" / "ours.yaml")
    sets = ["cluster.external.timeout_s=7", "topics=[{name: t, replication_factor: 2}]", "faults=[]"]
    scenario = load_scenario("smoke", options(None, [], sets, cluster=file))
    assert scenario.cluster.external is not None
    assert (scenario.system, scenario.cluster.external.timeout_s) == ("external", 7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("id: j9", "ids: j9", "ours.yaml:1: ids: unknown key (did you mean id?)", id="a key"),
        pytest.param("controllers:", "zookeeper: k:2181\ncontrollers:", "has either zookeeper or", id="metadata"),
        pytest.param("${env:PW}", "pw", "ours.yaml:6: client: sasl.password is a secret", id="a secret"),
        pytest.param("sasl.username", "sasl.user", "client: unknown client setting sasl.user (did", id="a setting"),
        pytest.param(CLUSTER, "[]", "ours.yaml:1: must be a mapping of keys; a cluster file starts", id="a list"),
        pytest.param("id: j9KTpdNPRMKxMmSK201HcQ", "id: [", "ours.yaml:3: not YAML", id="no YAML"),
    ],
)
def test_what_is_wrong_with_it_is_named_with_its_own_lines(folder: Path, old: str, new: str, message: str) -> None:
    text = CLUSTER.replace(old, new)
    assert text != CLUSTER
    (folder / "clusters" / "ours.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        load_scenario(str(folder / "mine.yaml"))
    assert message in str(refused.value)
    assert "not 'pw'" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "mine.yaml").write_text(SCENARIO.format("none.yaml"), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"mine.yaml:3: cluster: .*none.yaml: no such file"):
        load_scenario(str(folder / "mine.yaml"))
