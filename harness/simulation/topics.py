"""Creates the topics of a schedule, as an admin client does: asks the controller, again until they are there."""

import asyncio
from collections.abc import Sequence

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import CreateTopicsRequest, MetadataRequest
from harness.broker.wire.transport import Message, PeerError
from harness.errors import ClusterError
from harness.scenario.model import TopicSpec
from harness.simulation.clients.metadata import METADATA_VERSION
from harness.simulation.clients.outcomes import described
from harness.simulation.cluster import CLIENT_PORT, SimulatedCluster, host_of
from harness.simulation.transport import MemoryTransport

TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.2
CREATE_TOPICS_VERSION = 4


async def create_topics(cluster: SimulatedCluster, topics: Sequence[TopicSpec]) -> None:
    """Create every topic that is not there.

    Raises:
        ClusterError: the cluster refused one, or did not answer in time; says which and why.
    """
    clock = asyncio.get_running_loop().time
    deadline_s = clock() + TIMEOUT_S
    remaining = list(topics)
    while True:
        try:
            problems = await _create(cluster, remaining)
        except PeerError as error:
            problems = {topic.name: str(error) for topic in remaining}
        remaining = [topic for topic in remaining if topic.name in problems]
        if not remaining:
            return
        if clock() >= deadline_s:
            raise ClusterError("; ".join(f"topic {name} was not created: {why}" for name, why in problems.items()))
        await asyncio.sleep(RETRY_S)


async def _create(cluster: SimulatedCluster, topics: Sequence[TopicSpec]) -> dict[str, str]:
    """Try once; return what was wrong with each topic that is not there now."""
    wanted = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            wanted(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[
                    wanted.CreatableTopicConfig(name=name, value=value) for name, value in sorted(topic.config.items())
                ],
            )
            for topic in topics
        ],
        timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
        validate_only=False,
    )
    first = next(iter(cluster.brokers))
    metadata = await _ask(cluster, first, MetadataRequest(topics=[]), METADATA_VERSION)
    if metadata.controller_id not in cluster.brokers:
        return {topic.name: "there is no controller" for topic in topics}
    answer = await _ask(cluster, metadata.controller_id, request, CREATE_TOPICS_VERSION)
    fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {topic.name: described(topic.error_code) for topic in answer.topics if topic.error_code not in fine}


async def _ask(cluster: SimulatedCluster, broker_id: int, message: Message, version: int) -> Message:
    transport = MemoryTransport(cluster.network, "harness")
    connection = await transport.connect(
        host_of(broker_id), CLIENT_PORT, client_id="harness", timeout_s=REQUEST_TIMEOUT_S
    )
    try:
        return await connection.request(message, version, timeout_s=REQUEST_TIMEOUT_S + 1)
    finally:
        connection.close()
