"""The `process` driver: brokers and ZooKeeper as child processes of a supervisor, on loopback."""

import sys
from pathlib import Path
from typing import ClassVar

from harness.cluster import embedded_zookeeper, faketime, relay, releases
from harness.cluster.broker_properties import DriverProperties
from harness.cluster.disks import disk_errors, small_disks, tracer
from harness.cluster.driver import (
    CLOCK,
    CPU_LIMIT,
    DISK_ERRORS,
    DISK_SPACE,
    DRIVER,
    MEMORY_LIMIT,
    OVER_LINKS,
    POWER,
    SLOW_SYNCS,
    ClusterRequest,
    quorum_ids,
)
from harness.cluster.embedded_zookeeper import ServerPlan
from harness.cluster.layout import BrokerPorts, ClusterLayout, ZookeeperPorts, broker_process, zookeeper_process
from harness.cluster.limits import control_groups
from harness.cluster.limits.resources import Resource
from harness.cluster.ports import LOOPBACK
from harness.cluster.processes.disks import FolderDiskPowers
from harness.cluster.processes.limits import ProcessLimits
from harness.cluster.relay import senders
from harness.cluster.relay.capabilities import RelayCapabilities
from harness.cluster.relay.layout import Place, listeners_of, ports_needed, relayed
from harness.cluster.relay.listeners import Setup, save
from harness.cluster.supervised_driver import (
    FIRST_BROKER_ID,
    FIRST_SERVER_ID,
    ServerState,
    require_free_port,
    server_state,
    servers_of,
    tail_of,
    without_clients,
)
from harness.cluster.supervision.supervision import BROKER_STAGE, ZOOKEEPER_STAGE
from harness.cluster.supervision.supervisor import PIDS_NAME
from harness.cluster.systems.system import started, system_named
from harness.errors import ClusterError

PRELOAD = "LD_PRELOAD"
"""The environment variable with what a process loads before the C library."""


