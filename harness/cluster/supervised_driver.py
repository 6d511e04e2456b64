"""What do the drivers of real clusters have in common?

Each cluster has a supervisor, which reserves the ports, runs the clients and watches the owner: a run is alive exactly
as long as its supervisor. A driver adds where the servers run: as children of the supervisor, or in containers.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from harness.broker.rules import rules_with
from harness.cluster import broker_properties, embedded_zookeeper, readiness, relay
from harness.cluster.disks.small_disks import IN_A_NAMESPACE
from harness.cluster.driver import (
    DISK_SPACE,
    ENSEMBLES,
    BrokerStatus,
    ClusterRequest,
    ClusterStatus,
    ZookeeperStatus,
    quorum_ids,
)
from harness.cluster.layout import ClusterLayout, broker_process, zookeeper_process
from harness.cluster.ports import LOOPBACK, listens
from harness.cluster.releases import writers
from harness.cluster.supervision.client_processes import RunsClients
from harness.cluster.supervision.supervision import GONE_TIMEOUT_S, Supervision
from harness.cluster.supervision.supervisor import EVENTS_NAME
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError, DeadlineError, ScenarioError
from harness.kafka.brokers import listed_brokers
from harness.store.folder import RunFolder
from harness.system.extras import lacking
from harness.system.process_state import ProcessState
from harness.values import PYTHON

if TYPE_CHECKING:
    from harness.broker.wire.transport import Connection

T = TypeVar("T")

CLIENT_ID = "harness"
"""What the harness calls itself to brokers."""

FIRST_BROKER_ID = 0
FIRST_SERVER_ID = 1
LOG_TAIL_LINES = 20
ANSWER_S = 1.0
"""For a broker to answer a new client, if it does at all."""
ZOOKEEPER_TIMEOUT_S = 60.0
"""For one of its servers to be up again."""
LOOK_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One server, when last looked at."""

    state: ProcessState
    """running, paused or stopped."""
    pid: int | None
    starts: int
    exit_status: int | None = None
    """None while it runs."""
    container: str | None = None


NEVER_STARTED = ServerState(state=ProcessState.STOPPED, pid=None, starts=0)


def without_clients() -> dict[str, str]:
    """Return why no client can be started here, by capability, if there is a reason."""
    absent = lacking("confluent_kafka")
    return {"clients": absent} if absent else {}


