"""Which release a broker can be upgraded to, what it is configured with then, and what is read of its log."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.broker_properties import DriverProperties
from harness.cluster.layout import BrokerPorts, ClusterLayout
from harness.cluster.releases import Writer
from harness.cluster.systems.kafka.log_reader import wording
from harness.cluster.systems.kafka.releases import FORMAT, PROTOCOL, kept_back, release_of
from harness.cluster.systems.kafka.system import LOGGING_NAME
from harness.cluster.systems.system import System, all_systems, system_named
from harness.errors import ScenarioError
from harness.properties_file import ENCODING, properties_in
from harness.store.history import read_jsonl
from tests.cluster.systems.test_log_reader import APPENDED, LEADER, REGISTERED, START
from tests.cluster.systems.test_systems import broker

OLD, NEW = "kafka:3.3.2", "kafka:3.9.1"
UNCLEAN = "unclean.leader.election.enable"
VERSION = "2026-11-22 21:59:23,694 INFO org.apache.kafka.common.utils.AppInfoParser: Kafka version: {}\n"


@pytest.mark.parametrize(
    ("system", "release", "reason"),
    [
        pytest.param("python", "3.9.1", "python has one release only, and nothing to upgrade to", id="our broker"),
        pytest.param("kafka:3.9.1", "3.9.1", "3.9.1 is no later release than 3.9.1", id="the release that it is"),
        pytest.param("kafka:3.9.1", "2.8.2", "no broker is downgraded", id="an earlier release"),
        pytest.param("kafka:0.11.0.3", "0.10.2.2", "0.10.2.2 is no later release than 0.11.0.3", id="by numbers"),
        pytest.param(
            "kafka:3.3.2", "4.4.0", "4.4.0 has no ZooKeeper, where brokers of 3.3.2 keep their metadata; releases to"
            " upgrade to: 3.7.1, 3.9.1", id="one without ZooKeeper"
        ),
        pytest.param("kafka:3.9.1", "4.4.0", "releases to upgrade to: none", id="the last one with ZooKeeper"),
        pytest.param("kafka:3.3.2", "3.9", "no Apache Kafka '3.9'; known releases: 0.10.2.2,", id="no release"),
        pytest.param("external", "3.9.1", "brokers of an existing cluster are never", id="an existing cluster"),
    ],
)  # fmt: skip
def test_a_release_that_no_broker_can_be_upgraded_to_is_refused(system: str, release: str, reason: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        system_named(system).upgraded(release)
    assert reason in str(refused.value)


def pairs() -> list[tuple[System, System]]:
    return [(each, each.upgraded(release)) for each in all_systems() for release in each.upgrades()]


def test_a_later_release_tells_what_an_earlier_one_does_so_that_it_is_judged_by_what_the_cluster_was_started_as() -> (
    None
):
    assert {(old.name, new.name) for old, new in pairs()} >= {("kafka:0.10.2.2", NEW), (OLD, NEW)}
    for old, new in pairs():
        assert old.emits <= new.emits, (old.name, new.name)
        assert {field for field in new.missing_fields if field.partition(".")[0] in old.emits} <= old.missing_fields, (
            old.name,
            new.name,
        )


@pytest.mark.parametrize(
    ("cluster", "properties"),
    [
        pytest.param("3.3.2", {PROTOCOL: "3.3"}, id="two parts of the version"),
        pytest.param("2.4.1", {PROTOCOL: "2.4"}, id="a format that needs no setting"),
        pytest.param("2.3.1", {PROTOCOL: "2.3", FORMAT: "2.3"}, id="a format that is stated"),
        pytest.param("0.10.2.2", {PROTOCOL: "0.10.2", FORMAT: "0.10.2"}, id="three parts of an early version"),
        pytest.param("4.4.0", {}, id="a quorum that sees to it itself"),
    ],
)
def test_an_upgraded_broker_goes_on_as_the_cluster_does(cluster: str, properties: dict[str, str]) -> None:
    assert kept_back(release_of(cluster)) == properties


def configured(root: Path, requested: dict[str, str], system: str = OLD) -> ClusterLayout:
    layout = ClusterLayout(
        root=root,
        run_id="r",
        driver="process",
        system=system,
        zookeeper={},
        brokers={0: BrokerPorts(client=100, peer=200)},
        planted_bugs=(),
    )
    driver = DriverProperties(client_address="h:100", peer_address="h:200", log_dir="/data", zookeeper_connect="h:300")
    system_named(system).configure(layout, 0, requested, driver)
    return layout


@pytest.mark.parametrize(
    ("requested", "spoken"),
    [
        pytest.param({}, "3.3", id="nothing is asked for"),
        pytest.param({PROTOCOL: "2.8"}, "2.8", id="a scenario that has a protocol of its own"),
    ],
)
def test_the_rest_of_its_properties_stays_and_it_logs_what_the_later_release_can(
    tmp_path: Path, requested: dict[str, str], spoken: str
) -> None:
    layout = configured(tmp_path, {"num.io.threads": "3", "log.dir.note": "a\\b", **requested})
    path = layout.config_file(0)
    before = properties_in(path.read_text(encoding=ENCODING))
    system_named(NEW).configure_again(layout, 0)
    assert properties_in(path.read_text(encoding=ENCODING)) == {**before, PROTOCOL: spoken}
    assert "kafka.request.logger" in path.with_name(LOGGING_NAME).read_text(encoding="utf-8")
    system_named(OLD).configure_again(layout, 0)
    assert properties_in(path.read_text(encoding=ENCODING)) == {**before, PROTOCOL: spoken}
    assert "kafka.request.logger" not in path.with_name(LOGGING_NAME).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lines", "release"),
    [
        pytest.param(VERSION.format("3.9.1"), "3.9.1", id="one that says it"),
        pytest.param(
            VERSION.format("3.3.2") + VERSION.format("3.9.1") + f"{START}\n", "3.9.1", id="the last one counts"
        ),
        pytest.param(
            VERSION.format("1.1.1").replace("version:", "version :"), "1.1.1", id="as earlier releases say it"
        ),
        pytest.param(VERSION.format("3.9.1").replace("version", "commitId"), "", id="a line beside it"),
        pytest.param(VERSION.format("3.9.1").replace("AppInfoParser", "Other"), "", id="a line of another logger"),
        pytest.param(f"{START}\n", "", id="none that says it"),
    ],
)
def test_a_process_says_which_release_it_is(lines: str, release: str) -> None:
    assert system_named(OLD).release_in(lines.encode()) == release


def test_nothing_says_so_of_a_system_without_releases() -> None:
    assert [system_named(name).release_in(VERSION.format("3.9.1").encode()) for name in ("python", "external")] == [
        "",
        "",
    ]


LED_IN_ANOTHER_WAY = LEADER.replace(" with topic id Some(bFV-Q8sqR2iGdZWuXB0LBQ)", " and so on")


@pytest.mark.parametrize(
    ("first", "then", "kinds", "remarks"),
    [
        pytest.param(
            [START, REGISTERED, LEADER],
            [START, REGISTERED, LEADER, APPENDED],
            ["broker_start", "broker_registered", "become_leader"] * 2,
            [],
            id="lines of the later one alone are left out",
        ),
        pytest.param(
            [START, APPENDED],
            [START],
            ["broker_start"] * 2,
            [],
            id="what the earlier one words likewise is no event of its",
        ),
        pytest.param(
            [START, LEADER],
            [START, APPENDED.replace("and messages", "of")],
            ["broker_start", "become_leader", "broker_start"],
            [],
            id="lines of the later one alone may have any wording",
        ),
        pytest.param(
            [START, LED_IN_ANOTHER_WAY],
            [START, LED_IN_ANOTHER_WAY],
            ["broker_start"] * 2,
            ["2 lines of state.change.logger could not be understood"],
            id="what either words in another way is a remark",
        ),
    ],
)
def test_each_part_of_a_log_is_read_as_the_release_words_it_that_wrote_it(
    tmp_path: Path, first: list[str], then: list[str], kinds: list[str], remarks: list[str]
) -> None:
    begun = sum(len(line) + 1 for line in first)
    one = replace(broker(tmp_path, *first, *then), writers=(Writer(0, OLD), Writer(begun, NEW)))
    assert system_named(OLD).gather(one) == remarks
    lines = list(read_jsonl(one.state_change_log))
    assert [line["ev"] for line in lines] == kinds
    assert len({line["inc"] for line in lines}) == 2


def test_an_early_wording_is_read_before_a_change_and_a_late_one_after_it(tmp_path: Path) -> None:
    early = REGISTERED.partition(", czxid")[0]
    one = replace(
        broker(tmp_path, START, early, START, REGISTERED),
        writers=(Writer(0, "kafka:1.1.1"), Writer(len(START) + len(early) + 2, "kafka:2.4.1")),
    )
    assert system_named("kafka:1.1.1").gather(one) == []
    assert [line["ev"] for line in read_jsonl(one.state_change_log)] == ["broker_start", "broker_registered"] * 2
    by_one = replace(one, writers=())
    assert system_named("kafka:2.4.1").gather(by_one) == ["1 lines of kafka.zk.KafkaZkClient could not be understood"]


def test_of_an_upgraded_broker_all_is_read_that_its_cluster_tells_and_nothing_else() -> None:
    for old, new in pairs():
        versions = [system.name.partition(":")[2] for system in (new, old)]
        assert wording(*versions).emits == old.emits, (old.name, new.name)
        assert wording(versions[1], versions[1]) == wording(versions[1])


@pytest.mark.parametrize(
    ("system", "requested", "value"),
    [
        pytest.param("kafka:0.10.2.2", {}, "false", id="not by its own default, which later releases do not have"),
        pytest.param("kafka:0.10.2.2", {UNCLEAN: "true"}, "true", id="where a scenario allows it"),
        pytest.param("kafka:0.11.0.3", {}, None, id="not by default, since 0.11"),
    ],
)
def test_whether_a_release_elects_uncleanly(
    tmp_path: Path, system: str, requested: dict[str, str], value: str | None
) -> None:
    layout = configured(tmp_path, requested, system)
    assert properties_in(layout.config_file(0).read_text(encoding=ENCODING)).get(UNCLEAN) == value
    assert system_named(system).effective(3, requested)[UNCLEAN] == (value or "false")
