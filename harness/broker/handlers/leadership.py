"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: leaders and replicas, by request."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from harness.broker.controller.assignment import Assignment
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.reassignment_requests import Reassigned, Wish
from harness.broker.controller.replica_elections import ElectionKind, ElectionResult
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.purgatory import Purgatory
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from harness.values import TopicPartition

_log = logging.getLogger(__name__)

T = TypeVar("T")

_ElectionTopic = ElectLeadersResponse.ReplicaElectionResult
_AlteredTopic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


class LeadershipController(Protocol):
    """The controller's methods for these requests; each raises ControllerMovedError."""

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], kind: ElectionKind
    ) -> dict[TopicPartition, ElectionResult]:
        """Hold elections and return the result of each partition."""
        ...

    async def reassign(self, wishes: Mapping[TopicPartition, Wish]) -> dict[TopicPartition, Reassigned]:
        """Begin or cancel reassignments and return the result of each request."""
        ...

    async def reassignments(self, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Assignment]:
        """Return the running reassignments."""
        ...


@dataclass(slots=True)
class _Known:
    """Waits until the metadata cache names the elected leaders."""

    metadata: MetadataCache
    leaders: Mapping[TopicPartition, int]

    def missing(self) -> list[TopicPartition]:
        """Return the partitions whose new leader is not known here yet."""
        return [partition for partition, leader in self.leaders.items() if self._leader(partition) != leader]

    def try_complete(self, changed: str | None) -> bool:
        """Whether all are known; every partition is checked at every change."""
        return not self.missing()

    def _leader(self, partition: TopicPartition) -> int | None:
        known = self.metadata.partition(*partition)
        return None if known is None else known.leader


@dataclass(slots=True)
class LeadershipHandlers:
    """Serves the requests, on the controller only."""

    controller: LeadershipController
    metadata: MetadataCache
    _waiting: Purgatory[str] = field(default_factory=Purgatory)

    async def elect_leaders(self, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
        """Hold elections, and answer when this broker knows the new leaders or the time is over."""
        deadline_s = asyncio.get_running_loop().time() + request.timeout_ms / 1000
        everything = request.topic_partitions is None
        partitions = self._everything() if everything else _named(request)
        try:
            kind = ElectionKind(request.election_type if context.api_version >= 1 else ElectionKind.PREFERRED)
        except ValueError:
            return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=[])
        try:
            results = await self.controller.elect_leaders(partitions, kind)
        except ControllerMovedError as error:
            _log.info("elect_leaders.refused reason=%s", error)
            results = dict.fromkeys(partitions, ElectionResult(error=ErrorCode.NOT_CONTROLLER))
        results |= await self._unknown_here(results, deadline_s - asyncio.get_running_loop().time())
        if everything:
            results = {p: result for p, result in results.items() if result.error != ErrorCode.ELECTION_NOT_NEEDED}
        partition = _ElectionTopic.PartitionResult
        return ElectLeadersResponse(
            error_code=ErrorCode.NONE,
            replica_election_results=[
                _ElectionTopic(
                    topic=topic,
                    partition_result=[
                        partition(
                            partition_id=number,
                            error_code=result.error,
                            error_message=_message(result.error, result.message),
                        )
                        for number, result in of_topic
                    ],
                )
                for topic, of_topic in _by_topic(results)
            ],
        )

    async def _unknown_here(
        self, results: Mapping[TopicPartition, ElectionResult], timeout_s: float
    ) -> dict[TopicPartition, ElectionResult]:
        """Wait for the elected leaders to appear, and return a time-out for each that did not."""
        elected = {p: result.leader for p, result in results.items() if result.error is ErrorCode.NONE}
        operation = _Known(self.metadata, elected)
        if operation.missing():
            await self._waiting.wait(operation, {topic for topic, _ in elected}, timeout_s)
        return dict.fromkeys(operation.missing(), ElectionResult(error=ErrorCode.REQUEST_TIMED_OUT))

    def metadata_changed(self, topics: Iterable[str]) -> None:
        """Look again at requests that wait for these topics."""
        for topic in topics:
            self._waiting.check(topic)

    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest, context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        """Begin reassignments, or cancel those without replicas; answered once they have begun."""
        wishes = {
            (topic.name, each.partition_index): Wish(target=None if each.replicas is None else tuple(each.replicas))
            for topic in request.topics
            for each in topic.partitions
        }
        try:
            results = await self.controller.reassign(wishes)
        except ControllerMovedError as error:
            _log.info("reassignment.refused reason=%s", error)
            return AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, responses=[])
        partition = _AlteredTopic.ReassignablePartitionResponse
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE,
            responses=[
                _AlteredTopic(
                    name=topic,
                    partitions=[
                        partition(
                            partition_index=number,
                            error_code=result.error,
                            error_message=_message(result.error, result.message),
                        )
                        for number, result in of_topic
                    ],
                )
                for topic, of_topic in _by_topic(results)
            ],
        )

    async def list_reassignments(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        """Return the running reassignments."""
        partitions = None
        if request.topics is not None:
            partitions = [(topic.name, number) for topic in request.topics for number in topic.partition_indexes]
        try:
            running = await self.controller.reassignments(partitions)
        except ControllerMovedError:
            return ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
        partition = _OngoingTopic.OngoingPartitionReassignment
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE,
            topics=[
                _OngoingTopic(
                    name=topic,
                    partitions=[
                        partition(
                            partition_index=number,
                            replicas=list(assignment.replicas),
                            adding_replicas=list(assignment.adding),
                            removing_replicas=list(assignment.removing),
                        )
                        for number, assignment in of_topic
                    ],
                )
                for topic, of_topic in _by_topic(running)
            ],
        )

    def _everything(self) -> list[TopicPartition]:
        return [(topic, info.partition) for topic in self.metadata.topics() for info in self.metadata.partitions(topic)]


def _named(request: ElectLeadersRequest) -> list[TopicPartition]:
    return [(named.topic, number) for named in request.topic_partitions or () for number in named.partitions]


def _by_topic(results: Mapping[TopicPartition, T]) -> Iterator[tuple[str, list[tuple[int, T]]]]:
    grouped: dict[str, list[tuple[int, T]]] = {}
    for (topic, number), result in sorted(results.items(), key=lambda item: item[0]):
        grouped.setdefault(topic, []).append((number, result))
    yield from grouped.items()


def _message(error: ErrorCode, message: str) -> str | None:
    """Return the message for a client; empty without an error."""
    return None if error is ErrorCode.NONE else message or error.name
