from pathlib import Path
from typing import Any

import pytest

from harness import phases
from harness.cluster.disks import tracer
from harness.cluster.driver import DRIVER
from harness.cluster.systems.kafka.jars import VARIABLE
from harness.contracts import registry
from harness.contracts.targets import parse_target
from harness.errors import PluginError, Refused
from harness.scenario import capabilities
from harness.scenario.file import read_scenario
from harness.scenario.model import FaultSpec, MixKind, MixSpec, Scenario, StepSpec
from harness.scenario.plan import make_plan
from tests.fake_cluster import FakeCluster


def scenario(kind: str = "pause") -> Scenario:
    return read_scenario(
        "name: short\ndescription: One fault\ntopics: [{name: orders, partitions: 1}]\n"
        "workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1}}]\n"
        f"faults: [{{kind: {kind}, at_s: 1, duration_s: 1, target: '1'}}]\n",
        "short.yaml",
    )


class NoKill:
    """A driver with clients and nothing else."""

    @classmethod
    def lacks(cls) -> dict[str, str]:
        return {}

    async def start_client(self) -> None: ...

    async def stop_client(self) -> None: ...


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """What each of two drivers lacks here, to be filled by the test; a third never kills or pauses."""
    lacking: dict[str, dict[str, str]] = {"process": {}, "docker": {}}

    def with_lacks(name: str) -> type[Any]:
        return type(name, (FakeCluster,), {"lacks": classmethod(lambda _: lacking[name])})

    classes = {"process": with_lacks("process"), "docker": with_lacks("docker"), "other": NoKill}
    monkeypatch.setattr(registry, "drivers", lambda: list(classes))
    monkeypatch.setattr(registry, "driver_class", lambda name: classes[name])
    return lacking


def test_a_driver_that_lacks_nothing_is_let_through(drivers: dict[str, dict[str, str]]) -> None:
    capabilities.require_capabilities(scenario())


