"""Changes configurations of topics or brokers: checks a request, then writes it where every broker sees it.

Any broker does this, not the controller alone; the last writer wins. After Kafka's `ZkAdminManager`. An unknown
property of a broker is refused, which Kafka would store for plugins.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.broker.administration.topic_configs import TopicConfigs
from harness.broker.configs.config import PROPERTIES, BrokerConfig, listener_problems
from harness.broker.configs.config_types import ConfigError, TypeCode, as_text
from harness.broker.configs.topic_properties import (
    BY_NAME,
    DYNAMIC,
    PER_BROKER,
    parse_dynamic_config,
    parse_topic_config,
)
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import read_config, write_config
from harness.broker.zookeeper.znodes import (
    ALL_BROKERS,
    BROKERS_KIND,
    TOPICS_KIND,
    MalformedZnode,
    broker_config_path,
    topic_config_path,
    topic_path,
)

_log = logging.getLogger(__name__)

_PROPERTY_NAMES = frozenset(prop.name for prop in PROPERTIES)


class ConfigRefused(Exception):
    """A configuration may not be read or changed so; has the error code and message of the answer."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


class Resource(IntEnum):
    """Kafka's numbers of configuration resources."""

    TOPIC = 2
    BROKER = 4


class Operation(IntEnum):
    """Kafka's numbers of operations on a property (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The subject of a configuration: a topic, a broker, or all brokers."""

    kind: str
    name: str

    @property
    def path(self) -> str:
        """Its znode."""
        return topic_config_path(self.name) if self.kind == TOPICS_KIND else broker_config_path(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyChange:
    """One operation on one property."""

    name: str
    operation: int
    value: str | None


@dataclass(slots=True)
class ConfigChanges:
    """Carries checked changes to ZooKeeper."""

    config: BrokerConfig
    metadata: MetadataCache
    configs: TopicConfigs
    session: ZooKeeperSession

    def target(self, resource_type: int, name: str) -> Target:
        """Return the subject of a request.

        Raises:
            ConfigRefused: the broker id is unknown, or another broker's.
        """
        if resource_type == Resource.TOPIC:
            if not name:
                raise ConfigRefused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            if not self.metadata.partitions(name):
                raise _no_topic(name)
            return Target(kind=TOPICS_KIND, name=name)
        if resource_type != Resource.BROKER:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
        if not name:
            return Target(kind=BROKERS_KIND, name=ALL_BROKERS)
        check_broker(name, self.config.broker_id)
        return Target(kind=BROKERS_KIND, name=name)

    async def replace(
        self, target: Target, properties: Sequence[tuple[str, str | None]], *, validate_only: bool
    ) -> None:
        """Set exactly these properties of a target (AlterConfigs).

        Raises:
            ConfigRefused: a rule is broken, or ZooKeeper did not take it.
        """
        _refuse_duplicates([name for name, _ in properties])
        _refuse_nulls([name for name, value in properties if value is None])
        config = {name: value or "" for name, value in properties}
        if not self.metadata.rules.replaced_configs_start_empty:
            config = {**await read_config(self.session.current, target.path), **config}
        await self._write(target, config, validate_only=validate_only)

    async def amend(self, target: Target, changes: Sequence[PropertyChange], *, validate_only: bool) -> None:
        """Change some properties of a target and leave the others (IncrementalAlterConfigs).

        Raises:
            ConfigRefused: a rule is broken, or ZooKeeper did not take it.
        """
        _refuse_duplicates([change.name for change in changes])
        _refuse_nulls(
            [change.name for change in changes if change.value is None and change.operation != Operation.DELETE]
        )
        try:
            config = await read_config(self.session.current, target.path)
        except (ZooKeeperError, MalformedZnode) as error:
            raise _not_taken(error) from error
        for change in changes:
            self._carry_out(target, change, config)
        await self._write(target, config, validate_only=validate_only)

    def _carry_out(self, target: Target, change: PropertyChange, config: dict[str, str]) -> None:
        value = change.value or ""
        if change.operation == Operation.SET:
            config[change.name] = value
        elif change.operation == Operation.DELETE:
            config.pop(change.name, None)
        elif change.operation in (Operation.APPEND, Operation.SUBTRACT):
            words = self._words(target, change, config)
            operands = value.split(",")
            if change.operation == Operation.APPEND:
                words += [word for word in operands if word not in words]
            else:
                words = [word for word in words if word not in operands]
            config[change.name] = ",".join(words)
        else:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Unknown operation {change.operation}")

    def _words(self, target: Target, change: PropertyChange, config: Mapping[str, str]) -> list[str]:
        """Return the present elements of a list property."""
        known = BY_NAME.get(change.name) if target.kind == TOPICS_KIND else DYNAMIC.get(change.name)
        if known is None or known.parse.code is not TypeCode.LIST:
            word = Operation(change.operation).name.lower()
            problem = f"Config value {word} is not allowed for config key: {change.name}"
            raise ConfigRefused(ErrorCode.INVALID_CONFIG, problem)
        if target.kind == TOPICS_KIND:
            inherited = as_text(self.configs.of("")[change.name])
        else:
            inherited = as_text(self.configs.broker(change.name))
        text = config.get(change.name, inherited or "")
        return [word for word in text.split(",") if word]

    async def _write(self, target: Target, config: Mapping[str, str], *, validate_only: bool) -> None:
        await self._require(target)
        try:
            if target.kind == TOPICS_KIND:
                parse_topic_config(config)
            else:
                _check_dynamic(config, PER_BROKER if target.name == ALL_BROKERS else frozenset())
                values = {**self.config.values, **parse_dynamic_config(config)}
                if problems := list(listener_problems(BrokerConfig(values))):
                    raise ConfigError("; ".join(problems))
        except ConfigError as error:
            code = ErrorCode.INVALID_CONFIG if target.kind == TOPICS_KIND else ErrorCode.INVALID_REQUEST
            raise ConfigRefused(code, str(error)) from None
        if validate_only and self.metadata.rules.config_changes_can_be_tried:
            return
        try:
            await write_config(self.session.current, target.kind, target.name, config)
        except ZooKeeperError as error:
            raise _not_taken(error) from error
        _log.info("config.changed kind=%s name=%s config=%s", target.kind, target.name, dict(config))

    async def _require(self, target: Target) -> None:
        """Refuse a topic that was deleted, of which this broker may not have heard yet (`validateTopicConfig`)."""
        try:
            if target.kind == TOPICS_KIND and await self.session.current.exists(topic_path(target.name)) is None:
                raise _no_topic(target.name)
        except ZooKeeperError as error:
            raise _not_taken(error) from error


def _no_topic(name: str) -> ConfigRefused:
    return ConfigRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def check_broker(name: str, broker_id: int) -> None:
    """Raise ConfigRefused unless `name` is the id of this broker."""
    if not name.isdecimal():
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker_id:
        raise ConfigRefused(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {broker_id}, but received {name}"
        )


def _check_dynamic(config: Mapping[str, str], per_broker: Collection[str]) -> None:
    own = sorted(config.keys() & set(per_broker))
    if own:
        raise ConfigError(f"Cannot update these configs at default cluster level: {', '.join(own)}")
    fixed = sorted(name for name in config if name in _PROPERTY_NAMES and name not in DYNAMIC)
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: {', '.join(fixed)}")


def _refuse_duplicates(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _refuse_nulls(names: Sequence[str]) -> None:
    if names:
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(names)}")


def _not_taken(error: Exception) -> ConfigRefused:
    return ConfigRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper did not take it: {error!r}")
