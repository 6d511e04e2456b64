"""What is configured for a topic, kept in step with ZooKeeper.

The broker's own properties hold for whatever a topic does not set. A topic's properties are read when the broker first
hears of it, and again whenever `/config/changes` names it; after a lost connection or session everything is read anew.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.broker.config import BrokerConfig
from harness.broker.config_types import ConfigError
from harness.broker.topic_properties import parse_topic_config, topic_defaults
from harness.broker.zookeeper.client import NoNode, WatchType, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import read_topic_config
from harness.broker.zookeeper.znodes import (
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    MalformedZnode,
    changed_topic,
    config_change_path,
)

_log = logging.getLogger(__name__)

Listener = Callable[[str, Mapping[str, Any]], None]


class TopicConfigs:
    """Answers what holds for a topic; `start` reads all that ZooKeeper has and follows it from then on."""

    def __init__(self, config: BrokerConfig, session: ZooKeeperSession) -> None:
        self._defaults = topic_defaults(config)
        self._session = session
        self._known: dict[str, Mapping[str, Any]] = {}
        self._seen: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._all_stale = False
        self._follower: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []

    def of(self, topic: str) -> Mapping[str, Any]:
        """Return every property of a topic with its own type; the broker's for a topic not heard of."""
        return self._known.get(topic, self._defaults)

    def on_change(self, listener: Listener) -> None:
        """Call `listener` with a topic and its properties once they have changed."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Read the properties of every topic, and follow their changes."""
        zk = self._session.current
        self._watch(zk)
        self._seen = frozenset(await zk.children(CONFIG_CHANGES))
        await self.load(await zk.children(TOPIC_CONFIGS))
        self._session.after_new_session(self._new_session)
        self._follower = asyncio.create_task(self._follow(), name="topic-configs")

    async def stop(self) -> None:
        """Stop following."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
            self._follower = None

    async def load(self, topics: Iterable[str]) -> None:
        """Read the properties of those topics that were not read yet."""
        for topic in topics:
            if topic not in self._known:
                await self._read(topic)

    async def _read(self, topic: str) -> None:
        try:
            own = parse_topic_config(await read_topic_config(self._session.current, topic))
        except (ConfigError, MalformedZnode) as error:
            _log.error("topic_config.ignored topic=%s error=%s", topic, error)
            own = {}
        self._known[topic] = {**self._defaults, **own}

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
            except Exception:  # noqa: BLE001  logged; what changes later must still be read
                self._all_stale = True
                _log.exception("topic_config.failed")

    async def _catch_up(self) -> None:
        zk = self._session.current
        names = await zk.children(CONFIG_CHANGES)
        if self._all_stale:
            self._all_stale = False
            stale = sorted(self._known)
        else:
            stale = [topic for name in names if name not in self._seen and (topic := await _named(zk, name))]
        self._seen = frozenset(names)
        for topic in dict.fromkeys(stale):
            before = self._known.get(topic)
            await self._read(topic)
            if self._known[topic] == before:
                continue
            _log.info("topic_config.changed topic=%s config=%s", topic, dict(self._known[topic]))
            for listener in self._listeners:
                listener(topic, self._known[topic])


async def _named(zk: ZooKeeper, notification: str) -> str | None:
    """Return the topic that a notification names; None when it is gone or names something else."""
    path = config_change_path(notification)
    try:
        data, _ = await zk.get(path)
        return changed_topic(path, data)
    except NoNode:
        return None
    except MalformedZnode as error:
        _log.error("topic_config.notification ignored: %s", error)
        return None
