"""What is assumed of an existing cluster's configuration, and what comes of another one."""

from dataclasses import replace

import pytest

from harness.cluster.external import configuration
from harness.cluster.external.configuration import assumed, configured_as_assumed
from harness.cluster.systems.system import EXTERNAL, system_named
from harness.errors import ClusterError
from tests.cluster.external.test_place import CLUSTER

UNCLEAN, LAG = "unclean.leader.election.enable", "replica.lag.time.max.ms"
OF_QUORUM, OF_ZOOKEEPER = "broker.session.timeout.ms", "zookeeper.session.timeout.ms"


@pytest.mark.parametrize(
    ("stated", "quorum", "expected"),
    [
        pytest.param({}, False, {UNCLEAN: "false", LAG: "30000", OF_ZOOKEEPER: "18000"}, id="Kafka's defaults"),
        pytest.param({UNCLEAN: "true"}, False, {UNCLEAN: "true", LAG: "30000"}, id="what the file states"),
        pytest.param({}, True, {OF_QUORUM: "9000"}, id="the default of a quorum"),
        pytest.param({OF_QUORUM: "12000"}, True, {OF_QUORUM: "12000"}, id="what the file states of a quorum"),
    ],
)
def test_what_is_assumed(stated: dict[str, str], quorum: bool, expected: dict[str, str]) -> None:
    effective = system_named(EXTERNAL).effective(3, stated)
    found = assumed(stated, effective, quorum=quorum)
    assert found.items() >= expected.items()
    assert (OF_QUORUM in found, OF_ZOOKEEPER in found) == (quorum, not quorum)
    assert effective[OF_ZOOKEEPER] == stated.get(OF_QUORUM, "18000")


@pytest.mark.parametrize(
    ("told", "seen", "problem"),
    [
        pytest.param({UNCLEAN: "FALSE", LAG: "30000"}, f"configured as assumed: {LAG}=30000", "", id="the same"),
        pytest.param({LAG: "30000"}, "configured as assumed", "", id="a release that does not have one of them"),
        pytest.param(
            {UNCLEAN: "true", LAG: "10000"},
            "",
            f"broker 1 has {LAG}=10000, where 30000 is assumed; {UNCLEAN}=true, where false is assumed: write its",
            id="another one",
        ),
        pytest.param("broker 1 does not say", "values are assumed: broker 1 does not say", "", id="a refusal"),
    ],
)
async def test_what_a_broker_says_of_itself(
    told: dict[str, str] | str, seen: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(*_: object, **__: object) -> dict[str, str]:
        if isinstance(told, str):
            raise ClusterError(told)
        return told

    monkeypatch.setattr(configuration, "broker_configuration", answer)
    cluster = replace(CLUSTER, configuration={UNCLEAN: "false", LAG: "30000"})
    asking = configured_as_assumed(cluster, 1, "kafka-1:9092", 1.0)
    if problem:
        with pytest.raises(ClusterError) as raised:
            await asking
        assert problem in str(raised.value)
    else:
        assert seen in await asking
