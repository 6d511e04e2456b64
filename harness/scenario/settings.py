"""Which properties of brokers and topics may a seed draw, from which values? The catalogue of `draws.settings`.

Times are shares of the load, so that an event that is due once in an hour elsewhere is due several times in a schedule
of seconds. A draw that does not fit what is drawn or stated already is not made.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from harness.scenario.model import SettingGroup

BROKERS, REPLICAS = "number of brokers", "replication factor"
"""What bounds may name beside properties: of the cluster, and of the topic with the fewest replicas."""
TRUE, FALSE = "true", "false"


@dataclass(frozen=True, slots=True)
class OneOf:
    """Equally likely values; one that is stated twice has twice the odds."""

    choices: tuple[str, ...]

    def draw(self, rng: random.Random, load_s: float) -> str:
        """Return one of them."""
        return rng.choice(self.choices)

    def described(self) -> str:
        """Return the values in words."""
        return ", ".join(dict.fromkeys(self.choices))


@dataclass(frozen=True, slots=True)
class Between:
    """A whole number of a range; each order of magnitude has the same odds."""

    low: float
    high: float

    def draw(self, rng: random.Random, load_s: float) -> str:
        """Return one."""
        return str(round(math.exp(rng.uniform(math.log(self.low), math.log(self.high)))))

    def described(self) -> str:
        """Return the range in words."""
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class ShareOfLoad:
    """Milliseconds, or with `unit_ms` longer units, between two shares of the time under load."""

    low: float
    high: float
    unit_ms: int = 1

    def draw(self, rng: random.Random, load_s: float) -> str:
        """Return a time, at least one unit."""
        return str(max(1, round(load_s * 1000 * rng.uniform(self.low, self.high) / self.unit_ms)))

    def described(self) -> str:
        """Return the range in words."""
        return f"{self.low:g} to {self.high:g} of duration_s"


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that another one is not to exceed: the draw is left out where it would."""

    name: str
    """Of a property of brokers, or BROKERS or REPLICAS."""
    share: float = 1.0
    """Of that value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A property that may be drawn."""

    name: str
    """As brokers have it."""
    group: SettingGroup
    values: OneOf | Between | ShareOfLoad
    topic: str = ""
    """What a topic calls it, if a topic may have another value than its brokers."""
    odds: float = 0.5
    """How often it is drawn at all; else Kafka's default or the harness's profile holds."""
    at_most: tuple[Bound, ...] = ()
    at_least: tuple[Bound, ...] = ()
    of_policy: str = ""
    """Drawn only for topics whose own `cleanup.policy` is this one, and never for brokers; empty for all."""
    quorum: bool = True
    """Whether brokers without ZooKeeper take it: since 4.0 Kafka refuses segments of less than 1 MiB."""
    kafka: bool = True
    """Whether it is drawn for Apache Kafka, too.

    A follower of Kafka that appends several batches at once may fill a small index and stop replicating
    (`kafka-full-time-index` in results/bugs.json, on 3.9.1 and 4.4.0).
    """


def _log(name: str, values: OneOf | Between | ShareOfLoad, topic: str = "", **more: object) -> Setting:
    return Setting(name=name, group=SettingGroup.LOG, values=values, topic=topic, **more)  # type: ignore[arg-type]


def _cleaner(name: str, values: OneOf | Between | ShareOfLoad, topic: str = "") -> Setting:
    return Setting(name=name, group=SettingGroup.CLEANER, values=values, topic=topic)


def _replication(name: str, values: OneOf | Between | ShareOfLoad, **more: object) -> Setting:
    return Setting(name=name, group=SettingGroup.REPLICATION, values=values, **more)  # type: ignore[arg-type]


def _groups(name: str, values: OneOf | Between | ShareOfLoad, **more: object) -> Setting:
    return Setting(name=name, group=SettingGroup.GROUPS, values=values, **more)  # type: ignore[arg-type]


def _transactions(name: str, values: OneOf | Between | ShareOfLoad, **more: object) -> Setting:
    return Setting(name=name, group=SettingGroup.TRANSACTIONS, values=values, **more)  # type: ignore[arg-type]


def _cluster(name: str, values: OneOf | Between | ShareOfLoad, topic: str = "", **more: object) -> Setting:
    return Setting(name=name, group=SettingGroup.CLUSTER, values=values, topic=topic, **more)  # type: ignore[arg-type]


