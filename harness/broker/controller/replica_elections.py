"""Elections on request: by ElectLeaders, by `/admin/preferred_replica_election`, or for the balance of leaders.

After `processReplicaLeaderElection` and `checkAndTriggerAutoLeaderRebalance` of Kafka's `KafkaController`.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.broker.configs.config import BrokerConfig
from harness.broker.controller.context import ControllerContext
from harness.broker.controller.environment import Environment
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.selectors import Strategy, may_be_preferred
from harness.broker.controller.transitions import PartitionStatus
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import Delete, NoNode
from harness.broker.zookeeper.znodes import PREFERRED_ELECTION, MalformedZnode, decode_preferred_election
from harness.events import NO_LEADER
from harness.values import TopicPartition

log = logging.getLogger(__name__)

FIRST_REBALANCE_S = 5.0
"""After taking over."""
ELECTION_EVENT = "ReplicaLeaderElection"
REBALANCE_EVENT = "AutoPreferredReplicaLeaderElection"


class ElectionKind(IntEnum):
    """Which replica must lead, by Kafka's numbers (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionResult:
    """The result of one partition."""

    leader: int = NO_LEADER
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class ReplicaElections:
    """Carries out elections, and checks the balance of leaders periodically."""

    def __init__(self, environment: Environment, partitions: PartitionMachine, config: BrokerConfig) -> None:
        self._env = environment
        self._context = environment.context
        self._partitions = partitions
        self._config = config
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Register for elections that are requested in ZooKeeper."""
        handler = self._env.on_watch(ELECTION_EVENT, self.znode_changed)
        self._env.session.current.watch_node(PREFERRED_ELECTION, handler)

    def unwatch(self) -> None:
        """Remove the handler, and stop checking the balance."""
        self._env.session.current.unwatch_node(PREFERRED_ELECTION)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def start(self) -> None:
        """Start checking the balance, if configured."""
        if self._config["auto.leader.rebalance.enable"]:
            self._look_in(FIRST_REBALANCE_S)

    async def znode_changed(self) -> None:
        """Event ReplicaLeaderElection: elect the preferred leaders that the znode names, and delete it."""
        zk = self._env.session.current
        if await zk.exists(PREFERRED_ELECTION) is None:
            return
        try:
            await self.elect(await self._named(), ElectionKind.PREFERRED, trigger="zookeeper")
        finally:
            await self._env.writes.write(Delete(path=PREFERRED_ELECTION))
            self._env.enqueue(ELECTION_EVENT, self.znode_changed)  # which arms the watch again

    async def _named(self) -> list[TopicPartition]:
        try:
            data, _ = await self._env.session.current.get(PREFERRED_ELECTION)
            return decode_preferred_election(data)
        except NoNode:
            return []
        except MalformedZnode as error:
            log.error("preferred_election.ignored error=%s", error)
            return []

    async def elect(
        self, partitions: Sequence[TopicPartition], kind: ElectionKind, *, trigger: str
    ) -> dict[TopicPartition, ElectionResult]:
        """Elect the preferred leaders, or with UNCLEAN any replica for partitions without a live leader.

        An administrator's request (`trigger` "admin") for an unclean election overrides the configuration.
        """
        results = {p: refusal for p in partitions if (refusal := refused(self._context, p, kind)) is not None}
        electable = [partition for partition in partitions if partition not in results]
        log.info("election.started kind=%s partitions=%s trigger=%s", kind.name, electable, trigger)
        preferred = kind is ElectionKind.PREFERRED
        failures = await self._partitions.change(
            electable,
            PartitionStatus.ONLINE,
            Strategy.PREFERRED if preferred else Strategy.OFFLINE,
            trigger=trigger,
            allow_unclean=kind is ElectionKind.UNCLEAN and trigger == "admin",
        )
        unavailable = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        for partition in electable:
            if partition in failures:
                results[partition] = ElectionResult(error=unavailable, message=failures[partition])
            else:
                results[partition] = ElectionResult(leader=self._context.leader(partition))
        return results

    def _look_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._env.enqueue, REBALANCE_EVENT, self.rebalance)

    async def rebalance(self) -> None:
        """Event AutoPreferredReplicaLeaderElection: elect preferred leaders where too many are elsewhere."""
        try:
            percentage = self._config["leader.imbalance.per.broker.percentage"]
            for broker_id, partitions in imbalanced(self._context, percentage, self._env.rules).items():
                log.info("rebalance.started broker=%d partitions=%s", broker_id, partitions)
                await self.elect(partitions, ElectionKind.PREFERRED, trigger="auto")
        finally:
            if self._timer is not None:  # else the controller resigned meanwhile
                self._look_in(self._config["leader.imbalance.check.interval.seconds"])


def refused(context: ControllerContext, partition: TopicPartition, kind: ElectionKind) -> ElectionResult | None:
    """Return why no election is held for a partition, or None when it is to be held. Pure."""
    if not context.replicas(partition):
        message = "The partition does not exist."
        return ElectionResult(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
    if partition[0] in context.deleting:
        return ElectionResult(error=ErrorCode.INVALID_TOPIC_EXCEPTION, message="The topic is being deleted")
    leader = context.leader(partition)
    if kind is ElectionKind.PREFERRED:
        needed = leader != context.replicas(partition)[0]
    else:
        needed = leader not in context.live or leader in context.shutting_down
    return None if needed else ElectionResult(error=ErrorCode.ELECTION_NOT_NEEDED)


def imbalanced(context: ControllerContext, percentage: int, rules: ProtocolRules) -> dict[int, list[TopicPartition]]:
    """Return the partitions whose preferred replica must lead again, by that broker. Pure.

    Only of brokers that lack more than `percentage` of the leads they should have; only partitions whose preferred
    replica is online and in the ISR (KAFKA-9866); none while any reassignment is running.
    """
    if context.reassigning:
        return {}
    wanted: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions():
        if partition[0] not in context.deleting and context.replicas(partition):
            wanted.setdefault(context.replicas(partition)[0], []).append(partition)
    imbalanced = {}
    for broker_id, partitions in sorted(wanted.items()):
        away = [p for p in partitions if p in context.leadership and context.leader(p) != broker_id]
        electable = [
            p
            for p in away
            if context.is_online(broker_id, p) and may_be_preferred(broker_id, context.leadership[p].state.isr, rules)
        ]
        if electable and len(away) * 100 > percentage * len(partitions):
            imbalanced[broker_id] = electable
    return imbalanced
