"""Which brokers does a broker list, and what is its cluster's id? One Metadata request, without topics."""

from collections.abc import Iterable

from harness.errors import ClusterError
from harness.kafka.apis import METADATA
from harness.kafka.client import Connection, NoAnswer
from harness.kafka.codec import Values
from harness.kafka.security.settings import Security
from harness.kafka.tcp import CLIENT_ID, PLAINTEXT, Tcp, explained

LISTED, WITH_ID = 1, 2
"""Versions of Metadata: every broker knows them, and from the second on the answer has the cluster's id."""


async def listed_brokers(host: str, port: int, *, timeout_s: float, security: Security = PLAINTEXT) -> dict[int, str]:
    """Return the brokers that a broker lists as alive: host:port by broker id.

    Raises:
        ClusterError: it does not answer within `timeout_s`, or not with metadata.
    """
    return _brokers(await _metadata_of(host, port, LISTED, timeout_s, security))


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
    peer = f"{host}:{port}"
    try:
        connection = Connection(await Tcp(security).connect(host, port, timeout_s=timeout_s), peer, CLIENT_ID)
        try:
            return await connection.request(METADATA, {"topics": []}, version, timeout_s=timeout_s)
        finally:
            connection.close()
    except NoAnswer as error:
        raise ClusterError(f"{peer} does not answer a Metadata request: {error}") from error


def _brokers(answer: Values) -> dict[int, str]:
    return {each["node_id"]: f"{each['host']}:{each['port']}" for each in answer["brokers"] or ()}