@pytest.mark.parametrize(
    ("process", "docker", "message"),
    [
        pytest.param(
            {DRIVER: "no java in PATH"},
            {},
            "the driver process cannot do this here: no java in PATH; drivers that can: docker",
            id="nothing works",
        ),
        pytest.param(
            {"pause": "no freezer"},
            {},
            "the driver process cannot do this here: pause: no freezer; drivers that can: docker",
            id="the capability that is needed is lacking",
        ),
        pytest.param(
            {DRIVER: "no java in PATH"},
            {DRIVER: "no Docker engine answers"},
            "no java in PATH; drivers that can: none",
            id="no driver can",
        ),
        pytest.param(
            {"pause": "no freezer"},
            {"pause": "no control groups"},
            "pause: no freezer; drivers that can: none",
            id="the other one lacks the same",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_reason_and_the_drivers_that_could(
    drivers: dict[str, dict[str, str]], process: dict[str, str], docker: dict[str, str], message: str
) -> None:
    drivers.update(process=process, docker=docker)
    with pytest.raises(Refused) as refused:
        capabilities.require_capabilities(scenario())
    assert str(refused.value).endswith(message)


def test_a_power_that_the_scenario_does_not_need_may_be_lacking(drivers: dict[str, dict[str, str]]) -> None:
    drivers["process"] = {"pause": "no freezer"}
    capabilities.require_capabilities(scenario("kill"))
    capabilities.require_lasting_cluster("process")


def test_a_power_that_the_driver_never_has_is_missing(drivers: dict[str, dict[str, str]]) -> None:
    assert capabilities.missing("other", {"pause", "clients"}) == {"pause": "the driver other does not have it"}


@pytest.mark.parametrize(("target", "syncs"), [("zookeeper(1)", True), ("leader(orders,0)", False)])
def test_zookeeper_syncs_what_it_writes_where_its_syncs_may_be_slow(target: str, syncs: bool) -> None:
    fault = FaultSpec(kind="slow-sync", at_s=1, duration_s=2, target=parse_target(target))
    assert capabilities.slows_zookeeper(scenario("kill").model_copy(update={"faults": [fault]})) is syncs


def test_the_target_of_a_step_is_a_role_of_a_broker() -> None:
    steps = [StepSpec(inject="slow-sync", target="A")]
    assert not capabilities.slows_zookeeper(scenario("kill").model_copy(update={"faults": [], "steps": steps}))


def test_a_motif_brings_the_relay_that_it_needs() -> None:
    kinds = [MixKind(kind="bounce")]
    mix = MixSpec(count=1, settle_s=3, motifs=["creation-unanswered"], kinds=kinds)
    mixed = scenario("kill").model_copy(update={"faults": [], "mix": mix, "duration_s": 60.0})
    assert "zookeeper-replies" not in capabilities.required_capabilities(mixed)
    assert "zookeeper-replies" in capabilities.needed_by(mixed, make_plan(mixed, 1))


@pytest.mark.parametrize(
    ("system", "lacking", "needed"),
    [
        pytest.param("python", "", True, id="the built-in broker's disks fail"),
        pytest.param("python", "no libfiu", False, id="what the machine lacks keeps no cluster from starting"),
        pytest.param("kafka:3.9.1", "", False, id="Kafka's syncs may be traced meanwhile"),
    ],
)
def test_a_motif_makes_disks_fail_where_they_can(
    drivers: dict[str, dict[str, str]], system: str, lacking: str, needed: bool
) -> None:
    drivers["process"] = {"disk-errors": lacking} if lacking else {}
    mix = MixSpec(count=1, settle_s=3, motifs=["last-member-loses-disk"], kinds=[MixKind(kind="bounce")])
    mixed = scenario("kill").model_copy(update={"faults": [], "mix": mix, "duration_s": 60.0, "system": system})
    assert ("disk-errors" in capabilities.needed_by(mixed, make_plan(mixed, 1))) is needed


def test_disks_of_kafka_fail_only_where_a_process_can_be_traced(
    drivers: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_kafka = scenario("disk-error").model_copy(update={"system": "kafka:3.9.1"})
    monkeypatch.setattr(capabilities, "require_system", lambda _: None)
    monkeypatch.setattr(tracer, "lacking", lambda: "no strace")
    capabilities.require_capabilities(scenario("disk-error"))
    with pytest.raises(Refused, match=r"the disks of kafka:3\.9\.1 cannot be made to fail here: no strace"):
        capabilities.require_capabilities(of_kafka)
    monkeypatch.setattr(tracer, "lacking", lambda: "")
    capabilities.require_capabilities(of_kafka)


@pytest.mark.parametrize(
    ("system", "driver", "lacking", "refused"),
    [
        pytest.param("kafka:3.9.1", "process", "", "", id="a process that can be traced"),
        pytest.param(
            "kafka:3.9.1",
            "process",
            "no strace",
            r"the syncs of kafka:3\.9\.1 cannot be traced here: no strace",
            id="no tracer",
        ),
        pytest.param(
            "kafka:3.9.1",
            "docker",
            "",
            r"the driver docker cannot trace the syncs of kafka:3\.9\.1; process can",
            id="in containers",
        ),
        pytest.param("python", "docker", "no strace", "", id="the built-in broker, which tells them itself"),
    ],
)
def test_syncs_of_kafka_are_traced_where_a_power_loss_needs_them(
    drivers: dict[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    driver: str,
    lacking: str,
    refused: str,
) -> None:
    monkeypatch.setattr(capabilities, "require_system", lambda _: None)
    monkeypatch.setattr(tracer, "lacking", lambda: lacking)
    base = scenario("power-loss").model_copy(update={"system": system, "driver": driver})
    fault = FaultSpec(kind="power-loss", at_s=1, target=parse_target("1"), parameters={"traced": True})
    traced = base.model_copy(update={"faults": [fault]})
    assert (capabilities.traces_syncs(base), capabilities.traces_syncs(traced)) == (False, True)
    capabilities.require_capabilities(base)
    if refused:
        with pytest.raises(Refused, match=refused):
            capabilities.require_capabilities(traced)
    else:
        capabilities.require_capabilities(traced)


@pytest.mark.parametrize("kind", ["slow-sync", "disk-error"])
def test_a_process_has_one_tracer(
    drivers: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(capabilities, "require_system", lambda _: None)
    monkeypatch.setattr(tracer, "lacking", lambda: "")
    traced = FaultSpec(kind="power-loss", at_s=1, target=parse_target("1"), parameters={"traced": True})
    other = FaultSpec(kind=kind, at_s=1, duration_s=3, target=parse_target("0"))
    both = {"system": "kafka:3.9.1", "faults": [traced, other]}
    with pytest.raises(Refused, match=r"the syncs of kafka:3\.9\.1 cannot be both traced and slowed, or made to fail"):
        capabilities.require_capabilities(scenario("power-loss").model_copy(update=both))


def test_both_releases_of_an_upgrade_are_to_be_there(
    drivers: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    upgrade = FaultSpec(kind="upgrade", at_s=1, target=parse_target("1"), parameters={"to": "3.9.1"})
    upgraded = scenario("kill").model_copy(update={"system": "kafka:3.3.2", "faults": [upgrade, upgrade]})
    assert capabilities.systems_of(upgraded) == ["kafka:3.3.2", "kafka:3.9.1"]
    for release in ("3.3.2", "3.9.1"):
        lacking = f"kafka:{release} cannot be started here: no jars of Apache Kafka {release} in {tmp_path}"
        with pytest.raises(Refused, match=rf"{lacking}/{release}; fetch them with: chaos kafka get {release}"):
            capabilities.require_capabilities(upgraded)
        folder = tmp_path / release
        folder.mkdir()
        (folder / f"kafka_2.13-{release}.jar").touch()
    capabilities.require_capabilities(upgraded)


def test_needed_is_what_faults_require_and_the_load(drivers: dict[str, dict[str, str]]) -> None:
    assert capabilities.required_capabilities(scenario("pause")) == {"pause", "clients"}


def test_a_driver_whose_clusters_live_only_within_runs_keeps_none_up() -> None:
    with pytest.raises(
        Refused, match=r"simulated keeps no cluster: .*chaos run smoke --driver simulated; drivers that"
    ):
        capabilities.require_lasting_cluster("simulated")


def test_a_role_that_a_driver_with_clients_of_its_own_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = scenario("kill").model_copy(update={"driver": "simulated"})
    capabilities.require_capabilities(simulated)
    monkeypatch.setattr("harness.simulation.runs.ROLES", frozenset({"producer", "auditor"}))
    monkeypatch.setattr(registry, "drivers", lambda: ["simulated"])
    with pytest.raises(Refused) as refused:
        capabilities.require_capabilities(simulated)
    assert str(refused.value) == (
        "the driver simulated has no client for consumer of produce-consume; it has auditor, producer"
        " of workloads of kafka-chaos-harness; drivers that run any: none"
    )


def test_a_refused_scenario_leaves_no_folder(drivers: dict[str, dict[str, str]], tmp_path: Path) -> None:
    drivers["process"] = {DRIVER: "no java in PATH"}
    with pytest.raises(Refused):
        phases.create(scenario(), make_plan(scenario(), 1), tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_driver_is_named_with_those_there_are() -> None:
    with pytest.raises(PluginError, match="unknown driver 'podman'; known: process, docker"):
        capabilities.require_lasting_cluster("podman")
