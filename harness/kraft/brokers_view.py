"""What do brokers tell any client about the metadata of their cluster? All there is where its keepers are out of reach.

Such a cluster is a managed one: its controllers, or its ZooKeeper, are closed to clients. No registration has an epoch
here, and no state of a partition has a version.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest
from harness.broker.wire.transport import Connection, Message, PeerError, Transport
from harness.errors import ClusterError
from harness.values import NO_BROKER
from harness.zookeeper.view import Controller, PartitionView, Registration

CLIENT_ID = "chaos-view"
ASK_TIMEOUT_S = 5.0
WRITE_TIMEOUT_S = 10.0
METADATA_VERSION, CREATE_VERSION, DELETE_VERSION = 7, 4, 3
OUT_OF_REACH = "the metadata of this cluster are out of reach: name its controllers, or its ZooKeeper"


class BrokersView:
    """Implements `OpenableView` over connections to brokers, one for each request; an async context manager."""

    def __init__(self, bootstrap_servers: str, transport: Transport) -> None:
        self._addresses = bootstrap_servers.split(",")
        self._transport = transport

    async def __aenter__(self) -> Self:
        """Connect to nothing: each look connects."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close nothing."""

    async def controller(self) -> Controller:
        """Return the broker that takes requests to the controller; its epoch is not told."""
        answer = await self._metadata()
        return Controller(broker_id=answer.controller_id, controller_epoch=0, session="")

    async def registrations(self) -> dict[int, Registration]:
        """Return the brokers that are alive, by id."""
        brokers = sorted(broker.node_id for broker in (await self._metadata()).brokers)
        return {broker: Registration(broker_id=broker, czxid=0, session="") for broker in brokers}

    async def partitions(self) -> list[PartitionView]:
        """Return every partition, by topic and partition."""
        topics = (await self._metadata()).topics
        views = [_view(topic.name, partition) for topic in topics for partition in topic.partitions]
        return sorted(views, key=lambda view: (view.topic, view.partition))

    async def topics(self) -> list[str]:
        """Return the names of all topics that this client may see: each broker learns of a topic at its own time."""
        first = await self._metadata()
        others = [f"{broker.host}:{broker.port}" for broker in first.brokers]
        answers = await asyncio.gather(*map(self._metadata_of, others), return_exceptions=True)
        known = [first, *(answer for answer in answers if not isinstance(answer, PeerError))]
        return sorted({topic.name for answer in known for topic in answer.topics})

    async def deleting(self, topic: str) -> bool:
        """Return False: brokers do not tell which topics wait for their deletion."""
        return False

    async def remnants(self, topic: str) -> list[str]:
        """Return in words what the metadata have of a topic."""
        return [f"topic {topic}"] if topic in await self.topics() else []

    async def create_topic(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> bool:
        """Create a topic on these brokers; return False when it exists."""
        creatable = CreateTopicsRequest.CreatableTopic
        assigned = creatable.CreatableReplicaAssignment
        wanted = creatable(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[assigned(partition_index=key, broker_ids=list(ids)) for key, ids in assignment.items()],
            configs=[],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(WRITE_TIMEOUT_S * 1000), validate_only=False)
        answer = await self._of_controller(request, CREATE_VERSION)
        return _accepted(answer.topics[0].error_code, ErrorCode.TOPIC_ALREADY_EXISTS)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic; nothing happens when there is none."""
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=int(WRITE_TIMEOUT_S * 1000))
        answer = await self._of_controller(request, DELETE_VERSION)
        _accepted(answer.responses[0].error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> bool:
        """Raise ClusterError."""
        raise ClusterError(OUT_OF_REACH)

    async def reassigning(self) -> bool:
        """Raise ClusterError."""
        raise ClusterError(OUT_OF_REACH)

    async def _metadata(self) -> Any:
        problems = []
        for address in self._addresses:
            try:
                return await self._metadata_of(address)
            except PeerError as error:
                problems.append(str(error))
        raise ClusterError(f"no broker answers: {'; '.join(problems)}")

    async def _metadata_of(self, address: str) -> Any:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        return await self._ask(address, request, METADATA_VERSION, ASK_TIMEOUT_S)

    async def _of_controller(self, request: Message, version: int) -> Any:
        metadata = await self._metadata()
        controllers = [each for each in metadata.brokers if each.node_id == metadata.controller_id]
        if not controllers:
            raise ClusterError("no broker is the controller now")
        try:
            address = f"{controllers[0].host}:{controllers[0].port}"
            return await self._ask(address, request, version, WRITE_TIMEOUT_S)
        except PeerError as error:
            raise ClusterError(f"the controller does not answer: {error}") from error

    async def _ask(self, address: str, request: Message, version: int, timeout_s: float) -> Any:
        host, _, port = address.rpartition(":")
        connection: Connection = await self._transport.connect(
            host, int(port), client_id=CLIENT_ID, timeout_s=timeout_s
        )
        try:
            return await connection.request(request, version, timeout_s=timeout_s)
        finally:
            connection.close()


def _view(topic: str, partition: Any) -> PartitionView:
    return PartitionView(
        topic=topic,
        partition=partition.partition_index,
        assignment=tuple(partition.replica_nodes),
        leader=partition.leader_id if partition.leader_id >= 0 else NO_BROKER,
        leader_epoch=partition.leader_epoch,
        isr=tuple(partition.isr_nodes),
        controller_epoch=0,
        zk_version=0,
    )


def _accepted(code: int, needless: ErrorCode) -> bool:
    """Return False when nothing was to be done; raises ClusterError when it was refused."""
    if code == needless:
        return False
    if code != ErrorCode.NONE:
        raise ClusterError(f"the controller refuses: {described(code)}")
    return True
