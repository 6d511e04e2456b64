"""The `docker` driver: a network for the run, a container and a volume for each server; clients stay on the host.

The supervisor reserves the ports, runs the clients and watches the owner as for every driver. A guard, a child of it,
copies the data out of the containers and removes everything when the supervisor ends, in whatever way.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

from harness.cluster import faketime, relay
from harness.cluster.containers import filters, guard, images, plans
from harness.cluster.containers.clocks import ContainerClocks
from harness.cluster.containers.data_copy import containers_lock, copy_data, relay_output
from harness.cluster.containers.disks import ContainerDisks
from harness.cluster.containers.engine import FREEZE_TIMEOUT_S, ContainerPlan, ContainerState, Engine, Owner
from harness.cluster.containers.limits import ContainerLimits
from harness.cluster.containers.packets import ContainerPackets
from harness.cluster.disks import tracer
from harness.cluster.driver import (
    CLOCK,
    CPU_LIMIT,
    DISK_ERRORS,
    DISK_SPACE,
    DRIVER,
    MEMORY_LIMIT,
    PACKETS,
    POWER,
    SLOW_SYNCS,
    ClusterRequest,
)
from harness.cluster.layout import BrokerPorts, ClusterLayout, ZookeeperPorts, broker_process, zookeeper_process
from harness.cluster.ports import LOOPBACK
from harness.cluster.relay.capabilities import RelayCapabilities
from harness.cluster.relay.layout import ports_needed, relayed
from harness.cluster.supervised_driver import (
    FIRST_BROKER_ID,
    FIRST_SERVER_ID,
    LOG_TAIL_LINES,
    ServerState,
    require_free_port,
    tail_of,
    without_clients,
)
from harness.cluster.supervision.supervision import LAST_STAGE
from harness.cluster.systems.system import started
from harness.errors import ClusterError
from harness.store.folder import RunFolder
from harness.system.process_state import ProcessState
from harness.system.whole_file import replace_text

T = TypeVar("T")

STATE_POLL_S = 0.05
RESUME_TIMEOUT_S = 10.0
_BY_CONTROL_GROUPS = ("pause", "zookeeper-pause", CPU_LIMIT, MEMORY_LIMIT)


class DockerDriver(RelayCapabilities, ContainerClocks, ContainerLimits, ContainerDisks, ContainerPackets):
    """A `SupervisedDriver` with CanPause, CanPauseZookeeper, `ContainerClocks`, `ContainerLimits`, `ContainerDisks`
    and `ContainerPackets`.

    With a relay it has `RelayCapabilities` too.

    It attaches from any process by the run folder.
    """

    name = "docker"
    families: ClassVar[frozenset[str]] = started()
    in_containers: ClassVar[bool] = True

    def __init__(self, root: Path, run_id: str) -> None:
        super().__init__(root, run_id)
        self._names = plans.Names(root)
        self._owner = Owner(run_id=run_id, root=root)

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return what is missing: an engine, on this machine, with the images; control groups for pausing; clients."""
        if remote := _remote_engine(os.environ.get("DOCKER_HOST", "")):
            return {DRIVER: remote}
        try:
            with Engine.connect() as engine:
                if absent := images.missing(engine):
                    return {DRIVER: _missing_images(absent)}
                frozen = (
                    {}
                    if engine.can_freeze()
                    else dict.fromkeys(_BY_CONTROL_GROUPS, "the Docker engine has no control groups")
                )
                traced = dict.fromkeys((DISK_ERRORS, SLOW_SYNCS), _untraceable())
                besides = traced | {CLOCK: faketime.lacking(), PACKETS: filters.lacking()}
                lacking = {name: reason for name, reason in besides.items() if reason}
                return frozen | lacking | without_clients()
        except ClusterError as error:
            return {DRIVER: str(error)}

    # --- the whole cluster ---

    async def copy_data(self) -> list[str]:
        """Copy the servers' data out of the containers to the paths in `status`; return a sentence for each failure."""
        layout = ClusterLayout.load(self._root)

        def copy(engine: Engine) -> list[str]:
            with containers_lock(self._root, guard.GRACE_S):
                return copy_data(engine, layout)

        try:
            return await self._with_engine(copy)
        except ClusterError as error:
            return [f"no data could be brought out of the containers: {error}"]

    async def stop(self) -> None:
        """Remove the containers, the network and the volumes, and end the supervisor; idempotent.

        Raises:
            ClusterError: the engine does not remove them; all else is stopped.
            DeadlineError: a process survives SIGKILL.
        """
        problem = None
        if self._was_laid_out():
            try:
                await self._with_engine(self._remove_everything)
            except ClusterError as error:
                problem = error
        with contextlib.suppress(ClusterError):  # a supervisor that does not answer is ended below, and its guard too
            await self._supervision.signal_if_running(guard.GUARD, "KILL")  # it would do the same again
        await super().stop()
        if problem is not None:
            raise problem

    async def residue(self) -> list[str]:
        """Return a sentence for each process, port, socket, container, network and volume of this run that is left."""
        left = await super().residue()
        if not self._was_laid_out():
            return left
        try:
            resources = await self._with_engine(lambda engine: engine.resources(self._root.resolve()))
        except ClusterError as error:
            return [*left, f"containers of run {self._run_id} may be left: {error}"]
        return [*left, *(f"the {it.kind} {it.name} of run {self._run_id} still exists" for it in resources)]

    async def _lay_out(self, request: ClusterRequest) -> ClusterLayout:
        if absent := await self._with_engine(images.missing):
            raise ClusterError(_missing_images(absent))
        per_broker = 2 if request.metrics else 1
        ports = iter(
            await self._supervision.reserve_ports(
                request.zookeeper_servers
                + request.brokers * per_broker
                + ports_needed(request.brokers, request.zookeeper_servers) * request.relay
            )
        )
        servers = range(FIRST_SERVER_ID, FIRST_SERVER_ID + request.zookeeper_servers)
        brokers = range(FIRST_BROKER_ID, FIRST_BROKER_ID + request.brokers)
        layout = ClusterLayout(
            root=self._root,
            run_id=self._run_id,
            driver=self.name,
            system=request.system,
            zookeeper={server_id: ZookeeperPorts(client=next(ports)) for server_id in servers},
            brokers={
                broker_id: BrokerPorts(client=next(ports), metrics=next(ports) if request.metrics else None)
                for broker_id in brokers
            },
            planted_bugs=request.planted_bugs,
            clocks=CLOCK in request.needs,
            syncs=POWER in request.needs,
            zookeeper_syncs=request.zookeeper_syncs,
            intercepts=request.intercepts,
            disk_files=request.disk_files,
            disks=DISK_SPACE in request.needs,
        )
        return relayed(layout, ports) if request.relay else layout

    async def _start_servers(self, layout: ClusterLayout, properties: dict[str, str]) -> None:
        argv = [sys.executable, "-m", guard.__name__, guard.GUARD, str(self._root.resolve()), self._run_id]
        await self._supervision.spawn(
            guard.GUARD, argv, RunFolder(self._root).cluster / "guard.log", LAST_STAGE, guard.GRACE_S
        )
        async with self._engine() as engine:
            # An earlier cluster in this folder may have left some.
            await _in_thread(partial(engine.remove_run, self._root.resolve()))
            addresses = await _in_thread(partial(self._create_network, engine, layout))
            if layout.clocks:
                faketime.install(layout.folder)
            servers = [plans.zookeeper(layout, server_id, addresses) for server_id in layout.zookeeper]
            relays = [plans.relay(layout, addresses)] if layout.relay else []
            disks = [plans.disks(layout)] if layout.disks else []
            brokers = [plans.broker(layout, broker_id, properties, addresses) for broker_id in layout.brokers]
            for port in layout.all_ports:
                require_free_port(port, f"run {self._run_id}")

            def create(plan: ContainerPlan) -> None:
                for volume in plan.volumes:
                    engine.create_volume(volume, self._owner, plan.volume_options)
                engine.create_container(plan, self._owner)

            await _each(create, [*servers, *relays, *disks, *brokers])
            for group in (relays, servers, disks, brokers):  # a name resolves once its container runs
                await _each(engine.start, [plan.name for plan in group])
        for process in _processes(layout):
            self._count_start(process)

    def _create_network(self, engine: Engine, layout: ClusterLayout) -> dict[str, str]:
        """Create the run's network; for a relay, which identifies senders by it, return every server's address."""
        if layout.relay:
            return plans.addresses_on(engine.create_addressed_network(self._names.network, self._owner), layout)
        engine.create_network(self._names.network, self._owner)
        return {}

    def _remove_everything(self, engine: Engine) -> None:
        with containers_lock(self._root, guard.GRACE_S):  # the guard may be removing them
            engine.remove_run(self._root.resolve())

    def _was_laid_out(self) -> bool:
        """Return whether the layout was ever saved here; no container is created before that."""
        try:
            ClusterLayout.load(self._root)
        except ClusterError:
            return False
        return True

    # --- one server ---

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Freeze a broker's container; a child of the supervisor thaws it after `at_most_s` at the latest."""
        self._layout_with(broker_id)
        await self._pause(broker_process(broker_id), at_most_s)

    async def resume_broker(self, broker_id: int) -> None:
        """Resume a broker; no-op if it runs."""
        self._layout_with(broker_id)
        await self._resume(broker_process(broker_id))

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        """Freeze a ZooKeeper server's container as a broker's."""
        self._layout_with_server(server_id)
        await self._pause(zookeeper_process(server_id), at_most_s)

    async def resume_zookeeper(self, server_id: int) -> None:
        """Resume a ZooKeeper server; no-op if it runs."""
        self._layout_with_server(server_id)
        await self._resume(zookeeper_process(server_id))

    async def _pause(self, process: str, at_most_s: float) -> None:
        if at_most_s <= 0:
            raise ClusterError(f"at_most_s must be positive, not {at_most_s}")
        thawer = _thawer(process)
        await self._resume(process)
        if thawer in await self._supervision.children():
            await self._supervision.ended(thawer, RESUME_TIMEOUT_S)
        argv = [sys.executable, "-m", guard.__name__, guard.THAW, self._names.of(process), str(at_most_s)]
        log = RunFolder(self._root).cluster / f"{thawer}.log"
        await self._supervision.spawn(thawer, argv, log, LAST_STAGE, guard.GRACE_S)
        within_s = min(at_most_s, FREEZE_TIMEOUT_S)  # a container frozen later would stay frozen
        await self._with_engine(lambda engine: engine.pause(self._names.of(process), within_s=within_s))

    async def _resume(self, process: str) -> None:
        if (await self._running(process)).state == ProcessState.PAUSED:
            await self._with_engine(lambda engine: engine.unpause(self._names.of(process)))
        await self._supervision.signal_if_running(_thawer(process), "TERM")

    async def _start_broker(self, layout: ClusterLayout, broker_id: int) -> None:
        own = layout.brokers[broker_id]
        for port in (own.client, own.metrics):
            if port is not None:
                require_free_port(port, f"broker {broker_id}")
        await self._start_again(broker_process(broker_id))
        await self._clock_started(layout, broker_id)

    async def _start_zookeeper(self, layout: ClusterLayout, server_id: int) -> None:
        require_free_port(layout.zookeeper[server_id].client, f"ZooKeeper server {server_id}")
        await self._start_again(zookeeper_process(server_id))

    async def _start_again(self, process: str) -> None:
        await self._with_engine(lambda engine: engine.start(self._names.of(process)))
        self._count_start(process)

    async def _signal(self, name: str, signal_name: str) -> None:
        await self._running(name)
        await self._with_engine(lambda engine: engine.signal(self._names.of(name), signal_name))

    async def _ended(self, name: str, timeout_s: float) -> bool:
        deadline = asyncio.get_running_loop().time() + timeout_s
        async with self._engine() as engine:
            while True:
                state = await _in_thread(partial(engine.state, self._names.of(name)))
                if state is None or not state.runs:
                    return True
                if asyncio.get_running_loop().time() >= deadline:
                    return False
                await asyncio.sleep(STATE_POLL_S)

    async def _log_tail(self, name: str) -> tuple[str, list[str]]:
        layout = ClusterLayout.load(self._root)
        logs = {zookeeper_process(server_id): layout.zookeeper_log(server_id) for server_id in layout.zookeeper}
        logs |= {broker_process(broker_id): layout.human_log(broker_id) for broker_id in layout.brokers}
        logs[relay.PROCESS] = relay_output(layout)
        written = tail_of(logs[name])
        state = await self._with_engine(lambda engine: engine.state(self._names.of(name)))
        output = await self._with_engine(lambda engine: engine.output(self._names.of(name), LOG_TAIL_LINES))
        printed = output.decode(errors="replace").splitlines()
        if state is not None and state.out_of_memory:
            printed.append(
                f"it was killed because it wanted more than {plans.LIMITS.memory_bytes // plans.MIB} MiB of memory"
            )
        return f"{logs[name]} and of its output", [*written, *(line for line in printed if line not in written)]

    # --- state of the servers ---

    async def _servers(self, layout: ClusterLayout) -> dict[str, ServerState]:
        return await self._servers_of(_processes(layout))

    async def _servers_of(self, processes: Iterable[str]) -> dict[str, ServerState]:
        def look(engine: Engine) -> dict[str, ServerState]:
            return {name: self._server_state(name, engine.state(self._names.of(name))) for name in processes}

        return await self._with_engine(look)

    def _server_state(self, process: str, state: ContainerState | None) -> ServerState:
        runs = state is not None and state.runs
        going = ProcessState.PAUSED if state is not None and state.state == "paused" else ProcessState.RUNNING
        return ServerState(
            state=going if runs else ProcessState.STOPPED,
            pid=state.pid if state is not None and runs else None,
            starts=self._starts(process),
            exit_status=None if state is None or runs else state.exit_status,
            container=self._names.of(process),
        )

    async def _running(self, process: str) -> ServerState:
        """Return the state of a server that runs; raises ClusterError when it does not."""
        server = (await self._servers_of([process]))[process]
        if server.state == ProcessState.STOPPED:
            raise ClusterError(f"{process} does not run; its exit status was {server.exit_status}")
        return server

    def _peer_address(self, layout: ClusterLayout, broker_id: int) -> str:
        return plans.peer_address(layout, broker_id)

    # --- number of starts, which the engine does not count ---

    def _starts_file(self, process: str) -> Path:
        return RunFolder(self._root).cluster / f"{process}.starts"

    def _starts(self, process: str) -> int:
        try:
            return int(self._starts_file(process).read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0

    def _count_start(self, process: str) -> None:
        replace_text(self._starts_file(process), str(self._starts(process) + 1))

    # --- the engine ---

    @contextlib.asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine]:
        engine = await _in_thread(Engine.connect)
        try:
            yield engine
        finally:
            engine.close()

    async def _with_engine(self, act: Callable[[Engine], T]) -> T:
        """Return what `act` returns; it runs in a thread, because the engine blocks."""
        async with self._engine() as engine:
            return await _in_thread(partial(act, engine))


