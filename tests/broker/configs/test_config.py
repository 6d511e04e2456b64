import pytest

from harness.broker.configs.config import PROPERTIES, parse_config
from harness.broker.configs.config_types import ConfigError
from harness.broker.configs.topic_properties import inherited, parse_topic_config

MINIMAL = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,REPL://127.0.0.1:9093",
    "inter.broker.listener.name": "REPL",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
    "log.dir": "/data",
    "zookeeper.connect": "127.0.0.1:2181",
}

DEFAULT_MAP = next(prop.default for prop in PROPERTIES if prop.name == "listener.security.protocol.map") or ""


def test_the_least_configuration_has_kafkas_defaults() -> None:
    config = parse_config(MINIMAL)
    assert config.broker_id == 1
    assert config.peer_endpoint.port == 9093
    assert config["replica.lag.time.max.ms"] == 30_000
    assert config["unclean.leader.election.enable"] is False


def test_what_is_advertised_is_by_default_what_is_bound() -> None:
    config = parse_config(MINIMAL)
    assert config.advertised_endpoints == config.endpoints


def test_what_is_advertised_may_lie_elsewhere() -> None:
    bound = "PLAINTEXT://0.0.0.0:9092,REPL://0.0.0.0:9093"
    advertised = "PLAINTEXT://127.0.0.1:10000,REPL://broker-1:9093"
    config = parse_config(MINIMAL | {"listeners": bound, "advertised.listeners": advertised})
    assert [(end.host, end.port) for end in config.endpoints] == [("0.0.0.0", 9092), ("0.0.0.0", 9093)]
    assert [(end.host, end.port) for end in config.advertised_endpoints] == [("127.0.0.1", 10000), ("broker-1", 9093)]
    assert config.peer_endpoint.host == "broker-1"


def test_an_address_of_ipv6_is_in_brackets_or_not() -> None:
    config = parse_config(MINIMAL | {"listeners": "PLAINTEXT://[::1]:9092,REPL://fe80::1%eth0:9093"})
    assert [(end.host, end.port) for end in config.endpoints] == [("::1", 9092), ("fe80::1%eth0", 9093)]
    assert [str(end) for end in config.endpoints] == ["PLAINTEXT://[::1]:9092", "REPL://[fe80::1%eth0]:9093"]