class SupervisedDriver(RunsClients, ABC):
    """Implements ClusterDriver, CanKill, CanStartEarly, CanKillZookeeper, CanAsk, CanSendBytes and CanRunClients.

    The abstract methods deal with one server each.
    """

    name: ClassVar[str]
    families: ClassVar[frozenset[str]] = frozenset({PYTHON})
    in_containers: ClassVar[bool] = False
    """Whether it starts of these families only what runs in containers."""

    def __init__(self, root: Path, run_id: str) -> None:
        self._root = root
        self._run_id = run_id
        self._supervision = Supervision(RunFolder(root).cluster, run_id)

    # --- what a driver adds ---

    @abstractmethod
    async def _lay_out(self, request: ClusterRequest) -> ClusterLayout:
        """Choose ports and folders for all servers."""

    @abstractmethod
    async def _start_servers(self, layout: ClusterLayout, properties: dict[str, str]) -> None:
        """Configure and start ZooKeeper and all brokers; return without waiting until they are ready."""

    @abstractmethod
    async def _start_broker(self, layout: ClusterLayout, broker_id: int) -> None:
        """Start a broker that was started before; return without waiting until it is ready."""

    @abstractmethod
    async def _start_zookeeper(self, layout: ClusterLayout, server_id: int) -> None:
        """Start a ZooKeeper server; return without waiting until it is ready."""

    @abstractmethod
    async def _signal(self, name: str, signal_name: str) -> None:
        """Send a signal (TERM, KILL) to a server that runs."""

    @abstractmethod
    async def _ended(self, name: str, timeout_s: float) -> bool:
        """Wait for a server to end; return whether it did within `timeout_s`."""

    @abstractmethod
    async def _servers(self, layout: ClusterLayout) -> dict[str, ServerState]:
        """Return the state of every server that was ever started, by the name of its process."""

    @abstractmethod
    async def _log_tail(self, name: str) -> tuple[str, list[str]]:
        """Return where a server's log is, for a message, and its last lines."""

    # --- the whole cluster ---

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Start everything; return when brokers are registered, a controller is elected and metadata served.

        Raises:
            ScenarioError: the request is wrong; nothing was started.
            ClusterError: a server did not become ready, and everything was stopped again.
        """
        _validate(request)
        if self.in_containers and not system_named(request.system).in_containers:
            raise ScenarioError(f"the driver {self.name} has no container for {request.system}")
        # A cluster without an owner belongs to this process until it is ready: if this one is killed, it ends too.
        owner = request.owner_pid if request.owner_pid is not None else os.getpid()
        await self._supervision.launch(owner, IN_A_NAMESPACE if DISK_SPACE in request.needs else ())
        try:
            layout = await self._lay_out(request)
            layout.save()
            await self._start_servers(layout, request.properties)
            names = [*map(zookeeper_process, layout.zookeeper), *map(broker_process, (*layout.brokers, *layout.quorum))]
            names += [relay.PROCESS] if layout.relay else []
            timeout_s = system_named(request.system).start_timeout_s
            await self._while_alive(names, readiness.cluster_ready(layout, timeout_s=timeout_s))
            if request.owner_pid is None:
                await self._supervision.call("disown", expires_after_s=request.expires_after_s)
        except BaseException:
            await self.stop()
            raise
        return await self.status()

    async def status(self) -> ClusterStatus:
        """Return the state of all servers now; raises ClusterError when no cluster was ever started here."""
        layout = ClusterLayout.load(self._root)
        servers = await self._servers(layout)
        return ClusterStatus(
            driver=self.name,
            system=layout.system,
            root=self._root,
            bootstrap_servers=layout.bootstrap_servers,
            zookeeper_connect=layout.zookeeper_connect,
            controllers=layout.controllers,
            quorum=tuple(
                self._broker_status(layout, id_, servers.get(broker_process(id_), NEVER_STARTED))
                for id_ in layout.quorum
            ),
            zookeeper=tuple(
                _zookeeper_status(layout, server_id, servers.get(zookeeper_process(server_id), NEVER_STARTED))
                for server_id in layout.zookeeper
            ),
            brokers=tuple(
                self._broker_status(layout, broker_id, servers.get(broker_process(broker_id), NEVER_STARTED))
                for broker_id in layout.brokers
            ),
            severed=ended_relay(servers.get(relay.PROCESS)) if layout.relay else "",
        )

    async def stop(self) -> None:
        """Stop all processes, whatever state they are in; idempotent.

        Raises:
            DeadlineError: a process survives SIGKILL.
        """
        await self._supervision.end()

    async def residue(self) -> list[str]:
        """Return a sentence for each process, port and supervisor's socket of this run that is left.

        The run folder is evidence, not residue.
        """
        left = self._supervision.residue()
        try:
            ports = ClusterLayout.load(self._root).all_ports
        except ClusterError:
            ports = []
        if left:  # otherwise another program listens there now, to which the port was free
            left += [f"port {port} of run {self._run_id} still accepts connections" for port in ports if listens(port)]
        return left

    # --- one broker ---

    async def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker with its data; return when it is registered again.

        First wait until the registration of its previous process has expired: while that exists, the new process could
        not register.
        """
        layout = await self._with_stopped(broker_id)
        timeout_s = system_named(layout.system).start_timeout_s
        if not layout.controllers:  # a broker without ZooKeeper asks until its old registration is gone
            await readiness.broker_unregistered(layout, broker_id, timeout_s=timeout_s)
        await self._start_broker(layout, broker_id)
        name = broker_process(broker_id)
        await self._while_alive([name], readiness.broker_ready(layout, broker_id, timeout_s=timeout_s))

    async def start_early(self, broker_id: int) -> None:
        """Start a stopped broker with its data, even if its id is registered; `status` reports the outcome."""
        await self._start_broker(await self._with_stopped(broker_id), broker_id)

    async def _with_stopped(self, broker_id: int) -> ClusterLayout:
        layout = self._layout_with(broker_id)
        if (await self._servers(layout)).get(broker_process(broker_id), NEVER_STARTED).state != ProcessState.STOPPED:
            raise ClusterError(f"broker {broker_id} runs already")
        return layout

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Ask a broker to shut down cleanly (SIGTERM) and wait for its end."""
        self._layout_with(broker_id)
        await self._signal(broker_process(broker_id), "TERM")
        await self._wait_for_end(broker_process(broker_id), timeout_s, "SIGTERM")

    async def kill_broker(self, broker_id: int) -> None:
        """End the process at once (SIGKILL) and return when it is gone."""
        system = system_named(self._layout_with(broker_id).system)
        await self._signal(broker_process(broker_id), "KILL")
        await self._wait_for_end(broker_process(broker_id), system.gone_timeout_s, "SIGKILL")

    async def answers_all(self, broker_id: int, clients: int) -> bool:
        """Connect to a broker as so many clients at once; return whether all have an answer within `ANSWER_S`."""
        host, port = self._client_endpoint(broker_id)
        requests = (listed_brokers(host, port, timeout_s=ANSWER_S) for _ in range(clients))
        answers = await asyncio.gather(*requests, return_exceptions=True)
        return not any(isinstance(answer, ClusterError) for answer in answers)

    async def connect(self, broker_id: int, *, timeout_s: float) -> "Connection":
        """Connect to a broker's client listener, to ask it something."""
        from harness.broker.wire.tcp import TcpTransport  # its codecs take a tenth of a second to load
        from harness.broker.wire.transport import PeerError

        host, port = self._client_endpoint(broker_id)
        try:
            return await TcpTransport().connect(host, port, client_id=CLIENT_ID, timeout_s=timeout_s)
        except PeerError as error:
            raise ClusterError(str(error)) from error

    async def open_stream(
        self, broker_id: int, *, timeout_s: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a broker's client listener, to send it bytes."""
        host, port = self._client_endpoint(broker_id)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.open_connection(host, port)
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"broker {broker_id} takes no connection at {host}:{port}: {error!r}") from error

    def _client_endpoint(self, broker_id: int) -> tuple[str, int]:
        host, _, port = self._layout_with(broker_id).client_address(broker_id).rpartition(":")
        return host, int(port)

    # --- one ZooKeeper server ---

    async def zookeeper_modes(self) -> dict[int, str]:
        """Return leader, follower or standalone by server, as it says (`srvr`); empty where it takes no requests."""
        ports = {server_id: own.client for server_id, own in ClusterLayout.load(self._root).zookeeper.items()}
        modes = await asyncio.gather(*map(embedded_zookeeper.mode, ports.values()))
        return dict(zip(ports, modes, strict=True))

    async def kill_zookeeper(self, server_id: int) -> None:
        """End the process at once (SIGKILL) and return when it is gone."""
        self._layout_with_server(server_id)
        await self._signal(zookeeper_process(server_id), "KILL")
        await self._wait_for_end(zookeeper_process(server_id), GONE_TIMEOUT_S, "SIGKILL")

    async def start_zookeeper(self, server_id: int) -> None:
        """Start a stopped server with its data; return when it answers (`ruok`), if without a quorum."""
        layout, name = self._layout_with_server(server_id), zookeeper_process(server_id)
        if (await self._servers(layout)).get(name, NEVER_STARTED).state != ProcessState.STOPPED:
            raise ClusterError(f"ZooKeeper server {server_id} runs already")
        await self._start_zookeeper(layout, server_id)
        answering = readiness.zookeeper_answers(layout, server_id, timeout_s=ZOOKEEPER_TIMEOUT_S)
        await self._while_alive([name], answering)

    def _layout_with_server(self, server_id: int) -> ClusterLayout:
        layout = ClusterLayout.load(self._root)
        if server_id not in layout.zookeeper:
            raise ClusterError(f"no ZooKeeper server {server_id}; there are: {', '.join(map(str, layout.zookeeper))}")
        return layout

    def _layout_with(self, broker_id: int) -> ClusterLayout:
        layout = ClusterLayout.load(self._root)
        ids = (*layout.brokers, *layout.quorum)
        if broker_id not in ids:
            raise ClusterError(f"no broker {broker_id}; there are: {', '.join(map(str, ids))}")
        return layout

    def _layout_with_clocks(self, broker_id: int) -> ClusterLayout:
        layout = self._layout_with(broker_id)
        if not layout.clocks:
            raise ClusterError("no clock can be set: this cluster was started without libfaketime")
        return layout

    def _broker_status(self, layout: ClusterLayout, broker_id: int, server: ServerState) -> BrokerStatus:
        ports = layout.brokers.get(broker_id)
        address = layout.controllers[broker_id] if ports is None else layout.client_address(broker_id)
        return BrokerStatus(
            broker_id=broker_id,
            state=server.state,
            pid=server.pid,
            client_address=address,
            peer_address=address if ports is None else self._peer_address(layout, broker_id),
            log_dir=layout.log_dir(broker_id),
            state_change_log=layout.state_change_log(broker_id),
            human_log=layout.human_log(broker_id),
            starts=server.starts,
            container=server.container,
            clock_log=layout.folder / EVENTS_NAME if layout.clocks else None,
            writers=writers(layout, broker_id),
            metrics_url=None
            if ports is None or ports.metrics is None
            else f"http://{LOOPBACK}:{ports.metrics}/metrics",
        )

    def _peer_address(self, layout: ClusterLayout, broker_id: int) -> str:
        """Return where other brokers reach a broker."""
        return f"{LOOPBACK}:{layout.relay.get(broker_id, layout.brokers[broker_id]).peer}"

    # --- waiting ---

    async def _wait_for_end(self, name: str, timeout_s: float, after: str) -> None:
        if not await self._ended(name, timeout_s):
            raise DeadlineError(f"{name} still runs {timeout_s:g} s after {after}")

    async def _while_alive(self, names: list[str], ready: Coroutine[Any, Any, T]) -> T:
        """Return the result of `ready`; raise ClusterError with the end of its log if a named server ends before."""
        exits = {asyncio.ensure_future(self._exit_report(name)) for name in names}
        waiting = asyncio.ensure_future(ready)
        try:
            await asyncio.wait({waiting, *exits}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ClusterError("; ".join(report.result() for report in exits if report.done()))
            return waiting.result()
        finally:
            for task in (waiting, *exits):
                task.cancel()
            await asyncio.gather(waiting, *exits, return_exceptions=True)

    async def _exit_report(self, name: str) -> str:
        """Wait for a server to end; return its exit status and the end of its log."""
        while not await self._ended(name, LOOK_AGAIN_S):
            pass  # `ready` has a deadline
        server = (await self._servers(ClusterLayout.load(self._root)))[name]
        log, tail = await self._log_tail(name)
        return "\n".join([f"{name} ended with status {server.exit_status}; the end of {log}:", *tail])


def servers_of(request: ClusterRequest) -> tuple[int, int]:
    """Return how many servers of ZooKeeper there are to be, and how many controllers of a quorum; one of them is 0."""
    if system_named(request.system).zookeeper:
        return request.zookeeper_servers, 0
    return 0, len(quorum_ids(request.brokers, request.controllers, separate=request.separate_controllers))


def _validate(request: ClusterRequest) -> None:
    """Raise ScenarioError when the request cannot be met."""
    system = system_named(request.system)
    if request.zookeeper_servers not in ENSEMBLES:
        allowed = " or ".join(map(str, ENSEMBLES))
        raise ScenarioError(f"ZooKeeper has {allowed} servers, not {request.zookeeper_servers}")
    on_brokers = 0 if request.separate_controllers else request.controllers or 0
    if not system.zookeeper and on_brokers > request.brokers:
        raise ScenarioError(f"{request.brokers} brokers cannot be {request.controllers} controllers")
    broker_properties.validate(
        request.brokers, request.properties, ours=system.properties_are_ours, zookeeper=system.zookeeper
    )
    if request.planted_bugs and not system.can_have_planted_bugs:
        raise ScenarioError(f"no bug can be planted in {system.name}")
    try:
        rules_with(list(request.planted_bugs))
    except ValueError as error:
        raise ScenarioError(str(error)) from error


def server_state(child: dict[str, Any]) -> ServerState:
    """Return the state of a child of the supervisor."""
    ended = child["state"] == ProcessState.STOPPED
    return ServerState(
        state=ProcessState.STOPPED if ended else child["state"],
        pid=None if ended else child["pid"],
        starts=child["starts"],
        exit_status=child["status"],
    )


def ended_relay(server: ServerState | None) -> str:
    """Return that the relay has ended, as a reason why intact servers do not reach each other; empty if it has not."""
    if server is None or not server.starts or server.state != ProcessState.STOPPED:
        return ""
    return f"the relay ended with status {server.exit_status}, and all connections with it"


def tail_of(log: Path) -> list[str]:
    """Return the last lines of a log; an empty list when there is no such file."""
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    except FileNotFoundError:
        return []


def require_free_port(port: int, owner: str) -> None:
    """Raise ClusterError when another program listens on a port."""
    if listens(port):
        raise ClusterError(f"port {port} of {owner} is taken by another program")


def _zookeeper_status(layout: ClusterLayout, server_id: int, server: ServerState) -> ZookeeperStatus:
    return ZookeeperStatus(
        server_id=server_id,
        state=server.state,
        pid=server.pid,
        client_address=f"{LOOPBACK}:{layout.zookeeper[server_id].client}",
        data_dir=layout.zookeeper_data(server_id),
        log=layout.zookeeper_log(server_id),
        container=server.container,
    )
