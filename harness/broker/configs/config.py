"""The broker's configuration: Kafka's property names, types, defaults and bounds; unknown names are refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from socket import getfqdn
from typing import Any

from harness.broker.configs.config_types import (
    BOOLEAN,
    COMPRESSION_TYPE,
    INT_MAX,
    LONG_MAX,
    TEXT,
    ConfigError,
    ConfigType,
    Property,
    TypeCode,
    buffer_size,
    choice,
    integer,
    listing,
    long,
    optional,
    positive,
    ratio,
    short,
    unknown,
)
from harness.broker.configs.ignored_properties import IGNORED_PROPERTIES
from harness.broker.configs.refused import refusal

LEAST_DEDUPE_BYTES = 1 << 20
"""Of each cleaner (`LogCleaner`)."""
PLAINTEXT = "PLAINTEXT"
SECURED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Protocols of listeners that are not built: a listener of such a name must never be served in plain text."""
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - refused where others would have to connect to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener."""

    name: str
    """CLIENT listener name, e.g. PLAINTEXT, or the listener for other brokers; upper case, as Kafka has all of them."""
    host: str
    """An IPv6 address without brackets."""
    port: int

    @classmethod
    def parsed(cls, uri: str) -> "Endpoint":
        """Return what `str` wrote; raises ValueError."""
        name, separator, address = uri.partition("://")
        host, colon, port = address.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not separator or not colon or not port.isdecimal() or int(port) > 65_535 or {*host} & {*"[]"}:
            raise ValueError(f"{uri!r} is not NAME://host:port")
        return cls(name=name, host=host, port=int(port))

    def __str__(self) -> str:
        """Return it as Kafka writes it: an IPv6 address in brackets."""
        return (
            f"{self.name}://[{self.host}]:{self.port}" if ":" in self.host else f"{self.name}://{self.host}:{self.port}"
        )


def _endpoints(text: str) -> tuple[Endpoint, ...]:
    endpoints = [Endpoint.parsed(part.strip()) for part in text.split(",")]
    return tuple(replace(each, name=each.name.upper()) for each in endpoints)


def _advertised(text: str) -> tuple[Endpoint, ...]:
    return _endpoints(text) if text else ()


def _protocols(text: str) -> tuple[str, ...]:
    entries = tuple(part.strip() for part in text.split(",") if part.strip())
    for entry in entries:
        name, protocol = _mapped(entry)
        if not name or protocol not in (PLAINTEXT, *SECURED):
            raise ValueError(f"{entry!r} is not NAME:protocol, of {', '.join((PLAINTEXT, *SECURED))}")
    return entries


def _mapped(entry: str) -> tuple[str, str]:
    """Return the listener and the protocol of an entry of the map, in upper case as Kafka compares them."""
    name, _, protocol = entry.upper().rpartition(":")
    return name.strip(), protocol.strip()


def _counts_by_host(text: str) -> tuple[str, ...]:
    entries = tuple(part.strip() for part in text.split(",") if part.strip())
    for entry in entries:
        host, _, count = entry.rpartition(":")
        if not host or not count.isdecimal() or int(count) > INT_MAX:
            raise ValueError(f"{entry!r} is not host:count")
    return entries


PROPERTIES: tuple[Property, ...] = (
    Property(name="broker.id", default=None, parse=integer(0)),
    Property(name="listeners", default="PLAINTEXT://127.0.0.1:9092", parse=ConfigType(TypeCode.STRING, _endpoints)),
    Property(name="advertised.listeners", default="", parse=ConfigType(TypeCode.STRING, _advertised)),
    Property(name="inter.broker.listener.name", default="", parse=ConfigType(TypeCode.STRING, str.upper)),
    Property(
        name="listener.security.protocol.map",
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        parse=ConfigType(TypeCode.STRING, _protocols),
    ),
    Property(name="broker.rack", default="", parse=TEXT),
    Property(name="log.dir", default="/tmp/kafka-logs", parse=TEXT),  # noqa: S108 - Kafka's own default
    Property(name="log.dirs", default="", parse=ConfigType(TypeCode.STRING, listing().parse)),
    Property(name="zookeeper.connect", default=None, parse=TEXT),
    Property(name="zookeeper.session.timeout.ms", default="18000", parse=integer(1)),
    Property(name="zookeeper.connection.timeout.ms", default="18000", parse=integer(1)),
    Property(name="controller.socket.timeout.ms", default="30000", parse=integer(1)),
    Property(name="controlled.shutdown.enable", default="true", parse=BOOLEAN),
    Property(name="controlled.shutdown.max.retries", default="3", parse=integer(0)),
    Property(name="controlled.shutdown.retry.backoff.ms", default="5000", parse=long(0)),
    Property(name="num.partitions", default="1", parse=integer(1)),
    Property(name="default.replication.factor", default="1", parse=integer(1)),
    Property(name="auto.create.topics.enable", default="true", parse=BOOLEAN),
    Property(name="min.insync.replicas", default="1", parse=integer(1)),
    Property(name="unclean.leader.election.enable", default="false", parse=BOOLEAN),
    Property(name="auto.leader.rebalance.enable", default="true", parse=BOOLEAN),
    Property(name="leader.imbalance.check.interval.seconds", default="300", parse=long(1)),
    Property(name="leader.imbalance.per.broker.percentage", default="10", parse=integer(0)),
    # The next four are not Kafka's: by the rules of which Kafka leaders are elected and high watermarks rise, and where
    # metrics are served.
    Property(name="selector.profile", default="2.5", parse=choice("2.5", "0.8")),
    Property(name="replication.profile", default="2.5", parse=choice("2.5", "3.7")),
    Property(name="prometheus.port", default="", parse=optional(integer(0, 65_535))),
    Property(name="prometheus.host", default="127.0.0.1", parse=TEXT),
    Property(name="message.max.bytes", default="1048588", parse=integer(0)),
    Property(name="delete.topic.enable", default="true", parse=BOOLEAN),
    Property(name="compression.type", default="producer", parse=COMPRESSION_TYPE),
    Property(name="log.cleanup.policy", default="delete", parse=listing("compact", "delete")),
    Property(name="log.cleaner.backoff.ms", default="15000", parse=long(0)),
    Property(name="log.cleaner.dedupe.buffer.size", default="134217728", parse=long()),
    Property(name="log.cleaner.delete.retention.ms", default="86400000", parse=long(0)),
    Property(name="log.cleaner.enable", default="true", parse=BOOLEAN),
    Property(name="log.cleaner.io.buffer.load.factor", default="0.9", parse=positive()),
    Property(name="log.cleaner.io.buffer.size", default="524288", parse=integer(0)),
    Property(name="log.cleaner.io.max.bytes.per.second", default="1.7976931348623157E308", parse=positive()),
    Property(name="log.cleaner.max.compaction.lag.ms", default=str(LONG_MAX), parse=long(1)),
    Property(name="log.cleaner.min.cleanable.ratio", default="0.5", parse=ratio()),
    Property(name="log.cleaner.min.compaction.lag.ms", default="0", parse=long(0)),
    Property(name="log.cleaner.threads", default="1", parse=integer(0)),
    Property(name="log.flush.interval.messages", default=str(LONG_MAX), parse=long(1)),
    Property(name="log.flush.interval.ms", default="", parse=optional(long())),
    Property(name="log.flush.scheduler.interval.ms", default=str(LONG_MAX), parse=long()),
    Property(name="log.index.size.max.bytes", default="10485760", parse=integer(4)),
    Property(name="log.message.timestamp.difference.max.ms", default=str(LONG_MAX), parse=long(0)),
    Property(name="log.message.timestamp.before.max.ms", default=str(LONG_MAX), parse=long(0)),
    Property(name="log.message.timestamp.after.max.ms", default=str(LONG_MAX), parse=long(0)),
    Property(name="log.message.timestamp.type", default="CreateTime", parse=choice("CreateTime", "LogAppendTime")),
    Property(name="log.initial.task.delay.ms", default="30000", parse=long(0)),
    Property(name="log.retention.bytes", default="-1", parse=long()),
    Property(name="log.retention.check.interval.ms", default="300000", parse=long(1)),
    Property(name="log.retention.hours", default="168", parse=integer(-(2**31))),
    Property(name="log.retention.minutes", default="", parse=optional(integer(-(2**31)))),
    Property(name="log.retention.ms", default="", parse=optional(long())),
    Property(name="log.roll.hours", default="168", parse=integer(1)),
    Property(name="log.roll.jitter.hours", default="0", parse=integer(0)),
    Property(name="log.roll.jitter.ms", default="", parse=optional(long())),
    Property(name="log.roll.ms", default="", parse=optional(long())),
    Property(name="log.segment.delete.delay.ms", default="60000", parse=long(0)),
    Property(name="log.segment.bytes", default="1073741824", parse=integer(14)),
    Property(name="log.index.interval.bytes", default="4096", parse=integer(0)),
    Property(name="log.flush.offset.checkpoint.interval.ms", default="60000", parse=integer(1)),
    Property(name="producer.id.expiration.ms", default="86400000", parse=integer(1)),
    Property(name="producer.id.expiration.check.interval.ms", default="600000", parse=integer(1)),
    Property(name="transaction.partition.verification.enable", default="true", parse=BOOLEAN),
    Property(name="request.timeout.ms", default="30000", parse=integer(1)),
    Property(name="replica.lag.time.max.ms", default="30000", parse=long(1)),
    Property(name="replica.fetch.wait.max.ms", default="500", parse=integer(0)),
    Property(name="replica.fetch.min.bytes", default="1", parse=integer(1)),
    Property(name="replica.fetch.max.bytes", default="1048576", parse=integer(0)),
    Property(name="replica.fetch.response.max.bytes", default="10485760", parse=integer(0)),
    Property(name="replica.fetch.backoff.ms", default="1000", parse=integer(0)),
    Property(name="replica.socket.timeout.ms", default="30000", parse=integer(1)),
    Property(name="replica.high.watermark.checkpoint.interval.ms", default="5000", parse=long(1)),
    Property(name="fetch.max.bytes", default="57671680", parse=integer(1024)),
    Property(name="max.incremental.fetch.session.cache.slots", default="1000", parse=integer(0)),
    Property(name="socket.listen.backlog.size", default="50", parse=integer(1)),
    Property(name="socket.receive.buffer.bytes", default="102400", parse=buffer_size()),
    Property(name="socket.send.buffer.bytes", default="102400", parse=buffer_size()),
    Property(name="socket.request.max.bytes", default="104857600", parse=integer(1)),
    Property(name="queued.max.request.bytes", default="-1", parse=long()),
    Property(name="max.connections", default=str(INT_MAX), parse=integer(0)),
    Property(name="max.connections.per.ip", default=str(INT_MAX), parse=integer(0)),
    Property(name="max.connections.per.ip.overrides", default="", parse=ConfigType(TypeCode.STRING, _counts_by_host)),
    Property(name="connections.max.idle.ms", default="600000", parse=long()),
    Property(name="offsets.topic.num.partitions", default="50", parse=integer(1)),
    Property(name="offsets.topic.replication.factor", default="3", parse=short(1)),
    Property(name="offsets.topic.segment.bytes", default="104857600", parse=integer(1)),
    Property(name="offsets.commit.timeout.ms", default="5000", parse=integer(1)),
    Property(name="offset.metadata.max.bytes", default="4096", parse=integer(0)),
    Property(name="offsets.retention.minutes", default="10080", parse=integer(1)),
    Property(name="offsets.retention.check.interval.ms", default="600000", parse=long(1)),
    Property(name="group.initial.rebalance.delay.ms", default="3000", parse=integer(0)),
    Property(name="group.min.session.timeout.ms", default="6000", parse=integer(0)),
    Property(name="group.max.session.timeout.ms", default="1800000", parse=integer(0)),
    Property(name="group.max.size", default=str(INT_MAX), parse=integer(1)),
    Property(name="transaction.state.log.num.partitions", default="50", parse=integer(1)),
    Property(name="transaction.state.log.replication.factor", default="3", parse=short(1)),
    Property(name="transaction.state.log.segment.bytes", default="104857600", parse=integer(1)),
    Property(name="transaction.state.log.min.isr", default="2", parse=integer(1)),
    Property(name="transaction.max.timeout.ms", default="900000", parse=integer(1)),
    Property(name="transactional.id.expiration.ms", default="604800000", parse=integer(1)),
    Property(name="transaction.abort.timed.out.transaction.cleanup.interval.ms", default="10000", parse=integer(1)),
    Property(name="transaction.remove.expired.transaction.cleanup.interval.ms", default="3600000", parse=integer(1)),
    Property(name="transaction.partition.verification.enable", default="true", parse=BOOLEAN),
    *IGNORED_PROPERTIES,
)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Parsed properties; `config["replica.lag.time.max.ms"]` has the property's own type."""

    values: Mapping[str, Any]
    properties: Mapping[str, str] = field(default_factory=dict)
    """Content of the properties file, as text; the rest of `values` are defaults."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def ignored_properties(self) -> list[str]:
        """Properties of the file that have no effect here, in alphabetical order (docs/reference/settings.md)."""
        return sorted(self.properties.keys() & {each.name for each in IGNORED_PROPERTIES})

    @property
    def broker_id(self) -> int:
        """The id that this broker registers under."""
        return int(self.values["broker.id"])

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The data directories: `log.dirs`, or the one of `log.dir`."""
        return tuple(self.values["log.dirs"]) or (str(self.values["log.dir"]),)

    @property
    def peer_endpoint(self) -> Endpoint:
        """The listener for other brokers, as they reach it."""
        return next(endpoint for endpoint in self.advertised_endpoints if endpoint.name == self.peer_listener)

    @property
    def peer_listener(self) -> str:
        """The name of the listener for other brokers: the only one, or PLAINTEXT, unless set."""
        names = [endpoint.name for endpoint in self.endpoints]
        return self.values["inter.broker.listener.name"] or (names[0] if len(names) == 1 else PLAINTEXT)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All listeners, as this broker binds them."""
        return tuple(self.values["listeners"])

    @property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """Addresses for clients and brokers, in the order of registration; by default the listeners.

        A broker that binds every address and advertises none is known by the machine's name.
        """
        advertised = tuple(self.values["advertised.listeners"]) or self.endpoints
        return tuple(each if each.host else replace(each, host=getfqdn()) for each in advertised)


def parse_config(properties: Mapping[str, str]) -> BrokerConfig:
    """Return the configuration that the properties describe.

    Raises:
        ConfigError: names every unknown, missing and malformed property at once.
    """
    known = {prop.name: prop for prop in PROPERTIES}
    problems = [_unusable(name, known) for name in properties.keys() - known.keys()]
    values: dict[str, Any] = {}
    for prop in PROPERTIES:
        text = properties.get(prop.name, prop.default)
        if text is None:
            problems.append(f"{prop.name} must be given")
            continue
        try:
            values[prop.name] = prop.parse(text)
        except ValueError as error:
            problems.append(f"{prop.name}={text}: {error}")
    if {"listeners", "advertised.listeners", "listener.security.protocol.map"} <= values.keys():
        problems += listener_problems(BrokerConfig(values))
    if not problems:
        problems += _limit_problems(values)
    if problems:
        raise ConfigError("; ".join(sorted(problems)))
    return BrokerConfig(values, dict(properties))


def _unusable(name: str, known: Mapping[str, Property]) -> str:
    """Return a sentence about an unknown property."""
    why = refusal(name)
    return unknown("property", name, known) if why is None else f"{name} is refused: {why}"


def _limit_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield limits that would admit no connection, by the same rules."""
    buffer_bytes = values["log.cleaner.dedupe.buffer.size"] // max(values["log.cleaner.threads"], 1)
    if values["log.cleaner.enable"] and buffer_bytes <= LEAST_DEDUPE_BYTES:
        yield f"log.cleaner.dedupe.buffer.size must be more than {LEAST_DEDUPE_BYTES} for each of log.cleaner.threads"
    if 0 < values["queued.max.request.bytes"] < values["socket.request.max.bytes"]:
        yield "queued.max.request.bytes must not be less than socket.request.max.bytes"
    if not values["max.connections.per.ip"] and not values["max.connections.per.ip.overrides"]:
        yield "max.connections.per.ip can be 0 only if max.connections.per.ip.overrides is given"


