"""CreateTopics and ControlledShutdown, which only the controller answers."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.broker.administration.config_entries import ConfigEntry
from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.controller.errors import BrokerNotAvailableError, ControllerMovedError, StaleBrokerEpochError
from harness.broker.topics import NewTopic, TopicRefused, TopicRequest
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_log = logging.getLogger(__name__)

_Topic = CreateTopicsRequest.CreatableTopic
_Result = CreateTopicsResponse.CreatableTopicResult
_Config = _Result.CreatableTopicConfigs

_SHUTDOWN_ERRORS: dict[type[Exception], ErrorCode] = {
    ControllerMovedError: ErrorCode.STALE_CONTROLLER_EPOCH,
    StaleBrokerEpochError: ErrorCode.STALE_BROKER_EPOCH,
    BrokerNotAvailableError: ErrorCode.BROKER_NOT_AVAILABLE,
}


class AdminController(Protocol):
    """The controller's methods for these requests."""

    @property
    def is_active(self) -> bool:
        """Whether this broker is controller."""
        ...

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[tuple[str, int]]:
        """Move leaders away from a broker and return the partitions that it still leads."""
        ...


@dataclass(slots=True)
class AdminHandlers:
    """Serves the controller's requests."""

    controller: AdminController
    creator: TopicCreator
    described: Callable[[Mapping[str, str]], Sequence[ConfigEntry]]
    """Returns every property of a topic, with its own values."""

    async def create_topics(self, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
        """Create topics, and answer when this broker knows their leaders or the time is over."""
        if not self.controller.is_active:
            refused = [_result(topic.name, ErrorCode.NOT_CONTROLLER, "") for topic in request.topics]
            return CreateTopicsResponse(topics=refused)
        results: dict[str, _Result] = {}
        created: dict[str, int] = {}
        named = Counter(topic.name for topic in request.topics)
        for topic in request.topics:
            if named[topic.name] > 1:
                message = "the request names this topic more than once"
                results[topic.name] = _result(topic.name, ErrorCode.INVALID_REQUEST, message)
                continue
            try:
                made = await self.creator.create(_topic_request(topic), validate_only=request.validate_only)
            except TopicRefused as refusal:
                results[topic.name] = _result(topic.name, refusal.error, refusal.message)
            else:
                results[topic.name] = self._created(made)
                created[topic.name] = len(made.assignment)
        if created and not request.validate_only:
            for name in await self.creator.wait_led(created, request.timeout_ms / 1000):
                results[name] = _result(name, ErrorCode.REQUEST_TIMED_OUT, "created, but without leaders yet")
        return CreateTopicsResponse(topics=[results[topic.name] for topic in request.topics])

    def _created(self, topic: NewTopic) -> _Result:
        """Return a topic's description for clients from v5 on (KIP-525)."""
        result = _result(topic.name, ErrorCode.NONE, "")
        result.num_partitions = len(topic.assignment)
        result.replication_factor = len(topic.assignment[0])
        result.configs = [
            _Config(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=False,
            )
            for entry in self.described(topic.config)
        ]
        return result

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest, context: RequestContext
    ) -> ControlledShutdownResponse:
        """Move leaders away from a broker that wants to stop."""
        _log.info("controlled_shutdown.asked broker=%d broker_epoch=%d", request.broker_id, request.broker_epoch)
        try:
            remaining = await self.controller.controlled_shutdown(request.broker_id, request.broker_epoch)
        except tuple(_SHUTDOWN_ERRORS) as error:
            _log.warning("controlled_shutdown.refused broker=%d error=%r", request.broker_id, error)
            return ControlledShutdownResponse(error_code=_SHUTDOWN_ERRORS[type(error)], remaining_partitions=[])
        partition = ControlledShutdownResponse.RemainingPartition
        return ControlledShutdownResponse(
            error_code=ErrorCode.NONE,
            remaining_partitions=[partition(topic_name=topic, partition_index=number) for topic, number in remaining],
        )


def _topic_request(topic: _Topic) -> TopicRequest:
    nulls_last = sorted(
        topic.configs, key=lambda config: config.value is None
    )  # a null refuses the topic, even if a value follows
    return TopicRequest(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={placed.partition_index: placed.broker_ids for placed in topic.assignments},
        config={config.name: config.value for config in nulls_last},
    )


def _result(name: str, error: ErrorCode, message: str) -> _Result:
    return _Result(name=name, error_code=error, error_message=message or None, configs=[])
