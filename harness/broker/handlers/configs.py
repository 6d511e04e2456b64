"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: configurations of topics and brokers."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from harness.broker.administration.config_changes import (
    ConfigChanges,
    ConfigRefused,
    PropertyChange,
    Resource,
    check_broker,
)
from harness.broker.administration.config_entries import ConfigEntry, ConfigView
from harness.broker.topics import TopicRefused, check_name
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.topics import read_topic_config
from harness.broker.zookeeper.znodes import MalformedZnode

_Described = DescribeConfigsResponse.DescribeConfigsResult
_Line = _Described.DescribeConfigsResourceResult
_Synonym = _Line.DescribeConfigsSynonym
_Altered = AlterConfigsResponse.AlterConfigsResourceResponse
_Amended = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


@dataclass(slots=True)
class ConfigHandlers:
    """Serves requests about configurations; any broker answers for topics, each for itself."""

    changes: ConfigChanges

    async def describe(self, request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
        """Return effective values of topics and brokers, and their sources."""
        results = []
        for resource in request.resources:
            described = _Described(resource_type=resource.resource_type, resource_name=resource.resource_name)
            try:
                entries = await self._entries(resource.resource_type, resource.resource_name)
            except (ConfigRefused, TopicRefused) as refused:
                described.error_code, described.error_message, described.configs = refused.error, refused.message, []
            else:
                described.error_code, described.error_message = ErrorCode.NONE, None
                described.configs = _lines(entries, resource.configuration_keys, with_synonyms=request.include_synonyms)
            results.append(described)
        return DescribeConfigsResponse(results=results)

    async def alter(self, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
        """Replace whole configurations."""

        async def replaced(resource: AlterConfigsRequest.AlterConfigsResource) -> None:
            target = self.changes.target(resource.resource_type, resource.resource_name)
            properties = [(config.name, config.value) for config in resource.configs]
            await self.changes.replace(target, properties, validate_only=request.validate_only)

        return AlterConfigsResponse(responses=[await _answered(_Altered, each, replaced) for each in request.resources])

    async def incremental_alter(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        """Change single properties."""

        async def amended(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> None:
            target = self.changes.target(resource.resource_type, resource.resource_name)
            changes = [
                PropertyChange(name=c.name, operation=c.config_operation, value=c.value) for c in resource.configs
            ]
            await self.changes.amend(target, changes, validate_only=request.validate_only)

        responses = [await _answered(_Amended, each, amended) for each in request.resources]
        return IncrementalAlterConfigsResponse(responses=responses)

    async def _entries(self, resource_type: int, name: str) -> list[ConfigEntry]:
        """Return all properties of a topic or broker.

        Raises:
            ConfigRefused, TopicRefused: there is no such resource here.
        """
        changes = self.changes
        view = ConfigView(config=changes.config, layers=changes.configs.layers)
        if resource_type == Resource.BROKER:
            if not name:
                return view.all_brokers()
            check_broker(name, changes.config.broker_id)
            return view.broker()
        if resource_type != Resource.TOPIC:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource_type}")
        check_name(name)
        if not changes.metadata.partitions(name):
            raise ConfigRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        try:
            return view.topic(await read_topic_config(changes.session.current, name))
        except (ZooKeeperError, MalformedZnode) as error:
            raise ConfigRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot be read: {error!r}") from error


async def _answered(answer: type[Any], resource: Any, change: Callable[[Any], Awaitable[None]]) -> Any:
    """Return the result of one resource's change, as an `answer` of the request's own class."""
    error, message = ErrorCode.NONE, None
    try:
        await change(resource)
    except ConfigRefused as refused:
        error, message = refused.error, refused.message
    return answer(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _lines(entries: list[ConfigEntry], names: Collection[str] | None, *, with_synonyms: bool) -> list[_Line]:
    """Return the requested entries; all when none is named, as in Kafka."""
    return [_line(entry, with_synonyms=with_synonyms) for entry in entries if not names or entry.name in names]


def _line(entry: ConfigEntry, *, with_synonyms: bool) -> _Line:
    synonyms = entry.synonyms if with_synonyms else ()
    return _Line(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=[_Synonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=entry.type,
        documentation=None,
    )
