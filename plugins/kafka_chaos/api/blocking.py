"""The same cluster for code without `async`: its coroutines run on a loop in a thread of its own."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar

from harness.cluster.capabilities import Direction, Side
from harness.cluster.driver import ClusterStatus
from harness.contracts.faults import Effect
from harness.errors import ClusterError
from harness.values import PYTHON
from harness.zookeeper.view import PartitionView
from kafka_chaos.api.cluster import LONGEST_S, NOT_RUNNING, AsyncCluster

Value = TypeVar("Value")


class Cluster:
    """`AsyncCluster` for `with`; what its arguments and methods mean is said there."""

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
        self._cluster = AsyncCluster(
            brokers=brokers,
            system=system,
            properties=properties,
            planted_bugs=planted_bugs,
            needs=needs,
            driver=driver,
            folder=folder,
        )
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        """Start it; return when clients can use it."""
        if self._loop is not None:
            raise ClusterError("the cluster runs already")
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="kafka-chaos", daemon=True)
        self._thread.start()
        try:
            self._do(self._cluster.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Stop it in any state."""
        try:
            self._do(self._cluster.__aexit__(*error))
        finally:
            self._end()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients are configured with."""
        return self._cluster.bootstrap_servers

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers, whether they run or not."""
        return self._cluster.brokers

    def status(self) -> ClusterStatus:
        """Return what runs now: state, process, addresses and files of each broker."""
        return self._do(self._cluster.status())

    def create_topic(self, name: str, *, partitions: int = 1, replication_factor: int | None = None) -> None:
        """Create a topic, and return when each of its partitions has a leader."""
        self._do(self._cluster.create_topic(name, partitions=partitions, replication_factor=replication_factor))

    def partition(self, topic: str, partition: int = 0) -> PartitionView:
        """Return leader, leader epoch, ISR and replicas of a partition."""
        return self._do(self._cluster.partition(topic, partition))

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the leader; -1 when there is none."""
        return self._do(self._cluster.leader(topic, partition))

    def kill(self, broker_id: int) -> None:
        """Kill a broker (SIGKILL); it stays dead until `start`."""
        self._do(self._cluster.kill(broker_id))

    def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the leader of a partition; return its id when another leader is there, where there can be one."""
        return self._do(self._cluster.kill_leader(topic, partition))

    def start(self, broker_id: int) -> None:
        """Start a stopped broker with its data; return when it is registered again."""
        self._do(self._cluster.start(broker_id))

    def stop(self, broker_id: int, *, timeout_s: float = 30.0) -> None:
        """Shut a broker down cleanly (SIGTERM): it hands its partitions over first."""
        self._do(self._cluster.stop(broker_id, timeout_s=timeout_s))

    def pause(self, broker_id: int, *, at_most_s: float = LONGEST_S) -> None:
        """Freeze a broker (SIGSTOP) until `resume`, or for so long."""
        self._do(self._cluster.pause(broker_id, at_most_s=at_most_s))

    def resume(self, broker_id: int) -> None:
        """Thaw a broker; nothing happens when it runs."""
        self._do(self._cluster.resume(broker_id))

    def isolate(
        self,
        broker_id: int,
        *,
        sides: Sequence[Side] = (Side.PEERS, Side.CLIENTS, Side.ZOOKEEPER),
        direction: Direction = Direction.BOTH,
        at_most_s: float = LONGEST_S,
    ) -> None:
        """Cut a broker's links until `rejoin`, or for so long."""
        self._do(self._cluster.isolate(broker_id, sides=sides, direction=direction, at_most_s=at_most_s))

    def rejoin(self, broker_id: int) -> None:
        """Restore the links that were cut or held for a broker; what waited arrives."""
        self._do(self._cluster.rejoin(broker_id))

    @contextmanager
    def hold(
        self,
        broker_id: int,
        *,
        sides: Sequence[Side] = (Side.CLIENTS,),
        direction: Direction = Direction.BOTH,
        at_most_s: float = LONGEST_S,
    ) -> Iterator[None]:
        """Hold what is sent over a broker's links until the block ends; then it arrives, in order."""
        held = self._cluster.hold(broker_id, sides=sides, direction=direction, at_most_s=at_most_s)
        with self._within(held):
            yield

    def expire_session(self, broker_id: int) -> None:
        """End a broker's ZooKeeper session; return when it has registered with another one."""
        self._do(self._cluster.expire_session(broker_id))

    @contextmanager
    def fault(
        self, kind: str, *, target: str = "1", duration_s: float = LONGEST_S, **parameters: object
    ) -> Iterator[Effect]:
        """Keep a fault of any kind in force until the block ends; yield whether it was seen to happen."""
        with self._within(self._cluster.fault(kind, target=target, duration_s=duration_s, **parameters)) as effect:
            yield effect

    def heal(self) -> None:
        """Resume, rejoin and start all brokers; return when all are registered."""
        self._do(self._cluster.heal())

    def state_changes(self) -> list[dict[str, Any]]:
        """Return what the brokers logged, by time."""
        return self._do(self._cluster.state_changes())

    @contextmanager
    def _within(self, block: AbstractAsyncContextManager[Value]) -> Iterator[Value]:
        value = self._do(block.__aenter__())
        try:
            yield value
        finally:
            self._do(block.__aexit__(None, None, None))

    def _do(self, work: Coroutine[Any, Any, Value]) -> Value:
        __tracebackhide__ = True  # pytest shows the line of the test, and the error
        if self._loop is None:
            work.close()
            raise ClusterError(NOT_RUNNING)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        loop, self._loop = self._loop, None
        assert loop is not None, "it ends once"
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()
