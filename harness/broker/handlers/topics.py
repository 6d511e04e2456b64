"""DeleteTopics and CreatePartitions: only the controller answers, when it is done or the time is over."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from harness.broker.administration.topic_changes import MorePartitions, TopicChanges
from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig
from harness.broker.topics import TopicRefused
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_Deleted = DeleteTopicsResponse.DeletableTopicResult
_Grown = CreatePartitionsResponse.CreatePartitionsTopicResult
_FIRST_VERSION_WITH_DISABLED = 3
"""DeleteTopics below it does not know TOPIC_DELETION_DISABLED."""


class DeletingController(Protocol):
    """The controller's methods for these requests."""

    @property
    def is_active(self) -> bool:
        """Whether this broker is controller."""
        ...

    def is_deleting(self, topic: str) -> bool:
        """Whether a topic is to be deleted."""
        ...


@dataclass(slots=True)
class TopicHandlers:
    """Serves the requests that change topics."""

    config: BrokerConfig
    controller: DeletingController
    changes: TopicChanges
    creator: TopicCreator

    async def delete_topics(self, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
        """Delete topics, and answer when this broker has removed them or the time is over."""
        names = list(dict.fromkeys(request.topic_names))
        if not self.controller.is_active:
            return _deleted(dict.fromkeys(names, ErrorCode.NOT_CONTROLLER))
        if not self.config["delete.topic.enable"]:
            known = context.api_version >= _FIRST_VERSION_WITH_DISABLED
            error = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
            return _deleted(dict.fromkeys(names, error))
        results = dict.fromkeys(names, ErrorCode.NONE)
        for name in names:
            try:
                await self.changes.delete(name)
            except TopicRefused as refusal:
                results[name] = refusal.error
        wanted = [name for name, error in results.items() if error is ErrorCode.NONE]
        for name in await self.creator.wait_gone(wanted, request.timeout_ms / 1000):
            results[name] = ErrorCode.REQUEST_TIMED_OUT
        return _deleted(results)

    async def create_partitions(
        self, request: CreatePartitionsRequest, context: RequestContext
    ) -> CreatePartitionsResponse:
        """Add partitions, and answer when this broker knows their leaders or the time is over."""
        if not self.controller.is_active:
            refused = [_grown(topic.name, ErrorCode.NOT_CONTROLLER, "") for topic in request.topics]
            return CreatePartitionsResponse(results=refused)
        results: dict[str, _Grown] = {}
        grown: dict[str, int] = {}
        named = Counter(topic.name for topic in request.topics)
        for topic in request.topics:
            assignments = topic.assignments
            wanted = MorePartitions(
                topic=topic.name,
                count=topic.count,
                assignments=None if assignments is None else [placed.broker_ids for placed in assignments],
            )
            try:
                self._check_may_grow(topic.name, named)
                grown[topic.name] = await self.changes.add_partitions(wanted, validate_only=request.validate_only)
            except TopicRefused as refusal:
                results[topic.name] = _grown(topic.name, refusal.error, refusal.message)
            else:
                results[topic.name] = _grown(topic.name, ErrorCode.NONE, "")
        if grown and not request.validate_only:
            for name in await self.creator.wait_led(grown, request.timeout_ms / 1000):
                results[name] = _grown(name, ErrorCode.REQUEST_TIMED_OUT, "added, but without leaders yet")
        return CreatePartitionsResponse(results=list(results.values()))

    def _check_may_grow(self, name: str, named: Counter[str]) -> None:
        if named[name] > 1:
            raise TopicRefused(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        if self.controller.is_deleting(name):
            raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")


def _deleted(results: dict[str, ErrorCode]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_Deleted(name=name, error_code=error) for name, error in results.items()])


def _grown(name: str, error: ErrorCode, message: str) -> _Grown:
    return _Grown(name=name, error_code=error, error_message=message or None)