async def _in_thread(act: Callable[[], T]) -> T:
    """Return what a blocking call returns; a cancellation waits for its end, so that nothing is created afterwards."""
    work = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.gather(work, return_exceptions=True)
        raise


async def _each(act: Callable[[T], None], items: Iterable[T]) -> None:
    """Call `act` with every item at once; when one fails, raise its error after the others have ended."""
    for result in await asyncio.gather(*(_in_thread(partial(act, item)) for item in items), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _processes(layout: ClusterLayout) -> list[str]:
    """Return the names of all that runs in containers."""
    servers = [*map(zookeeper_process, layout.zookeeper), *map(broker_process, layout.brokers)]
    return [*servers, relay.PROCESS] if layout.relay else servers


def _thawer(process: str) -> str:
    """Return the name of the child that ends a server's pause."""
    return f"thaw-{process}"


def _missing_images(absent: list[str]) -> str:
    return f"the Docker engine has no {' and no '.join(absent)}; run: chaos images build"


def _untraceable() -> str:
    """Return why no server in a container can be traced from here; empty if one can."""
    return tracer.lacking() or ("" if os.geteuid() == 0 else "to trace a server in a container takes root")


def _remote_engine(docker_host: str) -> str:
    """Return the sentence that refuses an engine on another machine; empty for one on this machine."""
    address = urlsplit(docker_host)
    if address.scheme in ("", "unix", "npipe", "fd") or address.hostname in (LOOPBACK, "localhost", "::1"):
        return ""
    return f"the Docker engine at {docker_host} is on another machine; brokers are reached over this one's loopback"
