"""The broker's configuration: Kafka's property names, types, defaults and bounds; unknown names are refused."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - refused where others would have to connect to it


class ConfigError(ValueError):
    """A property is unknown, malformed or out of bounds; the message names all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener."""

    name: str
    """CLIENT listener name, e.g. PLAINTEXT, or the listener for other brokers."""
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One known property."""

    name: str
    default: str | None
    """Text as in a properties file; None when it must be given."""
    parse: Callable[[str], Any]


def _integer(low: int, high: int = 2**63 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _text(text: str) -> str:
    return text


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return parse


def _endpoints(text: str) -> tuple[Endpoint, ...]:
    endpoints = []
    for part in text.split(","):
        name, separator, address = part.strip().partition("://")
        host, colon, port = address.rpartition(":")
        if not separator or not colon or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"{part.strip()!r} is not NAME://host:port")
        endpoints.append(Endpoint(name=name, host=host, port=int(port)))
    return tuple(endpoints)


def _advertised(text: str) -> tuple[Endpoint, ...]:
    return _endpoints(text) if text else ()


PROPERTIES: tuple[Property, ...] = (
    Property(name="broker.id", default=None, parse=_integer(0, 2**31 - 1)),
    Property(name="listeners", default=None, parse=_endpoints),
    Property(name="advertised.listeners", default="", parse=_advertised),
    Property(name="inter.broker.listener.name", default="REPL", parse=_text),
    Property(name="broker.rack", default="", parse=_text),
    Property(name="log.dir", default=None, parse=_text),
    Property(name="zookeeper.connect", default=None, parse=_text),
    Property(name="zookeeper.session.timeout.ms", default="18000", parse=_integer(1)),
    Property(name="zookeeper.connection.timeout.ms", default="18000", parse=_integer(1)),
    Property(name="request.timeout.ms", default="30000", parse=_integer(1)),
    Property(name="controller.socket.timeout.ms", default="30000", parse=_integer(1)),
    Property(name="controlled.shutdown.enable", default="true", parse=_boolean),
    Property(name="controlled.shutdown.max.retries", default="3", parse=_integer(0)),
    Property(name="controlled.shutdown.retry.backoff.ms", default="5000", parse=_integer(0)),
    Property(name="num.partitions", default="1", parse=_integer(1)),
    Property(name="default.replication.factor", default="1", parse=_integer(1)),
    Property(name="auto.create.topics.enable", default="true", parse=_boolean),
    Property(name="min.insync.replicas", default="1", parse=_integer(1)),
    Property(name="unclean.leader.election.enable", default="false", parse=_boolean),
    Property(name="message.max.bytes", default="1048588", parse=_integer(0, 2**31 - 1)),
    Property(name="log.segment.bytes", default="1073741824", parse=_integer(14, 2**31 - 1)),
    Property(name="log.index.interval.bytes", default="4096", parse=_integer(0, 2**31 - 1)),
    Property(name="log.flush.offset.checkpoint.interval.ms", default="60000", parse=_integer(1)),
    Property(name="replica.lag.time.max.ms", default="30000", parse=_integer(1)),
    Property(name="replica.fetch.wait.max.ms", default="500", parse=_integer(0)),
    Property(name="replica.fetch.min.bytes", default="1", parse=_integer(1)),
    Property(name="replica.fetch.max.bytes", default="1048576", parse=_integer(0)),
    Property(name="replica.fetch.response.max.bytes", default="10485760", parse=_integer(0)),
    Property(name="replica.fetch.backoff.ms", default="1000", parse=_integer(0)),
    Property(name="replica.socket.timeout.ms", default="30000", parse=_integer(1)),
    Property(name="replica.high.watermark.checkpoint.interval.ms", default="5000", parse=_integer(1)),
    Property(name="fetch.max.bytes", default="57671680", parse=_integer(1024)),
    Property(name="socket.request.max.bytes", default="104857600", parse=_integer(1, 2**31 - 1)),
    Property(name="offsets.topic.num.partitions", default="50", parse=_integer(1)),
    Property(name="offsets.topic.replication.factor", default="3", parse=_integer(1)),
    Property(name="offsets.topic.segment.bytes", default="104857600", parse=_integer(1)),
    Property(name="offsets.commit.timeout.ms", default="5000", parse=_integer(1)),
    Property(name="offset.metadata.max.bytes", default="4096", parse=_integer(0)),
)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Parsed properties; `config["replica.lag.time.max.ms"]` has the property's own type."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def broker_id(self) -> int:
        """The id that this broker registers under."""
        return int(self.values["broker.id"])

    @property
    def peer_endpoint(self) -> Endpoint:
        """The listener for other brokers, as they reach it."""
        name = self.values["inter.broker.listener.name"]
        return next(endpoint for endpoint in self.advertised_endpoints if endpoint.name == name)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All listeners, as this broker binds them."""
        return tuple(self.values["listeners"])

    @property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """What clients and brokers are told to connect to, in the order it is registered; by default the listeners."""
        return tuple(self.values["advertised.listeners"]) or self.endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProperty:
    """One property that a topic may set for itself."""

    name: str
    default_from: str
    """The broker's property that holds when the topic says nothing; empty when `default` does."""
    parse: Callable[[str], Any]
    default: Any = None


