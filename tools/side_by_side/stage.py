"""Which broker plays which part in a situation, what can be done to it, and what is waited for?"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import KafkaError as KafkaClientError
from kazoo.client import KazooClient

from harness.store.history import ZnodeChange
from harness.zookeeper import sessions
from harness.zookeeper.kazoo_view import KazooView
from harness.zookeeper.transaction_log import read_transaction_log
from harness.zookeeper.view import Controller, PartitionView
from tools.peers import Peer

PARTS = "ABCD"
"""A, B and C are the replicas of partition 0 in the order of their assignment, A its preferred leader; D has none."""
DEADLINE_S = 60.0
QUIET_S = 8.0
"""Nothing was written for so long: the situation is over. A change of an ISR reaches the controller within 7.5 s."""
LOOK_EVERY_S = 0.05
ELECTIONS = {"preferred": 0, "unclean": 1}


@dataclass(frozen=True, slots=True)
class ZooKeeperState:
    """What ZooKeeper holds now."""

    controller: Controller
    registered: frozenset[int]
    partitions: tuple[PartitionView, ...]


class Stage:
    """Speaks of brokers by their parts; the cluster's ids are known here only."""

    def __init__(self, peer: Peer, topic: str, controller: str, brokers: int) -> None:
        """`controller` is the part that the broker which is controller at the beginning plays."""
        self.topic = topic
        self._peer = peer
        self._view = KazooView(peer.zookeeper_connect)
        asyncio.run(self._view.open())
        first = self.seen().controller
        others = iter(broker_id for broker_id in range(brokers) if broker_id != first.broker_id)
        self.ids = {part: first.broker_id if part == controller else next(others) for part in PARTS[:brokers]}
        self.first = first
        self.begins_after = max(change.zxid for change in self._log())
        self.missed: list[str] = []
        """What was waited for in vain."""
        self.admin = KafkaAdminClient(bootstrap_servers=peer.bootstrap_servers.split(","))

    def close(self) -> None:
        """End the sessions of its own."""
        self.admin.close()
        asyncio.run(self._view.close())

    def create(self, replicas: str = "ABC", **config: str) -> None:
        """Create the topic with one partition on these brokers, the first of them its leader, and one record in it.

        With the record all followers have fetched: one that has not leaves the ISR by its lag, before its session ends.
        """
        assignments = {0: [self.ids[part] for part in replicas]}
        self.admin.create_topics({self.topic: {"assignments": assignments, "configs": config}})
        self.until_isr(replicas)
        self.write(1, acks="all")

    def kill(self, part: str) -> None:
        """SIGKILL a broker."""
        self._peer.kill(self.ids[part])

    def stop(self, part: str) -> None:
        """SIGTERM a broker and wait for its end."""
        self._peer.stop(self.ids[part])

    def start(self, part: str) -> None:
        """Start a broker again and wait until it is registered."""
        self._peer.start(self.ids[part])
        self.until(f"{part} registered", lambda seen: self.ids[part] in seen.registered)

    def pause(self, part: str) -> None:
        """SIGSTOP a broker."""
        self._peer.pause(self.ids[part])

    def resume(self, part: str) -> None:
        """SIGCONT a broker."""
        self._peer.resume(self.ids[part])

    def expire(self, part: str) -> None:
        """End a broker's ZooKeeper session."""
        asyncio.run(self._expire(self.ids[part]))

    async def _expire(self, broker_id: int) -> None:
        registration = (await self._view.registrations())[broker_id]
        await sessions.expire(self._peer.zookeeper_connect, registration.session)

    def delete_znode(self, path: str) -> None:
        """Delete a znode without any client of the cluster."""
        client = KazooClient(hosts=self._peer.zookeeper_connect)
        client.start()
        try:
            client.delete(path)
        finally:
            client.stop()
            client.close()

    def configure(self, setting: str) -> None:
        """Change the topic's configuration: `key=value`."""
        key, _, value = setting.partition("=")
        self._request(
            "configuration",
            self.admin.alter_configs,
            [ConfigResource("TOPIC", self.topic, {key: value})],
            raise_on_unknown=False,
        )

    def elect(self, kind: str) -> None:
        """Ask for an election of partition 0: of the preferred leader, or an unclean one."""
        self._request("election", self.admin.elect_leaders, ELECTIONS[kind], {self.topic: [0]})

    def reassign(self, parts: str | None = None) -> None:
        """Give partition 0 other replicas; None takes that back."""
        replicas = None if parts is None else [self.ids[part] for part in parts]
        answer = self._request(
            "reassignment", self.admin.alter_partition_reassignments, {TopicPartition(self.topic, 0): replicas}
        )
        self.missed += [f"reassignment to {parts}: {error.__name__}" for error in (answer or {}).values() if error]

    def delete(self) -> None:
        """Delete the topic; not waited for."""
        self._request("deletion", self.admin.delete_topics, [self.topic], timeout_ms=1000)

    def until_deleted(self) -> None:
        """Wait until nothing of the topic stands any more."""
        self.until("deleted", lambda seen: all(each.topic != self.topic for each in seen.partitions))

    def _request(self, what: str, send: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Send a request to the cluster; an error is part of what is compared."""
        try:
            return send(*arguments, **more)
        except KafkaClientError as error:
            self.missed.append(f"{what}: {type(error).__name__}")

    def write(self, records: int = 20, acks: str = "1") -> None:
        """Write records to partition 0, and wait for what acknowledges them or for half a minute."""
        producer = Producer({"bootstrap.servers": self._peer.bootstrap_servers, "acks": acks, "log_level": 0})
        failed: list[str] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error.name())

        for number in range(records):
            producer.produce(self.topic, str(number).encode(), partition=0, on_delivery=delivered)
        if producer.flush(DEADLINE_S / 2) or failed:
            self.missed.append(f"{records} records with acks={acks}: {failed[0] if failed else 'no answer'}")

    def until_isr(self, parts: str, leader: str | None = None) -> None:
        """Wait until exactly these are in sync, in any order, and one of them, or `leader`, leads."""
        members = {self.ids[part] for part in parts}
        leaders = {self.ids[leader]} if leader else members

        def reached(seen: ZooKeeperState) -> bool:
            mine = [each for each in seen.partitions if each.topic == self.topic]
            return bool(mine) and all(set(each.isr) == members and each.leader in leaders for each in mine)

        self.until(f"in sync {parts}" + (f" under {leader}" if leader else ""), reached)

    def until_leader(self, part: str | None = None) -> None:
        """Wait until a broker leads partition 0; None for no leader."""
        broker_id = -1 if part is None else self.ids[part]

        def reached(seen: ZooKeeperState) -> bool:
            return any(each.topic == self.topic and each.leader == broker_id for each in seen.partitions)

        self.until(f"leader {part or 'none'}", reached)

    def until_gone(self, part: str) -> None:
        """Wait until a broker is not registered any more."""
        self.until(f"{part} gone", lambda seen: self.ids[part] not in seen.registered)

    def until(self, what: str, reached: Callable[[ZooKeeperState], bool]) -> None:
        """Wait for something to stand in ZooKeeper; what does not come is noted, and goes into the comparison."""
        deadline = time.monotonic() + DEADLINE_S
        while not reached(self.seen()):
            if time.monotonic() > deadline:
                self.missed.append(what)
                return
            time.sleep(LOOK_EVERY_S)

    def until_quiet(self) -> list[ZnodeChange]:
        """Wait until nothing was written for a while; return everything written since the situation began."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            changes = [change for change in self._log() if change.zxid > self.begins_after]
            if time.time() - max((change.time_ms for change in changes), default=0) / 1000 > QUIET_S:
                return changes
            if time.monotonic() > deadline:
                self.missed.append("quiet")
                return changes
            time.sleep(QUIET_S / 4)

    def seen(self) -> ZooKeeperState:
        """Return what ZooKeeper holds now."""
        return asyncio.run(self._see())

    async def _see(self) -> ZooKeeperState:
        return ZooKeeperState(
            await self._view.controller(),
            frozenset(await self._view.registrations()),
            tuple(await self._view.partitions()),
        )

    def _log(self) -> list[ZnodeChange]:
        return read_transaction_log(self._peer.zookeeper_data).changes