def test_names_of_listeners_are_the_same_in_either_case() -> None:
    listeners = {"listeners": "plaintext://a:1,Repl://a:2", "inter.broker.listener.name": "repl"}
    config = parse_config(
        MINIMAL | listeners | {"listener.security.protocol.map": "plainText:plaintext, repl : PLAINTEXT"}
    )
    assert [endpoint.name for endpoint in config.endpoints] == ["PLAINTEXT", "REPL"]
    assert config.peer_endpoint.port == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"broker.id": "one"}, "broker.id=one", id="a number that is none"),
        pytest.param({"max.connections.per.ip.overrides": "a:1,b"}, "'b' is not host:count", id="a host without count"),
        pytest.param({"max.connections.per.ip": "0"}, "can be 0 only if", id="no client may connect"),
        pytest.param({"queued.max.request.bytes": "1000"}, "less than socket.request.max.bytes", id="no memory"),
        pytest.param({"log.cleaner.dedupe.buffer.size": "1048576"}, "more than 1048576", id="no memory for keys"),
        pytest.param(
            {"log.cleaner.dedupe.buffer.size": "2097153", "log.cleaner.threads": "2"},
            "for each of log.cleaner.threads",
            id="no memory for the keys of a second cleaner",
        ),
        pytest.param({"log.cleaner.io.max.bytes.per.second": "0"}, "must be more than 0", id="no speed"),
        pytest.param({"broker.id": "-1"}, "must be between 0", id="a number out of bounds"),
        pytest.param({"unclean.leader.election.enable": "yes"}, "must be true or false", id="a flag that is none"),
        pytest.param({"listeners": "PLAINTEXT:127.0.0.1:1"}, "is not NAME://host:port", id="a malformed listener"),
        pytest.param({"log.message.format.version": "banana"}, "a version that Kafka 3.9 knows", id="no version"),
        pytest.param({"log.message.format.version": "4.0"}, "a version that Kafka 3.9 knows", id="a later version"),
        pytest.param({"log.message.format.version": "2.5."}, "a version that Kafka 3.9 knows", id="half a version"),
        pytest.param({"inter.broker.protocol.version": "2.4"}, "must be 2.5", id="another protocol"),
        pytest.param({"socket.send.buffer.bytes": "0"}, "must be more than 0", id="no buffer to send from"),
        pytest.param({"socket.receive.buffer.bytes": "-2"}, "must be between -1", id="no size of a buffer"),
        pytest.param({"socket.listen.backlog.size": "0"}, "must be between 1", id="no room to wait"),
        pytest.param({"inter.broker.listener.name": "X"}, "is none of PLAINTEXT, REPL", id="no such listener"),
        pytest.param(
            {"advertised.listeners": "PLAINTEXT://a:1,REPL://a:2,X://a:3"},
            "advertised.listeners: X is none of the listeners PLAINTEXT, REPL",
            id="a listener that is advertised and not bound",
        ),
        pytest.param(
            {"listeners": "SSL://a:1,REPL://a:2", "listener.security.protocol.map": "SSL:SSL,REPL:PLAINTEXT"},
            "SSL would be SSL, which is not here",
            id="TLS served in plain text",
        ),
        pytest.param(
            {"listeners": "ssl://a:1,REPL://a:2"}, "SSL has no protocol", id="TLS in lower case, which no map names"
        ),
        pytest.param(
            {"listeners": "sasl_plaintext://a:1,REPL://a:2", "listener.security.protocol.map": DEFAULT_MAP},
            "SASL_PLAINTEXT would be SASL_PLAINTEXT, which is not here",
            id="SASL in lower case, by the default map",
        ),
        pytest.param(
            {"listeners": "EXTERNAL_SSL://a:1,REPL://a:2"},
            "EXTERNAL_SSL has no protocol: name it in listener.security.protocol.map, as EXTERNAL_SSL:PLAINTEXT",
            id="a name that no map has",
        ),
        pytest.param(
            {"listeners": "PLAINTEXT://a:1,REPL://a:2", "listener.security.protocol.map": "REPL:PLAINTEXT"},
            "PLAINTEXT has no protocol",
            id="a protocol's own name in a map that lacks it",
        ),
        pytest.param({"listener.security.protocol.map": DEFAULT_MAP}, "REPL has no protocol", id="the default map"),
        pytest.param(
            {"listeners": "PLAINTEXT://a:1,plaintext://a:2"}, "must have a different name", id="one name in two cases"
        ),
        pytest.param(
            {
                "listeners": "REPL://a:1,CLIENT://a:2",
                "listener.security.protocol.map": "REPL:PLAINTEXT,CLIENT:sasl_ssl",
            },
            "CLIENT would be SASL_SSL, which is not here",
            id="a name that is mapped to SASL",
        ),
        pytest.param(
            {"listener.security.protocol.map": "REPL:PLAIN"}, "'REPL:PLAIN' is not NAME:protocol", id="no such protocol"
        ),
        pytest.param(
            {"advertised.listeners": "PLAINTEXT://a:1"}, "REPL is none of PLAINTEXT", id="brokers told of no listener"
        ),
        pytest.param(
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1,REPL://a:2"},
            "no client can connect to 0.0.0.0",
            id="every address advertised",
        ),
        pytest.param(
            {"listeners": "PLAINTEXT://0.0.0.0:1,REPL://0.0.0.0:2"},
            "no client can connect to 0.0.0.0; set it to an address",
            id="every address bound and nothing advertised",
        ),
        pytest.param(
            {"listeners": "PLAINTEXT://[::]:1,REPL://a:2", "advertised.listeners": "PLAINTEXT://a:1,REPL://a:2"},
            r"listeners: \[::\] would accept no connection over IPv4: set 0.0.0.0, or one address",
            id="every address of IPv6",
        ),
        pytest.param(
            {"listeners": "PLAINTEXT://[0:0::0]:1,REPL://a:2", "advertised.listeners": "PLAINTEXT://a:1,REPL://a:2"},
            r"listeners: \[0:0::0\] would accept no connection over IPv4",
            id="every address of IPv6 in other words",
        ),
        pytest.param(
            {"advertised.listeners": "PLAINTEXT://[::0]:1,REPL://a:2"},
            "no client can connect to ::0",
            id="every address of IPv6 advertised",
        ),
        pytest.param({"listeners": "PLAINTEXT://[::1:9092"}, "is not NAME://host:port", id="one bracket"),
        pytest.param(
            {"listeners": "REPL://a:1,REPL://a:2"}, "must have a different name, not REPL, REPL", id="a name used twice"
        ),
        pytest.param(
            {"metrics.num.samples": "3"}, r"no other way: remove the line, or set it to 2$", id="rates of other samples"
        ),
        pytest.param(
            {"metrics.sample.window.ms": "60000"},
            r"no other way: remove the line, or set it to 30000$",
            id="a longer sample",
        ),
        pytest.param(
            {"min.insync.replica": "1"}, r"did you mean min.insync.replicas\?", id="an unknown property, nearly known"
        ),
    ],
)
def test_a_wrong_property_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(MINIMAL | change)


