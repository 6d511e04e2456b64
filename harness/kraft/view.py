"""What does the metadata log of a running cluster say now? Fetched from the controller that leads the quorum.

It is fetched as a consumer does, which the quorum does not count: up to the high watermark, so all of it is committed.
What the log no longer has, a snapshot stands for.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    ListPartitionReassignmentsRequest,
)
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Connection, Message, PeerError, Transport
from harness.errors import ClusterError, EvidenceError
from harness.kraft.image import MetadataImage
from harness.kraft.records import SNAPSHOT_REQUEST, entries
from harness.kraft.snapshots import snapshot_of
from harness.store.history import ZnodeChange
from harness.values import METADATA_TOPIC, NO_BROKER
from harness.zookeeper.view import Controller, PartitionView, Registration

CLIENT_ID = "chaos-view"
READ_TIMEOUT_S = 5.0
"""After so long without a leader the cluster does not answer."""
ASK_TIMEOUT_S = 1.0
"""For one controller, which may be paused."""
WRITE_TIMEOUT_S = 10.0
AGAIN_S = 0.1
FETCH_BYTES = 1 << 20
TOPIC_ID = UUID(int=1)
"""Of the metadata log everywhere."""
FETCH_VERSION, CREATE_VERSION, DELETE_VERSION, REASSIGN_VERSION, LIST_VERSION = 13, 5, 5, 0, 0
SNAPSHOT_VERSION = 0
INCONSISTENT_CLUSTER_ID = 104
"""As an error code, which brokers of ours never answer."""
_OTHER_EPOCH = {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH}


class NoLeaderError(ClusterError):
    """No controller says that it leads the quorum."""


class QuorumView:
    """Implements `ClusterView` over connections of its own to the controllers; an async context manager."""

    def __init__(
        self, controllers: Mapping[int, str], transport: Transport | None = None, cluster_id: str | None = None
    ) -> None:
        """Take where each controller listens, host:port by id; TCP is the usual transport.

        With a cluster's id those of another one answer only that they are.
        """
        self._cluster_id = cluster_id
        self._controllers = {id_: _address(text) for id_, text in controllers.items()}
        self._transport = transport or TcpTransport()
        self._connections: dict[int, Connection] = {}
        self._image = MetadataImage()
        self._next = 0
        """The offset that is fetched next."""
        self._last_epoch = 0
        """Of the last record that was fetched."""
        self._epoch = 0
        """Of the quorum, as far as it is known."""
        self._leader = NO_BROKER
        self._turn = asyncio.Lock()
        self.gap = ""
        """Which records were trimmed from the log after the first look, and before they were read; empty for none."""

    async def __aenter__(self) -> Self:
        """Open no connection: a quorum may come later, and each look connects when it has to."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop all connections; idempotent."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def news(self) -> list[ZnodeChange]:
        """Return what has changed since the last look.

        Raises:
            ClusterError: no controller leads, or the log cannot be read.
        """
        async with self._turn:
            changes: list[ZnodeChange] = []
            while not await self._fetch(changes):
                pass
            return changes

    # --- what there is ---

    async def controller(self) -> Controller:
        """Return the leader of the quorum, or a `Controller` with broker id -1 while there is none.

        Raises:
            ClusterError: the log of the one that there is cannot be read.
        """
        try:
            await self.news()
        except NoLeaderError:
            return Controller(broker_id=NO_BROKER, controller_epoch=self._image.controller.controller_epoch, session="")
        return self._image.controller

    @property
    def voters(self) -> tuple[int, ...]:
        """The controllers of the quorum."""
        return tuple(self._controllers)

    async def registrations(self) -> dict[int, Registration]:
        """Return the brokers that are not fenced, by id."""
        await self.news()
        return self._image.registrations

    async def partitions(self) -> list[PartitionView]:
        """Return every partition, by topic and partition."""
        await self.news()
        return [self._image.partitions[key].view for key in sorted(self._image.partitions)]

    async def topics(self) -> list[str]:
        """Return the names of all topics."""
        await self.news()
        return sorted(self._image.topics)

    # --- administration ---

    async def deleting(self, topic: str) -> bool:
        """Return that no topic waits for its deletion: one that is to go is gone at once."""
        return False

    async def remnants(self, topic: str) -> list[str]:
        """Return in words what the metadata have of a topic."""
        await self.news()
        return [f"topic {topic}"] if topic in self._image.topics else []

    async def create_topic(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> bool:
        """Create a topic on these brokers; return False when it is there already."""
        creatable = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[
                creatable(
                    name=topic,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        creatable.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
                        for number, brokers in assignment.items()
                    ],
                    configs=[],
                )
            ],
            timeout_ms=int(WRITE_TIMEOUT_S * 1000),
            validate_only=False,
        )
        answer = await self._of_leader(request, CREATE_VERSION)
        return _accepted(answer.topics[0].error_code, ErrorCode.TOPIC_ALREADY_EXISTS)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic; nothing happens when there is none."""
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=int(WRITE_TIMEOUT_S * 1000))
        answer = await self._of_leader(request, DELETE_VERSION)
        _accepted(answer.responses[0].error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> bool:
        """Ask for other replicas of a partition, whatever was asked for before."""
        of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(WRITE_TIMEOUT_S * 1000),
            topics=[
                of_topic(
                    name=topic,
                    partitions=[of_topic.ReassignablePartition(partition_index=partition, replicas=list(replicas))],
                )
            ],
        )
        answer = await self._of_leader(request, REASSIGN_VERSION)
        code = answer.error_code or answer.responses[0].partitions[0].error_code
        return _accepted(code)

    async def reassigning(self) -> bool:
        """Return whether any partition still moves."""
        request = ListPartitionReassignmentsRequest(timeout_ms=int(WRITE_TIMEOUT_S * 1000), topics=None)
        answer = await self._of_leader(request, LIST_VERSION)
        _accepted(answer.error_code)
        return bool(answer.topics)

    # --- the quorum ---

    async def _of_leader(self, request: Message, version: int) -> Message:
        """Ask the leader for something that only it can do."""
        await self.news()
        async with self._turn:
            try:
                return await self._ask(self._leader, request, version, WRITE_TIMEOUT_S)
            except PeerError as error:
                raise ClusterError(f"controller {self._leader} does not answer: {error}") from error

    async def _fetch(self, changes: list[ZnodeChange]) -> bool:
        """Apply what is committed of one fetch; return whether nothing more is."""
        partition = await self._answer()
        begun, snapshot_id = self._next, partition.snapshot_id
        if snapshot_id is not None and snapshot_id.end_offset > begun:
            await self._load(snapshot_id, changes)
            return False
        if partition.log_start_offset > begun:
            raise ClusterError(f"the metadata log begins at {partition.log_start_offset}, after {begun}")
        diverging = partition.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            raise ClusterError(
                f"the quorum has lost what it had committed before {begun}: epoch {diverging.epoch} of its log ends at"
                f" {diverging.end_offset}"
            )
        if 0 <= partition.high_watermark < begun:
            raise ClusterError(
                f"the quorum has lost what it had committed before {begun}: its high watermark is"
                f" {partition.high_watermark}"
            )
        try:
            for batch in entries(bytes(partition.records or b"")):
                if batch[-1].offset >= partition.high_watermark:
                    return True
                changes += self._image.apply(batch)
                self._next, self._last_epoch = batch[-1].offset + 1, batch[-1].epoch
        except (EvidenceError, KeyError) as error:
            raise ClusterError(f"the metadata log cannot be read: {error!r}") from error
        return self._next == begun or self._next >= partition.high_watermark

    async def _load(self, snapshot_id: Any, changes: list[ZnodeChange]) -> None:
        """Begin anew with a snapshot of the leader's: the log no longer has what comes next."""
        end, epoch = snapshot_id.end_offset, snapshot_id.epoch
        data = bytearray()
        while True:
            part = await self._part_of_snapshot(end, epoch, len(data))
            data += bytes(part.unaligned_records or b"")
            if len(data) >= part.size or not part.unaligned_records:
                break
        try:
            snapshot = snapshot_of(bytes(data), end, epoch).led_by(self._leader if self._epoch == epoch else NO_BROKER)
            image = MetadataImage()
            changes += image.load(snapshot)
        except (EvidenceError, KeyError) as error:
            raise ClusterError(f"the snapshot of the metadata at {end} cannot be read: {error!r}") from error
        if self._next:
            self.gap = f"the log was trimmed before its records {self._next} to {end - 1} were read: they are not known"
        self._image, self._next, self._last_epoch = image, end, epoch

    async def _part_of_snapshot(self, end: int, epoch: int, position: int) -> Any:
        """Return the leader's answer with the bytes from a position on; raises NoLeaderError where it has none."""
        wanted = SNAPSHOT_REQUEST.TopicSnapshot
        partition = wanted.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self._epoch,
            snapshot_id=wanted.PartitionSnapshot.SnapshotId(end_offset=end, epoch=epoch),
            position=position,
        )
        request = SNAPSHOT_REQUEST(
            cluster_id=self._cluster_id,
            replica_id=NO_BROKER,
            max_bytes=FETCH_BYTES,
            topics=[wanted(name=METADATA_TOPIC, partitions=[partition])],
        )
        try:
            answer = await self._ask(self._leader, request, SNAPSHOT_VERSION, READ_TIMEOUT_S)
        except PeerError as error:
            raise NoLeaderError(f"controller {self._leader} does not answer: {error}") from error
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        if code != ErrorCode.NONE:  # it leads no more, or has a later snapshot by now
            raise NoLeaderError(f"controller {self._leader} has no snapshot at {end}: {described(code)}")
        return answer.topics[0].partitions[0]

    async def _answer(self) -> Any:
        """Return what the leader answers to a fetch of what comes next; look for the leader if need be."""
        clock = asyncio.get_running_loop().time
        deadline_s, problem = clock() + READ_TIMEOUT_S, "never asked"
        while True:
            for controller in sorted(self._controllers, key=lambda id_: id_ != self._leader):
                try:
                    partition = await self._fetched(controller)
                except PeerError as error:
                    problem = str(error)
                    continue
                if partition.error_code == ErrorCode.NONE:
                    self._leader = controller
                    return partition
                problem = f"controller {controller}: {described(partition.error_code)}"
            if clock() >= deadline_s:
                raise NoLeaderError(f"no controller leads the quorum; {problem}")
            await asyncio.sleep(AGAIN_S)

    async def _fetched(self, controller: int) -> Any:
        """Return a controller's answer; one of a later epoch is asked again in that."""
        answer = await self._ask(controller, self._request(), FETCH_VERSION, ASK_TIMEOUT_S)
        if answer.error_code == INCONSISTENT_CLUSTER_ID:
            raise PeerError(f"controller {controller} is of another cluster than {self._cluster_id}")
        if answer.error_code != ErrorCode.NONE or not answer.responses:
            raise PeerError(f"controller {controller} answers {described(answer.error_code)}")
        partition = answer.responses[0].partitions[0]
        current = partition.current_leader
        if partition.error_code in _OTHER_EPOCH and current is not None and current.leader_epoch > self._epoch:
            self._epoch = current.leader_epoch
            return await self._fetched(controller)
        return partition

    def _request(self) -> Message:
        wanted = FetchRequest.FetchTopic
        return FetchRequest(
            cluster_id=self._cluster_id,
            replica_id=NO_BROKER,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[
                wanted(
                    topic_id=TOPIC_ID,
                    partitions=[
                        wanted.FetchPartition(
                            partition=0,
                            current_leader_epoch=self._epoch,
                            fetch_offset=self._next,
                            last_fetched_epoch=self._last_epoch,
                            log_start_offset=-1,
                            partition_max_bytes=FETCH_BYTES,
                        )
                    ],
                )
            ],
        )

    async def _ask(self, controller: int, request: Message, version: int, timeout_s: float) -> Message:
        connection = self._connections.get(controller)
        if connection is None or connection.closed:
            if connection is not None:
                connection.close()  # its controller may have ended it alone
            host, port = self._controllers[controller]
            connection = await self._transport.connect(host, port, client_id=CLIENT_ID, timeout_s=timeout_s)
            self._connections[controller] = connection
        return await connection.request(request, version, timeout_s=timeout_s)


def _accepted(code: int, needless: ErrorCode | None = None) -> bool:
    """Return False when nothing was to be done; raises ClusterError when it was refused."""
    if code == needless:
        return False
    if code != ErrorCode.NONE:
        raise ClusterError(f"the controller refuses: {described(code)}")
    return True


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
