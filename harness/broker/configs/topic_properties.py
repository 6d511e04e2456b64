"""Properties of topics: Kafka's names, types, bounds and defaults (`LogConfig`, `TopicConfig`).

Each has the broker's property that applies when the topic sets none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.broker.configs.config import PROPERTIES
from harness.broker.configs.config_types import (
    BOOLEAN,
    COMPRESSION_TYPE,
    INT_MAX,
    ConfigError,
    ConfigType,
    Property,
    TypeCode,
    choice,
    integer,
    listing,
    long,
    only,
    ratio,
    unknown,
)
from harness.broker.configs.versions import VERSION

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProperty:
    """One property of topics."""

    name: str
    parse: ConfigType
    brokers: tuple[tuple[str, int], ...] = ()
    """The broker's properties that hold when the topic says nothing, the first one that is set, with the factor to
    the topic's unit; none when `default` holds."""
    default: Any = None
    idle: str = ""
    """Why it has no effect here; empty if it has one."""

    def inherited(self, values: Mapping[str, Any]) -> Any:
        """Return the value for a topic without its own, from a broker's properties."""
        own = ((values[name], factor) for name, factor in self.brokers if values[name] is not None)
        value, factor = next(own, (self.default, 1))
        return value if factor == 1 else value * factor  # a flag times one would be a number


def _like(name: str, parse: ConfigType, *brokers: str) -> TopicProperty:
    return TopicProperty(name=name, parse=parse, brokers=tuple((broker, 1) for broker in brokers))


def _time(name: str, parse: ConfigType, broker: str) -> TopicProperty:
    return TopicProperty(name=name, parse=parse, brokers=((f"{broker}.ms", 1), (f"{broker}.hours", HOUR_MS)))


def _idle(name: str, parse: ConfigType, why: str, *brokers: str) -> TopicProperty:
    default = None if brokers else parse.parse("false" if parse.code is TypeCode.BOOLEAN else "")
    return TopicProperty(
        name=name, parse=parse, brokers=tuple((broker, 1) for broker in brokers), default=default, idle=why
    )


_NO_TIERS = "no record leaves the broker's own disks"
_ONE_FORMAT = "records are of format v2, of which nothing is ever converted"
_ONE_WAY = "this is the only way that there is here"
_OFF = only("false", TypeCode.BOOLEAN, why="there is no tiered storage here")
_UNTHROTTLED = only("", TypeCode.LIST, why="there are no quotas here, nothing is throttled")

