"""Notifications of brokers through ZooKeeper: a leader changed an ISR, a log directory failed."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.broker.controller.environment import Environment
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.transitions import ReplicaStatus
from harness.broker.zookeeper.client import Delete, NoNode
from harness.broker.zookeeper.partition_state import read_partition_states
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.znodes import (
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    MalformedZnode,
    decode_isr_change,
    decode_log_dir_event,
)

log = logging.getLogger(__name__)

T = TypeVar("T")


class Notifications:
    """Reads notifications, handles them, and removes them."""

    def __init__(self, environment: Environment, replicas: ReplicaMachine) -> None:
        self._env = environment
        self._context = environment.context
        self._replicas = replicas

    def watch(self) -> None:
        """Register for both kinds."""
        zk = self._env.session.current
        zk.watch_children(LOG_DIR_EVENTS, self._env.on_watch("LogDirEventNotification", self.log_dir_failed))
        zk.watch_children(ISR_CHANGES, self._env.on_watch("IsrChangeNotification", self.isr_changed))

    def unwatch(self) -> None:
        """Remove both handlers."""
        for path in (ISR_CHANGES, LOG_DIR_EVENTS):
            self._env.session.current.unwatch_children(path)

    async def drop(self) -> None:
        """Delete notifications to the earlier controller: the state that they name is read anyway."""
        for path in (LOG_DIR_EVENTS, ISR_CHANGES):
            await self._delete(path, await self._env.session.current.children(path))

    async def isr_changed(self) -> None:
        """Event IsrChangeNotification: read the ISRs that leaders have changed, and notify all brokers."""
        zk = self._env.session.current
        names, changes = await self._read(ISR_CHANGES, decode_isr_change)
        partitions = sorted({partition for partitions in changes for partition in partitions})
        known = [partition for partition in partitions if partition in self._context.partition_status]
        if known and self._env.rules.changed_isrs_are_published:
            self._context.leadership |= await read_partition_states(zk, known)
            self._env.tell_metadata(self._context.live_or_shutting_down, known)
        await self._delete(ISR_CHANGES, names)

    async def log_dir_failed(self) -> None:
        """Event LogDirEventNotification: ask brokers about all their replicas; the answers name the failed ones.

        The notifications are deleted even when asking fails, as in Kafka.
        """
        names, broker_ids = await self._read(LOG_DIR_EVENTS, decode_log_dir_event)
        try:
            log.info("log_dirs.failed brokers=%s", sorted(set(broker_ids)))
            await self._replicas.change(self._context.replicas_on(set(broker_ids)), ReplicaStatus.ONLINE)
        finally:
            await self._delete(LOG_DIR_EVENTS, names)

    async def _read(self, parent: str, decode: Callable[[str, bytes], T]) -> tuple[list[str], list[T]]:
        """Return the names of all notifications, and the content of the valid ones."""
        names = await self._env.session.current.children(parent)
        notifications = await all_of(self._read_one(f"{parent}/{name}", decode) for name in names)
        return names, [each for each in notifications if each is not None]

    async def _read_one(self, path: str, decode: Callable[[str, bytes], T]) -> T | None:
        try:
            data, _ = await self._env.session.current.get(path)
            return decode(path, data)
        except NoNode:
            return None
        except MalformedZnode as error:
            log.error("notification.ignored error=%s", error)
            return None

    async def _delete(self, parent: str, names: Sequence[str]) -> None:
        await self._env.writes.write_all([Delete(path=f"{parent}/{name}") for name in names])