def _is_every_address(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False  # a name


def listener_problems(config: BrokerConfig) -> Iterator[str]:
    """Yield inconsistencies, by the rules of Kafka's `KafkaConfig.validateValues`."""
    bound = [endpoint.name for endpoint in config.endpoints]
    advertised = [endpoint.name for endpoint in config.advertised_endpoints]
    for key, names in (("listeners", bound), ("advertised.listeners", advertised)):
        if len(set(names)) < len(names):
            yield f"{key}: each listener must have a different name, not {', '.join(names)}"
    unbound = [name for name in advertised if name not in bound]
    if unbound:
        yield f"advertised.listeners: {', '.join(unbound)} is none of the listeners {', '.join(bound)}"
    for host in (endpoint.host for endpoint in config.endpoints if endpoint.host != EVERY_ADDRESS):
        if _is_every_address(host):
            yield f"listeners: [{host}] would accept no connection over IPv4: set {EVERY_ADDRESS}, or one address"
    for host in (endpoint.host for endpoint in config.advertised_endpoints):
        if _is_every_address(host):
            yield f"advertised.listeners: no client can connect to {host}; set it to an address"
    protocols = dict(_mapped(entry) for entry in config["listener.security.protocol.map"])
    for name in bound:
        protocol = protocols.get(name)
        if protocol is None:
            yield f"listeners: {name} has no protocol: name it in listener.security.protocol.map, as {name}:{PLAINTEXT}"
        elif protocol != PLAINTEXT:
            yield f"listeners: {name} would be {protocol}, which is not here: let it be PLAINTEXT, or take it out"
    if config.peer_listener not in advertised:
        yield f"inter.broker.listener.name={config.peer_listener} is none of {', '.join(advertised)}"
