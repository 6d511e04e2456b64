"""The simulated cluster as faults know one: a driver, a view of ZooKeeper, and what the brokers say."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from harness.broker.wire.transport import PeerError
from harness.cluster.driver import BrokerStatus, ClusterRequest, ClusterStatus, ZookeeperStatus
from harness.cluster.links.interference import Interference
from harness.errors import ClusterError, DeadlineError
from harness.simulation.brokers import SimulatedBroker
from harness.simulation.capabilities import ClockCapabilities, DiskCapabilities, ZookeeperCapabilities, frozen
from harness.simulation.cluster import CLIENT_PORT, PEER_PORT, SimulatedCluster
from harness.simulation.evidence import now_ns, session_text, wall_ns
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.values import PYTHON
from harness.zookeeper.view import (
    Controller,
    PartitionView,
    Registration,
    ZookeeperView,
    assignment_of,
    controller_view,
    partition_view,
)

NOWHERE = Path("/simulated")
"""Where the files of a simulated cluster would be."""


ADMINISTRATOR = "harness"
"""The host from which brokers are asked things."""
OLD_SESSION_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 5.0
"""As of the view of real servers (`harness.zookeeper.kazoo_view`)."""


class SimulationDriver(ZookeeperCapabilities, DiskCapabilities, ClockCapabilities):
    """Implements `ClusterDriver`, `CanKill`, `CanPause` and `harness.cluster.capabilities`, but for `CanSendBytes`."""

    name = "simulated"
    families: ClassVar[frozenset[str]] = frozenset({PYTHON})

    def __init__(self, cluster: SimulatedCluster, clients: Sequence[str] = ()) -> None:
        """`clients` are the hosts of the client processes."""
        self._cluster = cluster
        self._clients = clients
        self._interference = Interference(cluster.network.links)
        self._timers = {}
        self._zookeeper = tuple(
            ZookeeperStatus(
                server_id=number,
                state=ProcessState.RUNNING,
                pid=None,
                client_address=server.host,
                data_dir=NOWHERE / server.host,
                log=NOWHERE / server.host / "log",
            )
            for number, server in enumerate(cluster.ensemble.servers, start=1)
        )
        self._seen = {broker_id: _stopped(broker) for broker_id, broker in cluster.brokers.items()}
        """What every broker was at the last look."""

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return nothing: it runs anywhere."""
        return {}

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Start every broker; its size was decided when it was made."""
        await asyncio.gather(*(self.start_broker(broker_id) for broker_id in range(request.brokers)))
        return await self.status()

    async def status(self) -> ClusterStatus:
        """Return what runs now."""
        return ClusterStatus(
            driver=self.name,
            root=NOWHERE,
            bootstrap_servers=",".join(f"{host}:{port}" for host, port in self._cluster.bootstrap),
            zookeeper_connect=",".join(server.host for server in self._cluster.ensemble.servers),
            zookeeper=tuple(map(self._look_at_zookeeper, self._zookeeper)),
            brokers=tuple(map(self._look, self._seen)),
        )

    async def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker with its disk; return when it is registered again.

        A registration that its earlier life left behind is waited out first, as the new one could not register.
        """
        await until(
            SimulatedView(self._cluster).registrations,
            lambda seen: broker_id not in seen,
            what=f"end of broker {broker_id}'s old registration",
            timeout_s=OLD_SESSION_TIMEOUT_S,
        )
        broker = self._stopped(broker_id)
        if not await broker.start():
            raise ClusterError(f"broker {broker_id} did not start: {broker.failure or 'it was killed'}")

    async def start_early(self, broker_id: int) -> None:
        """Start a stopped broker with its disk, even while another process is registered under its id."""
        await self._stopped(broker_id).start()

    def _stopped(self, broker_id: int) -> SimulatedBroker:
        broker = self._cluster[broker_id]
        if broker.state != ProcessState.STOPPED:
            raise ClusterError(f"broker {broker_id} runs already")
        return broker

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Ask a broker to shut down cleanly and wait for its end."""
        if not await self._cluster[broker_id].stop(timeout_s):
            raise DeadlineError(f"broker {broker_id} did not stop within {timeout_s:g} s")

    async def kill_broker(self, broker_id: int) -> None:
        """End a broker without a word."""
        self._cluster[broker_id].kill()

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Freeze a broker, for `at_most_s` at most."""
        self._cluster[broker_id].pause(at_most_s)

    async def resume_broker(self, broker_id: int) -> None:
        """Let a broker go on; nothing happens when it runs."""
        self._cluster[broker_id].resume()

    async def connect(self, broker_id: int, *, timeout_s: float) -> MemoryConnection:
        """Connect to a broker's client listener, to ask it something."""
        transport = MemoryTransport(self._cluster.network, ADMINISTRATOR)
        try:
            return await transport.connect(
                self._cluster[broker_id].host, CLIENT_PORT, client_id=ADMINISTRATOR, timeout_s=timeout_s
            )
        except PeerError as error:
            raise ClusterError(str(error)) from error

    async def copy_data(self) -> list[str]:
        """Return nothing: all evidence is in memory already."""
        return []

    async def stop(self) -> None:
        """End every broker, whatever state it is in."""
        for broker in self._cluster.brokers.values():
            broker.kill()

    async def residue(self) -> list[str]:
        """Return nothing: what was made is in memory."""
        return []

    def _look_at_zookeeper(self, server: ZookeeperStatus) -> ZookeeperStatus:
        if not self._cluster.ensemble.servers[server.server_id - 1].runs:
            return replace(server, state=ProcessState.STOPPED)
        paused = self._interference.holds(frozen(server.server_id))
        return replace(server, state=ProcessState.PAUSED) if paused else server

    def _look(self, broker_id: int) -> BrokerStatus:
        broker, seen = self._cluster[broker_id], self._seen[broker_id]
        if (broker.state, broker.starts) != (seen.state, seen.starts):
            seen = self._seen[broker_id] = replace(seen, state=broker.state, starts=broker.starts)
        return seen