@pytest.mark.parametrize(
    "text", ["0.9.0", "0.10.2", "0.10.2.1", "0.11.0-IV1", "1.0", "2.5.1", "3.0", "3.0-IV1", "3.9", "3.9.1", "4.0-IV1"]
)
def test_a_version_that_kafka_knows_is_taken_as_it_is_written(text: str) -> None:
    assert parse_config(MINIMAL | {"log.message.format.version": text})["log.message.format.version"] == text
    assert parse_topic_config({"message.format.version": text}) == {"message.format.version": text}


@pytest.mark.parametrize("text", ["2.5", "2.5-IV0", "2.5.1"])
def test_brokers_speak_as_those_of_2_5(text: str) -> None:
    assert parse_config(MINIMAL | {"inter.broker.protocol.version": text})["inter.broker.protocol.version"] == text


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"broker.id must be given; unknown property x"):
        parse_config({name: text for name, text in MINIMAL.items() if name != "broker.id"} | {"x": "1"})


def test_a_topic_inherits_what_the_broker_says() -> None:
    config = parse_config(MINIMAL | {"min.insync.replicas": "2", "message.max.bytes": "1000"})
    defaults = inherited(config.values)
    assert (defaults["min.insync.replicas"], defaults["max.message.bytes"]) == (2, 1000)
    assert defaults | parse_topic_config({"min.insync.replicas": "1"}) == defaults | {"min.insync.replicas": 1}


def test_a_topic_s_format_is_of_a_version_that_kafka_knows() -> None:
    with pytest.raises(ConfigError, match=r"message.format.version=0.9: must be a version"):
        parse_topic_config({"message.format.version": "0.9"})


def test_problems_of_a_topic_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"cleanup.policy=shred: .*; unknown topic property x"):
        parse_topic_config({"x": "1", "cleanup.policy": "shred"})


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [
        pytest.param({}, "retention.ms", 7 * 24 * 3_600_000, id="a week, said in hours"),
        pytest.param({"log.retention.minutes": "2"}, "retention.ms", 120_000, id="minutes go before hours"),
        pytest.param(
            {"log.retention.minutes": "2", "log.retention.ms": "-1"}, "retention.ms", -1, id="milliseconds go first"
        ),
        pytest.param({"log.roll.hours": "1"}, "segment.ms", 3_600_000, id="segments roll by the hour"),
        pytest.param({"log.segment.delete.delay.ms": "5"}, "file.delete.delay.ms", 5, id="another name altogether"),
        pytest.param({}, "flush.ms", 2**63 - 1, id="flushed by the scheduler, which never does"),
        pytest.param({}, "leader.replication.throttled.replicas", "", id="nothing of the broker's"),
        pytest.param({}, "unclean.leader.election.enable", False, id="a flag stays a flag"),
    ],
)
def test_what_holds_for_a_topic_that_says_nothing(broker: dict[str, str], name: str, value: object) -> None:
    held = inherited(parse_config(MINIMAL | broker).values)[name]
    assert (held, type(held)) == (value, type(value))


