"""Are the brokers of an existing cluster configured as judging assumes? Else one that keeps its promises is accused."""

from collections.abc import Mapping

from harness.cluster.external.place import ExternalCluster
from harness.cluster.systems.kafka.kraft import SESSION_TIMEOUT, ZOOKEEPER_SESSION_TIMEOUT
from harness.errors import ClusterError
from harness.kafka.brokers import broker_configuration
from harness.kafka.security.settings import security_of

JUDGED = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "replica.lag.time.max.ms",
    "log.segment.delete.delay.ms",
    "log.cleaner.delete.retention.ms",
)
"""Properties by which every run is judged."""
QUORUM_DEFAULT = "9000"
"""Kafka's default of `broker.session.timeout.ms`."""


def assumed(stated: Mapping[str, str], effective: Mapping[str, str], *, quorum: bool) -> dict[str, str]:
    """Return the properties by which runs on a cluster are judged, from what its file states, and what holds then."""
    judged = {name: effective[name] for name in JUDGED}
    if quorum:
        return judged | {SESSION_TIMEOUT: stated.get(SESSION_TIMEOUT, QUORUM_DEFAULT)}
    return judged | {ZOOKEEPER_SESSION_TIMEOUT: effective[ZOOKEEPER_SESSION_TIMEOUT]}


async def configured_as_assumed(cluster: ExternalCluster, broker_id: int, address: str, timeout_s: float) -> str:
    """Return that a broker's configuration is the assumed one, or why the broker does not tell it.

    Raises:
        ClusterError: it is another one; names each property.
    """
    if not cluster.configuration:
        return "nothing is assumed of its configuration"
    host, _, port = address.rpartition(":")
    security = security_of(cluster.client)
    try:
        told = await broker_configuration(
            host, int(port), broker_id, [*cluster.configuration], timeout_s=timeout_s, security=security
        )
    except ClusterError as error:
        return f"the cluster file's values are assumed: {error}"
    if different := differences(cluster.configuration, told):
        raise ClusterError(
            f"broker {broker_id} has {'; '.join(different)}: write its values under `properties` of the cluster file"
        )
    return f"configured as assumed: {', '.join(f'{name}={value}' for name, value in sorted(told.items()))}"


def differences(assumed: Mapping[str, str], told: Mapping[str, str]) -> list[str]:
    """Return a phrase for each property that a broker told another value of."""
    return [
        f"{name}={told[name]}, where {value} is assumed"
        for name, value in sorted(assumed.items())
        if name in told and told[name].lower() != value.lower()
    ]