TOPIC_PROPERTIES: tuple[TopicProperty, ...] = (
    _like("cleanup.policy", listing("compact", "delete"), "log.cleanup.policy"),
    _idle("compression.gzip.level", only("-1", TypeCode.INT), _ONE_WAY, "compression.gzip.level"),
    _idle("compression.lz4.level", only("9", TypeCode.INT), _ONE_WAY, "compression.lz4.level"),
    _idle("compression.zstd.level", only("3", TypeCode.INT), _ONE_WAY, "compression.zstd.level"),
    _like("compression.type", COMPRESSION_TYPE, "compression.type"),
    _like("delete.retention.ms", long(0), "log.cleaner.delete.retention.ms"),
    _like("file.delete.delay.ms", long(0), "log.segment.delete.delay.ms"),
    _like("flush.messages", long(1), "log.flush.interval.messages"),
    _like("flush.ms", long(0), "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    _idle("follower.replication.throttled.replicas", _UNTHROTTLED, "nothing is throttled"),
    _like("index.interval.bytes", integer(0), "log.index.interval.bytes"),
    _idle("leader.replication.throttled.replicas", _UNTHROTTLED, "nothing is throttled"),
    _idle("local.retention.bytes", only("-2", TypeCode.LONG), _NO_TIERS, "log.local.retention.bytes"),
    _idle("local.retention.ms", only("-2", TypeCode.LONG), _NO_TIERS, "log.local.retention.ms"),
    _like("max.compaction.lag.ms", long(1), "log.cleaner.max.compaction.lag.ms"),
    _like("max.message.bytes", integer(0), "message.max.bytes"),
    _idle("message.downconversion.enable", BOOLEAN, _ONE_FORMAT, "log.message.downconversion.enable"),
    _idle("message.format.version", VERSION, _ONE_FORMAT, "log.message.format.version"),
    _like("message.timestamp.difference.max.ms", long(0), "log.message.timestamp.difference.max.ms"),
    _like("message.timestamp.before.max.ms", long(0), "log.message.timestamp.before.max.ms"),
    _like("message.timestamp.after.max.ms", long(0), "log.message.timestamp.after.max.ms"),
    _like("message.timestamp.type", choice("CreateTime", "LogAppendTime"), "log.message.timestamp.type"),
    _like("min.cleanable.dirty.ratio", ratio(), "log.cleaner.min.cleanable.ratio"),
    _like("min.compaction.lag.ms", long(0), "log.cleaner.min.compaction.lag.ms"),
    _like("min.insync.replicas", integer(1), "min.insync.replicas"),
    _idle(
        "preallocate",
        only("false", TypeCode.BOOLEAN, why="files grow as they are written"),
        _ONE_WAY,
        "log.preallocate",
    ),
    _idle("remote.log.copy.disable", _OFF, _NO_TIERS),
    _idle("remote.log.delete.on.disable", _OFF, _NO_TIERS),
    _idle("remote.storage.enable", _OFF, _NO_TIERS),
    _like("retention.bytes", long(), "log.retention.bytes"),
    TopicProperty(
        name="retention.ms",
        parse=long(-1),
        brokers=(("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    ),
    _like("segment.bytes", integer(14, INT_MAX), "log.segment.bytes"),
    _like("segment.index.bytes", integer(4), "log.index.size.max.bytes"),
    _time("segment.jitter.ms", long(0), "log.roll.jitter"),
    _time("segment.ms", long(1), "log.roll"),
    _like("unclean.leader.election.enable", BOOLEAN, "unclean.leader.election.enable"),
)

BY_NAME: dict[str, TopicProperty] = {prop.name: prop for prop in TOPIC_PROPERTIES}


def parse_topic_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties that a topic sets, each with its own type.

    Raises:
        ConfigError: names every unknown and malformed property at once, or says which two contradict each other.
    """
    values = _parse("topic property", properties, BY_NAME)
    shortest, longest = (values.get(f"{end}.compaction.lag.ms") for end in ("min", "max"))
    if shortest is not None and longest is not None and shortest > longest:
        raise ConfigError(f"min.compaction.lag.ms ({shortest}) is more than max.compaction.lag.ms ({longest})")
    return values


def inherited(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that topics inherit from a broker with these properties."""
    return {prop.name: prop.inherited(values) for prop in TOPIC_PROPERTIES}


PER_BROKER = frozenset({"advertised.listeners"})
"""Those of `DYNAMIC` that two brokers cannot share."""
DYNAMIC: dict[str, Property] = {
    prop.name: prop
    for prop in PROPERTIES
    if prop.name in PER_BROKER
    or any(prop.name == topic_property.brokers[0][0] for topic_property in TOPIC_PROPERTIES if topic_property.brokers)
}
"""The broker's properties that can be set while it runs: those that topics inherit (Kafka's `DynamicLogConfig`), and
where it is reached."""


def parse_dynamic_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties that are set for a broker while it runs, each with its own type.

    Raises:
        ConfigError: names every property that is unknown, malformed, or not to be set while the broker runs.
    """
    return _parse("dynamic broker property", properties, DYNAMIC)


def _parse(
    what: str, properties: Mapping[str, str], known: Mapping[str, TopicProperty] | Mapping[str, Property]
) -> dict[str, Any]:
    problems, values = [], {}
    for name, text in properties.items():
        if name not in known:
            problems.append(unknown(what, name, known))
            continue
        try:
            values[name] = known[name].parse(text)
        except ValueError as error:
            problems.append(f"{name}={text}: {error}")
    if problems:
        raise ConfigError("; ".join(sorted(problems)))
    return values