def _stopped(broker: SimulatedBroker) -> BrokerStatus:
    folder = NOWHERE / broker.host
    return BrokerStatus(
        broker_id=broker.broker_id,
        state=ProcessState.STOPPED,
        pid=None,
        client_address=f"{broker.host}:{CLIENT_PORT}",
        peer_address=f"{broker.host}:{PEER_PORT}",
        log_dir=folder,
        state_change_log=folder / "state-change.jsonl",
        human_log=folder / "broker.log",
        starts=0,
    )


class SimulatedView(ZookeeperView):
    """A `ZookeeperView`: what stands in ZooKeeper now, read without a session; nothing while no server serves."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._ensemble = cluster.ensemble

    async def _served(self) -> None:
        """Wait for servers that take requests, as long as the view of a real one does; raises ClusterError."""

        async def leads() -> bool:
            return self._ensemble.leader is not None

        if self._ensemble.leader is None:
            await until(leads, bool, what="ZooKeeper taking requests", timeout_s=READ_TIMEOUT_S)

    async def controller(self) -> Controller:
        """Return the controller."""
        await self._served()
        nodes = self._ensemble.nodes
        epoch, controller = nodes.get("/controller_epoch"), nodes.get("/controller")
        return controller_view(
            None if epoch is None else epoch.data,
            None if controller is None else (controller.data, session_text(controller.owner)),
        )

    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""
        await self._served()
        registrations = {
            int(name): self._ensemble.nodes[f"/brokers/ids/{name}"] for name in self._ensemble.names("/brokers/ids")
        }
        return {
            broker_id: Registration(broker_id=broker_id, czxid=node.czxid, session=session_text(node.owner))
            for broker_id, node in sorted(registrations.items())
        }

    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state znode, by topic and partition."""
        await self._served()
        nodes = self._ensemble.nodes
        views = []
        for topic in self._ensemble.names("/brokers/topics"):
            for partition, assignment in sorted(assignment_of(nodes[f"/brokers/topics/{topic}"].data)):
                state = nodes.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
                if state is not None:
                    views.append(partition_view(topic, partition, assignment, state.data, state.version))
        return views

    async def expire(self, session: str) -> None:
        """End the session of another client; nothing happens when it is over already."""
        await self._served()
        self._ensemble.end(int(session, 16))

    async def exists(self, path: str) -> bool:
        """Return whether there is a znode."""
        await self._served()
        return path in self._ensemble.nodes

    async def read(self, path: str) -> bytes | None:
        """Return what a znode holds; None when there is none."""
        await self._served()
        node = self._ensemble.nodes.get(path)
        return None if node is None else node.data

    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode; return False when it is there already."""
        await self._served()
        if path in self._ensemble.nodes:
            return False
        self._ensemble.put(path, data)
        return True

    async def write(self, path: str, data: bytes, *, instead_of: bytes | None = None) -> bool:
        """Replace what a znode holds; return False when there is none, or not `instead_of`."""
        await self._served()
        node = self._ensemble.nodes.get(path)
        if node is None or instead_of not in (None, node.data):
            return False
        self._ensemble.put(path, data)
        return True

    async def delete(self, path: str) -> bool:
        """Delete a znode without children; return False when there is none."""
        await self._served()
        if path not in self._ensemble.nodes:
            return False
        self._ensemble.remove(path)
        return True


class SimulatedStateChanges:
    """Implements `StateChanges`: a position in a log is the number of its lines."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def end_of(self, broker_id: int) -> int:
        """Return where a broker's log ends now."""
        return len(self._cluster[broker_id].log.events)

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        """Return the events of these kinds from `position` on, and the position for the next look."""
        log = self._cluster[broker_id].log
        wanted = [logged for logged in log.events[position:] if logged.event.ev in kinds]
        return [json.loads(log.line(logged)) for logged in wanted], len(log.events)

    async def grown(self, kind: str, within_s: float) -> None:
        """Return in the instant in which a broker logs an event of this kind, or when the time is over."""
        grown = asyncio.get_running_loop().create_future()
        for broker_id in self._cluster.brokers:
            self._cluster[broker_id].log.waiting.setdefault(kind, []).append(grown)
        await asyncio.wait([grown], timeout=within_s)

    async def dated(self, broker_id: int, position: int) -> tuple[int | None, int]:
        """Return what a broker's wall clock showed at its last line, and the position for the next look."""
        log = self._cluster[broker_id].log
        last = log.events[-1] if log.events[position:] else None
        return None if last is None else wall_ns(last.time_ns) + last.ahead_ns, len(log.events)

    async def release(self, broker_id: int, position: int) -> str:
        """Return that none says it: there is one release."""
        return ""

    def wall_ns(self) -> int:
        """Return the wall clock of the simulation."""
        return wall_ns(now_ns())