TOPIC_PROPERTIES: tuple[TopicProperty, ...] = (
    TopicProperty(name="min.insync.replicas", default_from="min.insync.replicas", parse=_integer(1, 2**31 - 1)),
    TopicProperty(name="unclean.leader.election.enable", default_from="unclean.leader.election.enable", parse=_boolean),
    TopicProperty(name="max.message.bytes", default_from="message.max.bytes", parse=_integer(0, 2**31 - 1)),
    TopicProperty(name="segment.bytes", default_from="log.segment.bytes", parse=_integer(14, 2**31 - 1)),
    TopicProperty(
        name="cleanup.policy", default_from="", default="delete", parse=_choice("delete", "compact", "compact,delete")
    ),
    # Accepted because clients set them by habit: nothing is ever deleted for its age or size, and batches keep the
    # producer's codec and timestamps.
    TopicProperty(name="retention.ms", default_from="", default=604_800_000, parse=_integer(-1)),
    TopicProperty(name="retention.bytes", default_from="", default=-1, parse=_integer(-1)),
    TopicProperty(name="compression.type", default_from="", default="producer", parse=_choice("producer")),
    TopicProperty(name="message.timestamp.type", default_from="", default="CreateTime", parse=_choice("CreateTime")),
)


def parse_topic_config(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties that a topic sets, each with its own type.

    Raises:
        ConfigError: names every unknown and malformed property at once.
    """
    known = {prop.name: prop for prop in TOPIC_PROPERTIES}
    problems, values = [], {}
    for name, text in given.items():
        if name not in known:
            problems.append(f"unknown topic property {name}")
            continue
        try:
            values[name] = known[name].parse(text)
        except ValueError as error:
            problems.append(f"{name}={text}: {error}")
    if problems:
        raise ConfigError("; ".join(sorted(problems)))
    return values


def topic_defaults(config: BrokerConfig) -> dict[str, Any]:
    """Return what holds for a topic that sets nothing: the broker's own properties under the topic's names."""
    return {p.name: config[p.default_from] if p.default_from else p.default for p in TOPIC_PROPERTIES}


def parse_config(given: Mapping[str, str]) -> BrokerConfig:
    """Return the configuration that the properties describe.

    Raises:
        ConfigError: names every unknown, missing and malformed property at once.
    """
    known = {prop.name: prop for prop in PROPERTIES}
    problems = []
    for name in given.keys() - known.keys():
        near = difflib.get_close_matches(name, known, n=1)
        problems.append(f"unknown property {name}" + (f" (did you mean {near[0]}?)" if near else ""))
    values: dict[str, Any] = {}
    for prop in PROPERTIES:
        text = given.get(prop.name, prop.default)
        if text is None:
            problems.append(f"{prop.name} must be given")
            continue
        try:
            values[prop.name] = prop.parse(text)
        except ValueError as error:
            problems.append(f"{prop.name}={text}: {error}")
    if "listeners" in values and "advertised.listeners" in values:
        problems += _listener_problems(BrokerConfig(values))
    if problems:
        raise ConfigError("; ".join(sorted(problems)))
    return BrokerConfig(values)


def _listener_problems(config: BrokerConfig) -> Iterator[str]:
    """Yield what does not fit together, by the rules of Kafka's `KafkaConfig.validateValues`."""
    bound = [endpoint.name for endpoint in config.endpoints]
    advertised = [endpoint.name for endpoint in config.advertised_endpoints]
    for key, names in (("listeners", bound), ("advertised.listeners", advertised)):
        if len(set(names)) < len(names):
            yield f"{key}: each listener must have a different name, not {', '.join(names)}"
    unbound = [name for name in advertised if name not in bound]
    if unbound:
        yield f"advertised.listeners: {', '.join(unbound)} is none of the listeners {', '.join(bound)}"
    if any(endpoint.host == EVERY_ADDRESS for endpoint in config.advertised_endpoints):
        yield f"advertised.listeners: nobody can connect to {EVERY_ADDRESS}; it must be given, with an address"
    if config["inter.broker.listener.name"] not in advertised:
        yield f"inter.broker.listener.name={config['inter.broker.listener.name']} is none of {', '.join(advertised)}"
