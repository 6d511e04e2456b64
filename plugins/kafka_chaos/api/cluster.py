"""A cluster of brokers that Python code starts, uses and disturbs.

`AsyncCluster` is for `async with`; `kafka_chaos.api.Cluster` has the same methods without `await`.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.cluster.capabilities import Direction, Side
from harness.cluster.driver import (
    CAPABILITIES,
    CLOCK,
    DISK_ERRORS,
    DISK_FILES,
    DISK_SPACE,
    POWER,
    ClusterDriver,
    ClusterRequest,
    ClusterStatus,
)
from harness.cluster.readiness import view_of
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.faults import Effect, FaultContext
from harness.errors import ClusterError, Refused, ScenarioError
from harness.kafka.brokers import group_coordinator
from harness.scenario.capabilities import missing, require_lasting_cluster, require_system
from harness.store.history import read_jsonl
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.values import PYTHON
from harness.zookeeper.view import OpenableView, PartitionView, ZookeeperView
from kafka_chaos.api.asked import Wanted, assignment_of, checked, member, sides_of, target_of

DISTURBS = frozenset({"kill", "pause", "isolate"})
"""What every cluster can be put under, or it is not started."""
PREPARED = frozenset({CLOCK, DISK_ERRORS, DISK_FILES, DISK_SPACE, POWER})
"""Capabilities for which brokers are started in another way: a cluster has them if `needs` names them."""
LONGEST_S = 60.0
"""Of a disturbance that is not ended: a pause, an isolation, a hold."""
READY_S = 30.0
CLUSTER_ID = "api"
NOT_RUNNING = "the cluster does not run: use it within its `with` block"


@dataclass(frozen=True, slots=True)
class _Running:
    """What there is of a cluster between its start and its end."""

    driver: ClusterDriver
    view: OpenableView
    status: ClusterStatus


class AsyncCluster:
    """A cluster of real processes in a folder of its own; it ends with the block, or with this process."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        system: str = PYTHON,
        properties: Mapping[str, str] | None = None,
        planted_bugs: Sequence[str] = (),
        needs: Sequence[str] = (),
        driver: str = "process",
        folder: Path | None = None,
    ) -> None:
        """Configure the cluster; it starts when the block is entered.

        Args:
            brokers: Number of brokers.
            system: `python`, the broker of this project, or a release of Apache Kafka, as `kafka:4.4.0`.
            properties: Properties of every broker.
            planted_bugs: Guards of the built-in broker that are switched off; `chaos list planted-bugs` names them.
            needs: What must be prepared for faults: `clock`, `disk-errors`, `disk-files`, `disk-space`, `power`.
            driver: Where the brokers run; `chaos list drivers` names them.
            folder: Where configuration, data and logs are; by default a temporary folder that is removed.

        Raises:
            ScenarioError: an argument has a value of another type.
        """
        values = {"properties": properties or {}, "planted_bugs": planted_bugs, "needs": needs}
        wanted = checked(Wanted, values, "the cluster")
        self._needs = DISTURBS | frozenset(wanted.needs)
        self._driver_name, self._folder = driver, folder
        self._request = ClusterRequest(
            brokers=brokers,
            properties=wanted.properties,
            system=system,
            planted_bugs=tuple(wanted.planted_bugs),
            needs=self._needs,
            owner_pid=os.getpid(),
        )
        self._stack = AsyncExitStack()
        self._running: _Running | None = None

    async def __aenter__(self) -> Self:
        """Start it; return when clients can use it.

        Raises:
            ScenarioError: the system or a capability does not exist, or is not to be had on this machine.
            ClusterError: it did not come up, and nothing of it is left; or it runs already.
        """
        if self._running is not None:
            raise ClusterError("the cluster runs already")
        self._require()
        async with AsyncExitStack() as stack:
            folder = self._folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-chaos-")))
            folder.mkdir(parents=True, exist_ok=True)
            driver = registry.driver_class(self._driver_name)(folder.resolve(), CLUSTER_ID)
            status = await driver.start(self._request)
            stack.push_async_callback(driver.stop)
            view = await stack.enter_async_context(view_of(status.zookeeper_connect, status.controllers))
            stack.callback(self._ended)
            self._running = _Running(driver, view, status)
            await self._groups_ready()
            self._stack = stack.pop_all()
        return self

    def _ended(self) -> None:
        self._running = None

    @property
    def _now(self) -> _Running:
        if self._running is None:
            raise ClusterError(NOT_RUNNING)
        return self._running

    async def _groups_ready(self) -> None:
        """Create the offsets topic now: later a dead broker could leave too few brokers for its replicas."""
        host, _, port = self.bootstrap_servers.partition(",")[0].rpartition(":")

        async def coordinator() -> int:
            return await group_coordinator(host, int(port), CLUSTER_ID, timeout_s=READY_S)

        what = "a coordinator of groups"
        await until(coordinator, lambda seen: seen >= 0, what=what, timeout_s=READY_S, every_s=0.05)

    async def __aexit__(self, *_error: object) -> None:
        """Stop it in any state."""
        await self._stack.aclose()

    def _require(self) -> None:
        require_lasting_cluster(self._driver_name)
        require_system(self._request.system)
        if unknown := sorted(self._needs - set(CAPABILITIES)):
            raise ScenarioError(registry.unknown_message("capability", unknown[0], sorted(CAPABILITIES)))
        if lacking := missing(self._driver_name, self._needs):
            raise Refused(f"the driver {self._driver_name} cannot do this here: {lacking}")

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients are configured with."""
        return self._now.status.bootstrap_servers

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers, whether they run or not."""
        return tuple(broker.broker_id for broker in self._now.status.brokers)

    async def status(self) -> ClusterStatus:
        """Return what runs now: state, process, addresses and files of each broker."""
        return await self._now.driver.status()

    async def create_topic(self, name: str, *, partitions: int = 1, replication_factor: int | None = None) -> None:
        """Create a topic, and return when each of its partitions has a leader.

        Raises:
            ScenarioError: Kafka has no topics with such a name or number of partitions.
            ClusterError: there is a topic of that name, or more replicas are asked for than there are brokers.
        """
        replicas = min(3, len(self.brokers)) if replication_factor is None else replication_factor
        assignment = assignment_of(name, partitions, replicas, self.brokers)
        if not await self._now.view.create_topic(name, assignment):
            raise ClusterError(f"there is a topic {name} already")

        async def led() -> int:
            return sum(each.topic == name and each.leader >= 0 for each in await self._now.view.partitions())

        what = f"a leader of each of {partitions} partitions of {name}"
        await until(led, lambda seen: seen == partitions, what=what, timeout_s=READY_S, every_s=0.05)

    async def partition(self, topic: str, partition: int = 0) -> PartitionView:
        """Return leader, leader epoch, ISR and replicas of a partition; ClusterError when there is none."""
        for each in await self._now.view.partitions():
            if (each.topic, each.partition) == (topic, partition):
                return each
        raise ClusterError(f"there is no partition {topic}-{partition}")

    async def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the leader; -1 when there is none."""
        return (await self.partition(topic, partition)).leader

    async def kill(self, broker_id: int) -> None:
        """Kill a broker (SIGKILL); it stays dead until `start`."""
        await self._able("kill").kill_broker(broker_id)

    async def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the leader of a partition; return its id when another leader is there, where there can be one."""
        before = await self.partition(topic, partition)
        if before.leader < 0:
            raise ClusterError(f"{topic}-{partition} has no leader to kill")
        await self.kill(before.leader)
        if set(before.isr) - {before.leader}:
            what = f"another leader of {topic}-{partition} than broker {before.leader}"
            look: Callable[[], Any] = lambda: self.partition(topic, partition)  # noqa: E731
            later = lambda seen: seen.leader not in (-1, before.leader)  # noqa: E731
            await until(look, later, what=what, timeout_s=READY_S, every_s=0.05)
        return before.leader

    async def start(self, broker_id: int) -> None:
        """Start a stopped broker with its data; return when it is registered again."""
        await self._now.driver.start_broker(broker_id)

    async def stop(self, broker_id: int, *, timeout_s: float = 30.0) -> None:
        """Shut a broker down cleanly (SIGTERM): it hands its partitions over first."""
        await self._now.driver.stop_broker(broker_id, timeout_s=timeout_s)

    async def pause(self, broker_id: int, *, at_most_s: float = LONGEST_S) -> None:
        """Freeze a broker (SIGSTOP) until `resume`, or for so long."""
        await self._able("pause").pause_broker(broker_id, at_most_s=at_most_s)

    async def resume(self, broker_id: int) -> None:
        """Thaw a broker; nothing happens when it runs."""
        await self._able("pause").resume_broker(broker_id)

    async def isolate(
        self,
        broker_id: int,
        *,
        sides: Sequence[Side] = (Side.PEERS, Side.CLIENTS, Side.ZOOKEEPER),
        direction: Direction = Direction.BOTH,
        at_most_s: float = LONGEST_S,
    ) -> None:
        """Cut a broker's links until `rejoin`, or for so long; connections stay half open, and what is sent waits."""
        way = member(Direction, direction, "direction")
        await self._able("isolate").isolate(broker_id, sides_of(sides), way, at_most_s=at_most_s)

    async def rejoin(self, broker_id: int) -> None:
        """Restore the links that were cut or held for a broker; what waited arrives."""
        await self._able("isolate").rejoin(broker_id)

    @asynccontextmanager
    async def hold(
        self,
        broker_id: int,
        *,
        sides: Sequence[Side] = (Side.CLIENTS,),
        direction: Direction = Direction.BOTH,
        at_most_s: float = LONGEST_S,
    ) -> AsyncIterator[None]:
        """Hold what is sent over a broker's links until the block ends; then it arrives, in order.

        By default it is the traffic of its clients. With `Direction.OUTBOUND` requests arrive, and answers wait.
        """
        await self.isolate(broker_id, sides=sides, direction=direction, at_most_s=at_most_s)
        try:
            yield
        finally:
            await self.rejoin(broker_id)

    async def expire_session(self, broker_id: int) -> None:
        """End a broker's ZooKeeper session; return when it has registered with another one."""
        if not isinstance(self._now.view, ZookeeperView):
            raise ClusterError(f"{self._request.system} has no ZooKeeper, and so no sessions")
        registered = await self._now.view.registrations()
        if broker_id not in registered:
            raise ClusterError(f"broker {broker_id} is not registered; registered: {sorted(registered)}")
        await self._now.view.expire(registered[broker_id].session)

        def anew(seen: Mapping[int, Any]) -> bool:
            return broker_id in seen and seen[broker_id].session != registered[broker_id].session

        what = f"a registration of broker {broker_id} by a new session"
        await until(self._now.view.registrations, anew, what=what, timeout_s=READY_S, every_s=0.05)

    @asynccontextmanager
    async def fault(
        self, kind: str, *, target: str = "1", duration_s: float = LONGEST_S, **parameters: object
    ) -> AsyncIterator[Effect]:
        """Keep a fault of any kind in force until the block ends; yield whether it was seen to happen.

        Args:
            kind: As `chaos list faults` names it, plugins of others included.
            target: As in a scenario: broker ids, `leader(orders,0)`, `controller`.
            duration_s: After so long it ends by itself, where it can.
            **parameters: Of this kind, as in a scenario.

        Raises:
            PluginError: there is no such kind.
            ScenarioError: target or parameters are wrong, or the cluster was not started for it (`needs`).
            ClusterError: no broker is the target now.
            Refused: the driver cannot do it on this machine.
        """
        plugin = registry.fault(kind)
        if lacking := missing(self._driver_name, plugin.requires):
            raise Refused(f"the driver {self._driver_name} cannot do this here: {lacking}")
        if unmet := sorted(PREPARED.intersection(plugin.requires) - self._needs):
            raise ScenarioError(f"{kind} takes {', '.join(unmet)}: start the cluster with needs={unmet}")
        values = checked(plugin.Parameters, parameters, kind)
        known = [each.broker_id for each in (*self._now.status.brokers, *self._now.status.quorum)]
        aimed, brokers = await target_of(kind, target, self._now.view, known)
        context = FaultContext(driver=self._now.driver, view=self._now.view)
        injection = await plugin.prepare(context, aimed, brokers, values, duration_s=duration_s)
        try:
            injection = await plugin.inject(context, injection)
            yield await plugin.confirm(context, injection)
        finally:
            await plugin.heal(context, injection)

    async def heal(self) -> None:
        """Resume, rejoin and start all brokers; return when all are registered."""
        for broker in (await self.status()).brokers:
            await self.rejoin(broker.broker_id)
            if broker.state == ProcessState.PAUSED:
                await self.resume(broker.broker_id)
            if broker.state == ProcessState.STOPPED:
                await self.start(broker.broker_id)
        all_ids = set(self.brokers)
        what = "every broker registered"
        await until(self._now.view.registrations, lambda seen: set(seen) == all_ids, what=what, timeout_s=READY_S)

    async def state_changes(self) -> list[dict[str, Any]]:
        """Return what the brokers logged, by time: elections, ISR changes, high watermarks, truncations."""
        status = await self.status()
        lines: list[dict[str, Any]] = []
        for broker in status.brokers:
            system_named(status.system_of(broker.broker_id)).gather(broker)
            if broker.state_change_log.exists():
                lines += [{"broker": broker.broker_id, **line} for line in read_jsonl(broker.state_change_log)]
        return sorted(lines, key=lambda line: line.get("ts", 0))

    def _able(self, name: str) -> Any:
        """Return the driver as one with a capability."""
        if not isinstance(self._now.driver, CAPABILITIES[name]):
            raise Refused(f"the driver {self._now.driver.name} does not have the capability {name}")
        return self._now.driver
