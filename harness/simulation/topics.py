"""Creates the topics of a schedule, as an admin client does: it asks the controller."""

from collections.abc import Sequence

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import CreateTopicsRequest, MetadataRequest
from harness.broker.wire.transport import Message, PeerError
from harness.scenario.model import TopicSpec
from harness.simulation.clients.metadata import METADATA_VERSION
from harness.simulation.cluster import CLIENT_PORT, SimulatedCluster, host_of
from harness.simulation.transport import MemoryTransport

REQUEST_TIMEOUT_S = 10.0
CREATE_TOPICS_VERSION = 4
UNSAID = -1
"""How many partitions and replicas there are, where a request assigns them."""


class SimulatedTopicAdmin:
    """An admin client of one simulated cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def create(self, topics: Sequence[TopicSpec]) -> dict[str, str]:
        """Try once to create topics; return what was wrong with each that is not there now."""
        try:
            return await _create(self._cluster, topics)
        except PeerError as error:
            return {topic.name: str(error) for topic in topics}


async def _create(cluster: SimulatedCluster, topics: Sequence[TopicSpec]) -> dict[str, str]:
    of_topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            of_topic(
                name=topic.name,
                num_partitions=UNSAID if topic.replicas else topic.partitions,
                replication_factor=UNSAID if topic.replicas else topic.replication_factor,
                assignments=[
                    of_topic.CreatableReplicaAssignment(
                        partition_index=partition, broker_ids=list(map(int, topic.replicas))
                    )
                    for partition in range(topic.partitions if topic.replicas else 0)
                ],
                configs=[
                    of_topic.CreatableTopicConfig(name=name, value=value)
                    for name, value in sorted(topic.config.items())
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