@pytest.mark.parametrize(
    ("broker", "text", "name", "value"),
    [
        ("compression.type", "gzip", "compression.type", "gzip"),
        ("log.cleaner.delete.retention.ms", "7", "delete.retention.ms", 7),
        ("log.cleaner.max.compaction.lag.ms", "7", "max.compaction.lag.ms", 7),
        ("log.cleaner.min.cleanable.ratio", "0.7", "min.cleanable.dirty.ratio", 0.7),
        ("log.cleaner.min.compaction.lag.ms", "7", "min.compaction.lag.ms", 7),
        ("log.cleanup.policy", "compact", "cleanup.policy", ("compact",)),
        ("log.flush.interval.messages", "7", "flush.messages", 7),
        ("log.flush.interval.ms", "7", "flush.ms", 7),
        ("log.index.interval.bytes", "7", "index.interval.bytes", 7),
        ("log.index.size.max.bytes", "77", "segment.index.bytes", 77),
        ("log.message.timestamp.after.max.ms", "7", "message.timestamp.after.max.ms", 7),
        ("log.message.timestamp.before.max.ms", "7", "message.timestamp.before.max.ms", 7),
        ("log.message.timestamp.difference.max.ms", "7", "message.timestamp.difference.max.ms", 7),
        ("log.message.timestamp.type", "LogAppendTime", "message.timestamp.type", "LogAppendTime"),
        ("log.retention.bytes", "7", "retention.bytes", 7),
        ("log.retention.hours", "1", "retention.ms", 3_600_000),
        ("log.retention.minutes", "1", "retention.ms", 60_000),
        ("log.retention.ms", "7", "retention.ms", 7),
        ("log.roll.hours", "1", "segment.ms", 3_600_000),
        ("log.roll.jitter.hours", "1", "segment.jitter.ms", 3_600_000),
        ("log.roll.jitter.ms", "7", "segment.jitter.ms", 7),
        ("log.roll.ms", "7", "segment.ms", 7),
        ("log.segment.bytes", "77", "segment.bytes", 77),
        ("log.segment.delete.delay.ms", "7", "file.delete.delay.ms", 7),
        ("message.max.bytes", "7", "max.message.bytes", 7),
        ("min.insync.replicas", "2", "min.insync.replicas", 2),
        ("unclean.leader.election.enable", "true", "unclean.leader.election.enable", True),
    ],
    ids=lambda each: str(each),
)
def test_what_a_topic_inherits_is_in_force_for_it(broker: str, text: str, name: str, value: object) -> None:
    """Kafka's `LogConfig.TopicConfigSynonyms`; what each does there is tested with the topic's property."""
    assert inherited(parse_config(MINIMAL | {broker: text}).values)[name] == value


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        pytest.param("segment.bytes", "13", "must be between 14", id="a segment too small"),
        pytest.param("segment.ms", "0", "must be between 1", id="no time at all"),
        pytest.param("retention.ms", "-2", "must be between -1", id="less than for ever"),
        pytest.param("min.cleanable.dirty.ratio", "1.5", "must be between 0 and 1", id="more than everything"),
        pytest.param("cleanup.policy", "compact,", "each word must be one of compact, delete", id="an empty policy"),
        pytest.param("min.insync.replica", "1", r"did you mean min.insync.replicas\?", id="a name nearly known"),
    ],
)
def test_a_wrong_property_of_a_topic_is_named(name: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_topic_config({name: text})
