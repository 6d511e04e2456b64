"""What does a broker say of its cluster and of itself, by one request each?"""

from collections.abc import Iterable
from typing import Any

from harness.errors import ClusterError
from harness.kafka.apis import DESCRIBE_CONFIGS, FIND_COORDINATOR, METADATA
from harness.kafka.client import Connection, NoAnswer
from harness.kafka.codec import Api, Values
from harness.kafka.security.settings import Security
from harness.kafka.tcp import CLIENT_ID, PLAINTEXT, Tcp, explained
from harness.values import NO_BROKER

LATEST_FIND_COORDINATOR = 2
"""The last version before flexible ones."""
BROKER, BROKER_LOGGERS = 4, 8
"""Types of resources: a broker, and its loggers, whose configuration is their levels (KIP-412)."""
LATEST_DESCRIBE_CONFIGS = 1
LISTED, WITH_ID = 1, 2
"""Versions of Metadata: every broker knows them, and from the second on the answer has the cluster's id."""


async def listed_brokers(host: str, port: int, *, timeout_s: float, security: Security = PLAINTEXT) -> dict[int, str]:
    """Return the brokers that a broker lists as alive: host:port by broker id.

    Raises:
        ClusterError: it does not answer within `timeout_s`, or not with metadata.
    """
    return _brokers(await _metadata_of(host, port, LISTED, timeout_s, security))


async def group_coordinator(host: str, port: int, group: str, *, timeout_s: float) -> int:
    """Return the broker that coordinates a group; -1 while there is none. To ask creates the offsets topic.

    Raises:
        ClusterError: the broker does not answer within `timeout_s`.
    """
    values = {"key": group, "key_type": 0}
    answer = await _asked(host, port, FIND_COORDINATOR, values, LATEST_FIND_COORDINATOR, timeout_s, PLAINTEXT)
    return NO_BROKER if answer["error_code"] else int(answer["node_id"])


async def logger_levels(
    host: str, port: int, broker_id: int, *, timeout_s: float, security: Security = PLAINTEXT
) -> dict[str, str]:
    """Return the level of each logger of a broker, which answers this about itself only.

    Raises:
        ClusterError: the broker does not answer within `timeout_s`, or refuses to say.
    """
    levels = await _described(host, port, BROKER_LOGGERS, broker_id, None, timeout_s, security)
    return {name: level or "" for name, level in levels.items()}


async def broker_configuration(
    host: str, port: int, broker_id: int, names: list[str], *, timeout_s: float, security: Security = PLAINTEXT
) -> dict[str, str]:
    """Return the values of properties that a broker has; it answers this about itself only, and omits unknown ones.

    Raises:
        ClusterError: the broker does not answer within `timeout_s`, or refuses to say.
    """
    values = await _described(host, port, BROKER, broker_id, names, timeout_s, security)
    return {name: value for name, value in values.items() if value is not None}


async def _described(
    host: str,
    port: int,
    kind: int,
    broker_id: int,
    names: list[str] | None,
    timeout_s: float,
    security: Security,
) -> dict[str, str | None]:
    keys = None if names is None else [{"name": name} for name in names]
    resource = {"resource_type": kind, "resource_name": str(broker_id), "configuration_keys": keys}
    values = {"resources": [resource], "include_synonyms": False}
    answer = await _asked(host, port, DESCRIBE_CONFIGS, values, LATEST_DESCRIBE_CONFIGS, timeout_s, security)
    (of_broker,) = answer["results"]
    if of_broker["error_code"]:
        why = of_broker["error_message"] or f"error {of_broker['error_code']}"
        what = "at which levels it logs" if kind == BROKER_LOGGERS else "how it is configured"
        raise ClusterError(f"broker {broker_id} does not say {what}: {why}")
    return {each["name"]: each["value"] for each in of_broker["configs"]}


async def described_cluster(
    addresses: Iterable[str], *, timeout_s: float, security: Security = PLAINTEXT
) -> tuple[str, dict[int, str]]:
    """Return a cluster's id and its brokers, as the first of some addresses that answers lists them.

    Raises:
        ClusterError: none answers; says what each asks for, if the settings say something else.
    """
    problems = []
    for address in addresses:
        host, _, port = address.strip().rpartition(":")
        try:
            answer = await _metadata_of(host, int(port), WITH_ID, timeout_s, security)
            return answer["cluster_id"] or "", _brokers(answer)
        except ValueError as error:
            problems.append(str(error))
        except ClusterError as error:
            problems.append(await explained(host, int(port), security, str(error), timeout_s))
    raise ClusterError("; ".join(problems))


async def _metadata_of(host: str, port: int, version: int, timeout_s: float, security: Security) -> Values:
    return await _asked(host, port, METADATA, {"topics": []}, version, timeout_s, security)


async def _asked(
    host: str, port: int, api: Api, values: dict[str, Any], version: int, timeout_s: float, security: Security
) -> Values:
    peer = f"{host}:{port}"
    try:
        connection = Connection(await Tcp(security).connect(host, port, timeout_s=timeout_s), peer, CLIENT_ID)
        try:
            return await connection.request(api, values, version, timeout_s=timeout_s)
        finally:
            connection.close()
    except NoAnswer as error:
        raise ClusterError(f"{peer} does not answer a {api.name.removesuffix('Request')} request: {error}") from error


def _brokers(answer: Values) -> dict[int, str]:
    return {each["node_id"]: f"{each['host']}:{each['port']}" for each in answer["brokers"] or ()}