SETTINGS: tuple[Setting, ...] = (
    _log("log.segment.bytes", Between(4000, 64_000), "segment.bytes", quorum=False),
    _log("log.roll.ms", ShareOfLoad(0.05, 0.5), "segment.ms", odds=0.3),
    _log("log.index.interval.bytes", OneOf(("0", "128", "1000", "4096")), "index.interval.bytes"),
    _log("log.index.size.max.bytes", OneOf(("128", "1000", "10485760")), "segment.index.bytes", odds=0.3, kafka=False),
    _log("log.initial.task.delay.ms", Between(200, 3000), odds=1.0),
    _log("log.flush.offset.checkpoint.interval.ms", Between(1000, 5000), odds=1.0),
    _log("log.flush.interval.messages", OneOf(("1", "10", "100")), "flush.messages", odds=0.3),
    _log("log.flush.scheduler.interval.ms", Between(500, 5000), odds=0.3),
    _log("log.flush.interval.ms", Between(1000, 5000), "flush.ms", odds=0.3),
    _log("log.retention.check.interval.ms", Between(500, 3000), odds=1.0),
    _log("log.segment.delete.delay.ms", OneOf(("0", "1000", "3000")), "file.delete.delay.ms", odds=0.8),
    _log("log.message.timestamp.type", OneOf(("CreateTime", "LogAppendTime")), "message.timestamp.type", odds=0.3),
    _log("log.dirs", OneOf(("disk1,disk2",)), odds=0.4, quorum=False),
    _log("compression.type", OneOf(("producer", "gzip", "lz4", "uncompressed")), "compression.type", odds=0.3),
    _log("log.retention.ms", Between(1000, 20_000), "retention.ms", of_policy="delete"),
    _cleaner("log.cleaner.backoff.ms", Between(100, 2000)),
    _cleaner("log.cleaner.min.cleanable.ratio", OneOf(("0", "0.1", "0.3", "0.5")), "min.cleanable.dirty.ratio"),
    _cleaner("log.cleaner.delete.retention.ms", ShareOfLoad(0, 0.3), "delete.retention.ms"),
    _cleaner("log.cleaner.min.compaction.lag.ms", ShareOfLoad(0, 0.2), "min.compaction.lag.ms"),
    _cleaner("log.cleaner.threads", OneOf(("1", "2", "3"))),
    _cleaner("log.cleaner.io.buffer.size", Between(500, 524_288)),
    _replication("zookeeper.session.timeout.ms", Between(2000, 8000)),
    _replication("replica.lag.time.max.ms", Between(1000, 6000)),
    _replication(
        "replica.fetch.wait.max.ms", Between(100, 1000), at_most=(Bound("replica.lag.time.max.ms", 0.5),), odds=0.7
    ),
    _replication("replica.fetch.max.bytes", Between(500, 1_048_576)),
    _replication("replica.fetch.response.max.bytes", Between(1000, 10_485_760)),
    _replication("replica.fetch.backoff.ms", Between(20, 500)),
    _replication("replica.socket.timeout.ms", Between(1000, 5000), at_least=(Bound("replica.fetch.wait.max.ms", 2.0),)),
    _replication("replica.high.watermark.checkpoint.interval.ms", Between(300, 5000)),
    _replication("max.incremental.fetch.session.cache.slots", OneOf(("0", "1", "3", "1000"))),
    _groups("offsets.topic.num.partitions", OneOf(("1", "2", "4"))),
    _groups("offsets.topic.segment.bytes", Between(1000, 20_000), quorum=False),
    _groups("offsets.topic.replication.factor", OneOf(("2", "3", "3")), at_most=(Bound(BROKERS),)),
    _groups("offsets.commit.timeout.ms", Between(500, 5000)),
    _groups("offsets.retention.check.interval.ms", Between(500, 3000), odds=1.0),
    _groups("group.initial.rebalance.delay.ms", OneOf(("0", "100", "1000", "3000"))),
    _transactions(
        "transaction.state.log.replication.factor", OneOf(("2", "3", "3")), at_most=(Bound(BROKERS),), odds=0.3
    ),
    _transactions("transaction.state.log.min.isr", OneOf(("1", "2", "2"))),
    _transactions("transaction.abort.timed.out.transaction.cleanup.interval.ms", Between(200, 3000)),
    _cluster(
        "min.insync.replicas",
        OneOf(("1", "2", "2", "2", "3")),
        "min.insync.replicas",
        odds=1.0,
        at_most=(Bound(REPLICAS),),
    ),
    _cluster("unclean.leader.election.enable", OneOf((FALSE, FALSE, TRUE)), "unclean.leader.election.enable", odds=0.4),
    _cluster("auto.leader.rebalance.enable", OneOf((TRUE, FALSE))),
    _cluster("leader.imbalance.check.interval.seconds", ShareOfLoad(0.03, 0.3, unit_ms=1000), odds=0.7),
    _cluster("leader.imbalance.per.broker.percentage", OneOf(("0", "10", "30"))),
    _cluster("controlled.shutdown.max.retries", OneOf(("3", "6"))),
    _cluster("controlled.shutdown.retry.backoff.ms", Between(200, 1000)),
    _cluster("controller.socket.timeout.ms", Between(2000, 8000)),
    _cluster("broker.rack", OneOf(("rack-b,rack-a", "rack-c,rack-a,rack-b"))),
    _cluster("max.connections.per.ip.overrides", OneOf(("127.0.0.1:1000",)), odds=0.3),
)
"""In the order in which they are drawn: bounds name what comes before."""


def fits(setting: Setting, value: str, known: Mapping[str, str]) -> bool:
    """Return whether a value of a setting is within its bounds, by what else is known."""

    def bound(of: Bound) -> float:
        return float(known[of.name]) * of.share

    return all(float(value) <= bound(each) for each in setting.at_most) and all(
        float(value) >= bound(each) for each in setting.at_least
    )
