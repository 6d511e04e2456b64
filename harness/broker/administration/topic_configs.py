"""Configurations in step with ZooKeeper: of this broker while it runs, and of every topic.

A topic's own properties override the broker's: those set for this broker alone, then those set for all brokers, then
its properties file. Each is read when the broker first learns of it, and again whenever `/config/changes` names it;
after a lost connection or session everything is read again. As Kafka's `ZkConfigManager` and `DynamicBrokerConfig`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.broker.configs.config import BrokerConfig
from harness.broker.configs.config_types import ConfigError, unknown
from harness.broker.configs.topic_properties import BY_NAME, inherited, parse_dynamic_config, parse_topic_config
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.unexpected import failed
from harness.broker.zookeeper.client import NoNode, WatchType, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import read_config
from harness.broker.zookeeper.znodes import (
    ALL_BROKERS,
    BROKERS_KIND,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    TOPICS_KIND,
    MalformedZnode,
    broker_config_path,
    changed_entity,
    config_change_path,
    topic_config_path,
)
from harness.values import TopicPartition

_log = logging.getLogger(__name__)

Listener = Callable[[str, Mapping[str, Any]], None]
BrokerListener = Callable[[Mapping[str, Any], Mapping[str, Any]], None]

KEEP_NOTIFICATIONS_S = 15 * 60
"""After this time every live broker has read a notification; Kafka uses its creation time."""


@dataclass(slots=True)
class BrokerLayers:
    """What is set for this broker beside its properties file, as text."""

    own: dict[str, str] = field(default_factory=dict)
    """For this broker alone."""
    default: dict[str, str] = field(default_factory=dict)
    """For all brokers."""


class TopicConfigs:
    """Effective properties of topics; `start` reads all from ZooKeeper and follows it from then on."""

    def __init__(self, config: BrokerConfig, session: ZooKeeperSession, rules: ProtocolRules = RIGHT) -> None:
        self.layers = BrokerLayers()
        self._config = config
        self._session = session
        self._rules = rules
        self._broker: Mapping[str, Any] = config.values
        self._own: dict[str, Mapping[str, Any]] = {}
        self._known: dict[str, Mapping[str, Any]] = {}
        self._deleted: set[str] = set()
        self._defaults = inherited(self._broker)
        self._seen: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._all_stale = False
        self._follower: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []
        self._broker_listeners: list[BrokerListener] = []

    def of(self, topic: str) -> Mapping[str, Any]:
        """Return every property of a topic with its own type; the broker's for an unknown topic."""
        return self._known.get(topic, self._defaults)

    def broker(self, name: str) -> Any:
        """Return the present value of a property of this broker."""
        return self._broker[name]

    def on_change(self, listener: Listener) -> None:
        """Call `listener` with a topic and its properties once what the topic sets has changed."""
        self._listeners.append(listener)

    def on_broker_change(self, listener: BrokerListener) -> None:
        """Call `listener` with this broker's properties before and after; topics that inherit them have changed too."""
        self._broker_listeners.append(listener)

    async def start(self) -> None:
        """Read the properties of this broker and of every topic, and follow their changes."""
        zk = self._session.current
        self._watch(zk)
        now_s = asyncio.get_running_loop().time()
        self._seen = dict.fromkeys(await zk.children(CONFIG_CHANGES), now_s)
        await self._read_broker()
        await self.load(await zk.children(TOPIC_CONFIGS))
        self._session.after_new_session(self._new_session)
        self._follower = asyncio.create_task(self._follow(), name="topic-configs")

    async def stop(self) -> None:
        """Stop following."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
            self._follower = None

    async def load(self, topics: Iterable[str], *, hosted: Collection[str] = ()) -> None:
        """Read the properties of those topics that were not read yet, or were deleted and are not among `hosted`."""
        for topic in topics:
            if topic not in self._known or (topic in self._deleted and topic not in hosted):
                await self._read(topic)
                self._deleted.discard(topic)

    def deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Read the properties of their topics again before new logs of them: no notification names a new topic.

        Kafka reads them whenever it creates a log (`Partition.createLog`, KAFKA-8813).
        """
        self._deleted.update(topic for topic, _ in partitions if topic in self._known)

    # --- reading ---

    async def _read(self, topic: str) -> None:
        try:
            properties = await read_config(self._session.current, topic_config_path(topic))
            for name in sorted(properties.keys() - BY_NAME.keys()):
                _log.warning("topic_config.ignored topic=%s error=%s", topic, unknown("topic property", name, BY_NAME))
            own = parse_topic_config({name: text for name, text in properties.items() if name in BY_NAME})
        except (ConfigError, MalformedZnode) as error:
            _log.error("topic_config.ignored topic=%s error=%s", topic, error)
            own = {}
        self._own[topic] = own
        self._known[topic] = {**self._defaults, **own}

    async def _read_broker(self) -> None:
        """Read both layers of this broker, and update its topics."""
        own = await self._read_layer(str(self._config.broker_id))
        default = await self._read_layer(ALL_BROKERS)
        self.layers = BrokerLayers(own=own, default=default)
        before = self._broker
        self._broker = {**self._config.values, **parse_dynamic_config(default), **parse_dynamic_config(own)}
        if self._broker == before:
            return
        _log.info("broker_config.changed default=%s own=%s", default, own)
        self._defaults = inherited(self._broker)
        keeps = self._rules.topics_keep_their_properties
        self._known = {topic: {**self._defaults, **(own if keeps else {})} for topic, own in self._own.items()}
        for listener in self._broker_listeners:
            listener(before, self._broker)

    async def _read_layer(self, name: str) -> dict[str, str]:
        """Return what is set for a broker or for all; invalid content counts as empty, all of it, as in Kafka."""
        try:
            properties = await read_config(self._session.current, broker_config_path(name))
            parse_dynamic_config(properties)
        except (ConfigError, MalformedZnode) as error:
            _log.error("broker_config.ignored broker=%s error=%s", name, error)
            return {}
        return properties

    def _tell(self, topic: str, before: Mapping[str, Any] | None) -> None:
        now = self._known[topic]
        if now != before:
            _log.info("topic_config.changed topic=%s config=%s", topic, dict(now))
            for listener in self._listeners:
                listener(topic, now)

    # --- following ---

    def _watch(self, zk: ZooKeeper) -> None:
        zk.watch_children(CONFIG_CHANGES, self._fired)

    def _fired(self, kind: WatchType, path: str) -> None:
        self._all_stale |= kind is WatchType.MAYBE
        self._changed.set()

    async def _new_session(self) -> None:
        self._watch(self._session.current)
        self._all_stale = True
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._catch_up()
            except ZooKeeperError as error:
                self._all_stale = True
                _log.warning("topic_config.interrupted error=%r", error)
            except Exception as error:  # noqa: BLE001  logged; what changes later must still be read
                self._all_stale = True
                failed(_log, error, "topic_config.failed")

    async def _catch_up(self) -> None:
        zk = self._session.current
        now_s = asyncio.get_running_loop().time()
        names = await zk.children(CONFIG_CHANGES)
        if self._all_stale:
            self._all_stale = False
            stale = [(BROKERS_KIND, ALL_BROKERS), *((TOPICS_KIND, topic) for topic in sorted(self._known))]
        else:
            entities = [await _named(zk, name) for name in names if name not in self._seen]
            stale = [entity for entity in entities if entity is not None]
        self._seen = {name: self._seen.get(name, now_s) for name in names}
        for kind, name in dict.fromkeys(stale):
            if kind == TOPICS_KIND:
                before = self._known.get(name)
                await self._read(name)
                self._tell(name, before)
            elif kind == BROKERS_KIND and name in (ALL_BROKERS, str(self._config.broker_id)):
                await self._read_broker()
        await self._purge(zk, now_s)

    async def _purge(self, zk: ZooKeeper, now_s: float) -> None:
        """Delete notifications that every broker must have read; the first broker to come does it."""
        for name in [name for name, seen_s in self._seen.items() if now_s - seen_s > KEEP_NOTIFICATIONS_S]:
            try:
                await zk.delete(config_change_path(name))
            except NoNode:
                _log.debug("topic_config.notification %s was deleted by another broker", name)
            del self._seen[name]


async def _named(zk: ZooKeeper, notification: str) -> tuple[str, str] | None:
    """Return kind and name of a notification's subject; None when it is gone or invalid."""
    path = config_change_path(notification)
    try:
        data, _ = await zk.get(path)
        return changed_entity(path, data)
    except NoNode:
        return None
    except MalformedZnode as error:
        _log.error("topic_config.notification ignored: %s", error)
        return None