class ProcessDriver(RelayCapabilities, FolderDiskPowers, ProcessLimits):
    """A `SupervisedDriver` with CanPause, CanPauseZookeeper, CanSetClock, CanUpgrade, `FolderDiskPowers` and
    `ProcessLimits`.

    With a relay it has `RelayCapabilities` too.

    It attaches by the run folder.
    """

    name = "process"
    families: ClassVar[frozenset[str]] = started()

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return why no server, or no client, can be started here, if there is a reason."""
        try:
            embedded_zookeeper.java()
            embedded_zookeeper.jars()
        except ClusterError as error:
            return {DRIVER: str(error)}
        own = {CLOCK: faketime.lacking(), DISK_ERRORS: disk_errors.lacking(), DISK_SPACE: small_disks.lacking()}
        own |= {
            CPU_LIMIT: control_groups.lacking(Resource.CPU),
            MEMORY_LIMIT: control_groups.lacking(Resource.MEMORY),
            SLOW_SYNCS: tracer.lacking(),
        }
        reasons = dict.fromkeys(OVER_LINKS, senders.lacking()) | own
        return without_clients() | {name: reason for name, reason in reasons.items() if reason}

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Freeze a broker (SIGSTOP); the supervisor resumes it after `at_most_s`, even when the caller has died."""
        self._layout_with(broker_id)
        await self._supervision.call("pause", name=broker_process(broker_id), at_most_s=at_most_s)

    async def resume_broker(self, broker_id: int) -> None:
        """Thaw a broker; nothing happens when it runs."""
        self._layout_with(broker_id)
        await self._supervision.call("resume", name=broker_process(broker_id))

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        """Freeze a ZooKeeper server (SIGSTOP); the supervisor resumes it after `at_most_s`."""
        self._layout_with_server(server_id)
        await self._supervision.call("pause", name=zookeeper_process(server_id), at_most_s=at_most_s)

    async def resume_zookeeper(self, server_id: int) -> None:
        """Thaw a ZooKeeper server; nothing happens when it runs."""
        self._layout_with_server(server_id)
        await self._supervision.call("resume", name=zookeeper_process(server_id))

    async def set_clock(self, broker_id: int, *, step_s: float, rate: float, at_most_s: float) -> None:
        """Set a broker's wall clock apart; the supervisor puts it back after `at_most_s`."""
        self._layout_with_clocks(broker_id)
        name = broker_process(broker_id)
        await self._supervision.call("set_clock", name=name, step_s=step_s, rate=rate, at_most_s=at_most_s)

    async def reset_clock(self, broker_id: int) -> None:
        """Put a broker's wall clock to the machine's."""
        self._layout_with_clocks(broker_id)
        await self._supervision.call("reset_clock", name=broker_process(broker_id))

    async def change_release(self, broker_id: int, system: str) -> None:
        """Have a stopped broker be started as this release from now on."""
        layout = await self._with_stopped(broker_id)
        system_named(system).configure_again(layout, broker_id)
        releases.change(layout, broker_id, system)

    async def _lay_out(self, request: ClusterRequest) -> ClusterLayout:
        servers, controllers = servers_of(request)
        separate = quorum_ids(0, controllers, separate=True) if request.separate_controllers else ()
        single = servers == 1
        per_server, per_broker = 1 if single else 3, 3 if request.metrics else 2
        ports = iter(
            await self._supervision.reserve_ports(
                servers * per_server
                + request.brokers * per_broker
                + controllers
                + ports_needed(request.brokers, servers, controllers) * request.relay
            )
        )
        layout = ClusterLayout(
            root=self._root,
            run_id=self._run_id,
            driver=self.name,
            system=request.system,
            zookeeper={
                server_id: ZookeeperPorts(client=next(ports))
                if single
                else ZookeeperPorts(client=next(ports), quorum=next(ports), election=next(ports))
                for server_id in range(FIRST_SERVER_ID, FIRST_SERVER_ID + servers)
            },
            brokers={
                broker_id: BrokerPorts(
                    client=next(ports),
                    peer=next(ports),
                    metrics=next(ports) if request.metrics else None,
                    controller=next(ports) if broker_id - FIRST_BROKER_ID < controllers - len(separate) else None,
                )
                for broker_id in range(FIRST_BROKER_ID, FIRST_BROKER_ID + request.brokers)
            },
            quorum={id_: next(ports) for id_ in separate},
            planted_bugs=request.planted_bugs,
            clocks=CLOCK in request.needs,
            syncs=POWER in request.needs,
            sync_traces=request.sync_traces,
            zookeeper_syncs=request.zookeeper_syncs,
            intercepts=request.intercepts,
            disks=DISK_SPACE in request.needs,
            disk_errors=DISK_ERRORS in request.needs,
        )
        return relayed(layout, ports) if request.relay else layout

    async def _start_servers(self, layout: ClusterLayout, properties: dict[str, str]) -> None:
        if layout.relay:
            await self._start_relay(layout)
        if layout.disks:
            await self._mount_disks(layout)
        for server_id in layout.zookeeper:
            await self._start_zookeeper(layout, server_id)
        if layout.clocks:
            faketime.install(layout.folder)
        for controller_id in layout.quorum:
            address = layout.controllers[controller_id]
            of_controller = DriverProperties(
                client_address=address,
                peer_address=address,
                log_dir=str(layout.log_dir(controller_id).resolve()),
                zookeeper_connect="",
                controllers=layout.quorum_addresses,
                controller_listens_on=_controller_bound(layout, controller_id),
            )
            system_named(layout.system).configure(layout, controller_id, properties, of_controller)
            await self._start_broker(layout, controller_id)
        for broker_id in layout.brokers:
            own = layout.brokers[broker_id]
            driver_properties = DriverProperties(
                client_address=layout.client_address(broker_id),
                peer_address=self._peer_address(layout, broker_id),
                listens_on=(f"{LOOPBACK}:{own.client}", f"{LOOPBACK}:{own.peer}"),
                log_dir=str(layout.log_dir(broker_id).resolve()),
                zookeeper_connect=layout.zookeeper_connect_of(broker_id),
                controllers=layout.quorum_addresses,
                controller_listens_on=_controller_bound(layout, broker_id),
            )
            system_named(layout.system).configure(layout, broker_id, properties, driver_properties)
            await self._start_broker(layout, broker_id)

    async def _start_zookeeper(self, layout: ClusterLayout, server_id: int) -> None:
        port = layout.zookeeper[server_id].client
        members = {id_: f"{LOOPBACK}:{own.quorum}:{own.election}" for id_, own in layout.zookeeper.items()}
        plan = ServerPlan(
            server_id=server_id,
            syncs=layout.zookeeper_syncs,
            client_port=port,
            data_dir=str(layout.zookeeper_data(server_id).resolve()),
            ensemble=layout.ensemble_of(server_id, members[server_id], LOOPBACK, members),
        )
        argv = embedded_zookeeper.prepare(layout.zookeeper_folder(server_id), plan)
        require_free_port(port, f"ZooKeeper server {server_id}")
        await self._supervision.spawn(
            zookeeper_process(server_id), argv, layout.zookeeper_log(server_id), ZOOKEEPER_STAGE
        )

    async def _start_relay(self, layout: ClusterLayout) -> None:
        brokers = {
            broker_id: Place(address=LOOPBACK, client=own.client, peer=own.peer or 0, controller=own.controller or 0)
            for broker_id, own in layout.brokers.items()
        }
        brokers |= {id_: Place(address=LOOPBACK, client=0, controller=port) for id_, port in layout.quorum.items()}
        servers = {
            server_id: Place(address=LOOPBACK, client=own.client, quorum=own.quorum or 0, election=own.election or 0)
            for server_id, own in layout.zookeeper.items()
        }
        setup = Setup(
            listeners=list(listeners_of(layout, brokers, servers)), pids=str((layout.folder / PIDS_NAME).resolve())
        )
        folder = layout.folder / relay.FOLDER
        save(folder, setup)
        for listener in setup.listeners:
            require_free_port(listener.port, "the relay")
        argv = [sys.executable, "-m", "harness.cluster.relay", str(folder.resolve())]
        await self._supervision.spawn(relay.PROCESS, argv, layout.folder / "relay.log", ZOOKEEPER_STAGE)

    async def _start_broker(self, layout: ClusterLayout, broker_id: int) -> None:
        own = layout.brokers.get(broker_id)
        ports = (layout.quorum[broker_id],) if own is None else (own.client, own.peer, own.metrics, own.controller)
        for port in ports:
            if port is not None:
                require_free_port(port, f"broker {broker_id}")
        system = system_named(releases.system_of(layout, broker_id))
        argv = system.command(layout, broker_id)
        name = broker_process(broker_id)
        clock = faketime.environment(layout.folder, name) if layout.clocks else {}
        errors = disk_errors.environment(layout.folder, name) if layout.disk_errors and system.writes_logs_apart else {}
        loaded = {PRELOAD: " ".join(each[PRELOAD] for each in (clock, errors) if each)} if clock or errors else {}
        besides = clock | errors | loaded
        await self._supervision.spawn(name, argv, layout.human_log(broker_id), BROKER_STAGE, besides=besides)

    async def _signal(self, name: str, signal_name: str) -> None:
        await self._supervision.call("signal", name=name, signal=signal_name)

    async def _ended(self, name: str, timeout_s: float) -> bool:
        return bool((await self._supervision.ended(name, timeout_s))["exited"])

    async def _servers(self, layout: ClusterLayout) -> dict[str, ServerState]:
        return {name: server_state(child) for name, child in (await self._supervision.children()).items()}

    async def _log_tail(self, name: str) -> tuple[str, list[str]]:
        log = Path((await self._supervision.children())[name]["log"])
        return str(log), tail_of(log)


def _controller_bound(layout: ClusterLayout, broker_id: int) -> str | None:
    """Return where a controller listens itself, if others reach it elsewhere."""
    return layout.controllers.get(broker_id) if layout.relay_controllers else None
