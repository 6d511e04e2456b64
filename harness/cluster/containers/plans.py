"""The containers of a cluster: names, images, mounts, ports and limits of each."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from harness.cluster import embedded_zookeeper, faketime
from harness.cluster import relay as relays
from harness.cluster.broker_properties import DriverProperties
from harness.cluster.clocks import FOLDER as CLOCKS
from harness.cluster.containers import images
from harness.cluster.containers.engine import ContainerPlan, Limits
from harness.cluster.containers.unlimit import programs
from harness.cluster.disks.small_disks import DISK_BYTES
from harness.cluster.embedded_zookeeper import ServerPlan
from harness.cluster.layout import ClusterLayout, broker_process, resource_name, zookeeper_process
from harness.cluster.ports import ALL_INTERFACES, LOOPBACK
from harness.cluster.relay.layout import Place, listeners_of
from harness.cluster.relay.listeners import FILE_NAME, Setup, save
from harness.cluster.systems.contained import BROKER_CONFIG, BROKER_DATA, BROKER_LOGS, BROKER_SYNCS
from harness.cluster.systems.system import system_named

PEER_PORT = 9093
ZOOKEEPER_PORT = 2181
QUORUM_PORT = 2888
ELECTION_PORT = 3888

ZOOKEEPER_DATA = "/var/lib/zookeeper"
ZOOKEEPER_LOGS = "/var/log/zookeeper"
ZOOKEEPER_CONFIG = "/etc/zookeeper"
RELAY_FOLDER = "/var/lib/relay"
CLOCKS_INSIDE = "/opt/kafka-chaos-clocks"
ZOOKEEPER_CLASSPATH = "/opt/zookeeper/lib/*"

MIB = 1 << 20
LIMITS = Limits(memory_bytes=768 * MIB, cpus=1.0, processes=256)
"""Ample: our broker under load takes 100 MiB and five threads; a JVM's heap is at most 256 MiB."""
IMAGES = {"broker": images.broker, "java": images.java}
DISKS = "disks"
"""Container that keeps the brokers' disks when these are in memory."""
UNPRIVILEGED = 65_534
"""User and group of the servers when the harness runs as root."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one run folder's resources on the engine."""

    root: Path

    def of(self, process: str) -> str:
        """Return the name of a server's container and of its volume."""
        return resource_name(self.root, process)

    @property
    def network(self) -> str:
        """The name of the run's network."""
        return self.of("network")


def user() -> tuple[int, int]:
    """Return the user and group that servers run as: the harness's own, but never root."""
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def addresses_on(network: IPv4Network, layout: ClusterLayout) -> dict[str, str]:
    """Return the address of every server by its process, from the end of a range whose start the engine uses."""
    processes = [*map(zookeeper_process, layout.zookeeper), *map(broker_process, layout.brokers)]
    return {process: str(network.broadcast_address - number) for number, process in enumerate(processes, start=1)}


def zookeeper(layout: ClusterLayout, server_id: int, addresses: Mapping[str, str]) -> ContainerPlan:
    """Write the configuration of a ZooKeeper server and return its container."""
    name = Names(layout.root).of(zookeeper_process(server_id))
    folder = layout.zookeeper_folder(server_id).resolve()
    members = {id_: f"{zookeeper_process(id_)}:{QUORUM_PORT}:{ELECTION_PORT}" for id_ in layout.zookeeper}
    plan = ServerPlan(
        server_id=server_id,
        syncs=layout.zookeeper_syncs,
        client_host=ALL_INTERFACES,
        client_port=ZOOKEEPER_PORT,
        data_dir=ZOOKEEPER_DATA,
        ensemble=layout.ensemble_of(server_id, members[server_id], relays.PROCESS, members),
    )
    log = layout.zookeeper_log(server_id).resolve()
    embedded_zookeeper.write_configuration(
        folder, plan, embedded_zookeeper.file_logging(f"{ZOOKEEPER_LOGS}/{log.name}")
    )
    files = {
        file: f"{ZOOKEEPER_CONFIG}/{file}" for file in (embedded_zookeeper.CONFIG_NAME, embedded_zookeeper.LOGGING_NAME)
    }
    (folder / embedded_zookeeper.ID_NAME).write_text(f"{server_id}\n", encoding="ascii")
    files[embedded_zookeeper.ID_NAME] = f"{ZOOKEEPER_DATA}/{embedded_zookeeper.ID_NAME}"
    return ContainerPlan(
        name=name,
        image=images.java().name,
        command=plan.command(
            "java",
            ZOOKEEPER_CLASSPATH,
            config_file=files[embedded_zookeeper.CONFIG_NAME],
            log_file=files[embedded_zookeeper.LOGGING_NAME],
        ),
        user=_user_text(),
        network=Names(layout.root).network,
        alias=zookeeper_process(server_id),
        address=addresses.get(zookeeper_process(server_id)),
        limits=LIMITS,
        volumes={name: ZOOKEEPER_DATA},
        files={_readable(folder / file): inside for file, inside in files.items()},
        folders={_writable(log.parent): ZOOKEEPER_LOGS},
        ports={ZOOKEEPER_PORT: (LOOPBACK, layout.zookeeper[server_id].client)},
    )


def relay(layout: ClusterLayout, addresses: Mapping[str, str]) -> ContainerPlan:
    """Write the relay's setup and return its container; clients reach it over the host's loopback."""
    brokers = {
        broker_id: Place(address=broker_process(broker_id), client=own.client, peer=PEER_PORT)
        for broker_id, own in layout.brokers.items()
    }
    servers = {
        server_id: Place(
            address=zookeeper_process(server_id), client=ZOOKEEPER_PORT, quorum=QUORUM_PORT, election=ELECTION_PORT
        )
        for server_id in layout.zookeeper
    }
    folder = layout.folder.resolve() / relays.FOLDER
    listeners = list(listeners_of(layout, brokers, servers))
    hosts = {address: process for process, address in addresses.items()}
    save(folder, Setup(listeners=listeners, listens_on=ALL_INTERFACES, addresses=hosts))
    _readable(folder / FILE_NAME)
    return ContainerPlan(
        name=Names(layout.root).of(relays.PROCESS),
        image=images.relay().name,
        command=[RELAY_FOLDER],
        user=_user_text(),
        network=Names(layout.root).network,
        alias=relays.PROCESS,
        limits=LIMITS,
        folders={_writable(folder): RELAY_FOLDER},
        ports={own.client: (LOOPBACK, own.client) for own in layout.relay.values()},
    )


def broker(
    layout: ClusterLayout, broker_id: int, properties: dict[str, str], addresses: Mapping[str, str]
) -> ContainerPlan:
    """Write the configuration of a broker and return its container.

    Clients and the harness reach it through a port of the host's loopback, which has the same number inside because the
    broker advertises it; other brokers reach it by its name. With a relay, both addresses are the relay's.
    """
    name = Names(layout.root).of(broker_process(broker_id))
    port = layout.brokers[broker_id].client
    driver_properties = DriverProperties(
        client_address=layout.client_address(broker_id),
        peer_address=peer_address(layout, broker_id),
        listens_on=(f"{ALL_INTERFACES}:{port}", f"{ALL_INTERFACES}:{PEER_PORT}"),
        metrics_host=ALL_INTERFACES,
        log_dir=BROKER_DATA,
        zookeeper_connect=_zookeeper_connect(layout, broker_id),
    )
    system = system_named(layout.system)
    config = system.configure(layout, broker_id, properties, driver_properties).resolve()
    contained = system.contained(layout, broker_id)
    ours = contained.image == "broker"
    logs = layout.state_change_log(broker_id).resolve().parent
    return ContainerPlan(
        name=name,
        image=IMAGES[contained.image]().name,
        command=contained.command,
        user=_user_text(),
        network=Names(layout.root).network,
        alias=broker_process(broker_id),
        address=addresses.get(broker_process(broker_id)),
        limits=broker_limits(layout),
        volumes={name: BROKER_DATA} if layout.disks or not layout.disk_files else {},
        volume_options=_volume_options(layout),
        files={_readable(config): BROKER_CONFIG, **contained.files, **({} if ours else programs())},
        folders={_writable(logs): BROKER_LOGS} | _seen_files(layout, broker_id),
        seen={layout.folder.resolve() / CLOCKS: CLOCKS_INSIDE} if layout.clocks else {},
        environment=_clock(layout, broker_id) if layout.clocks else {},
        ports={it: (LOOPBACK, it) for it in (port, layout.brokers[broker_id].metrics) if it is not None},
    )


def _clock(layout: ClusterLayout, broker_id: int) -> dict[str, str]:
    """Return the environment variables that give a broker's process its own wall clock."""
    own = faketime.environment(layout.folder, broker_process(broker_id), CLOCKS_INSIDE)
    for path in (layout.folder / CLOCKS).iterdir():
        _readable(path)
    return own


def broker_limits(layout: ClusterLayout) -> Limits:
    """Return what a broker may use; a disk in memory counts as its memory."""
    return replace(LIMITS, memory_bytes=LIMITS.memory_bytes + DISK_BYTES * layout.disks)


def disks(layout: ClusterLayout) -> ContainerPlan:
    """Return the container that keeps the brokers' in-memory disks while no broker has them mounted."""
    names = Names(layout.root)
    return ContainerPlan(
        name=names.of(DISKS),
        image=images.broker().name,
        entrypoint=["sleep", "infinity"],
        command=[],
        user=_user_text(),
        network=names.network,
        alias=DISKS,
        limits=Limits(memory_bytes=len(layout.brokers) * DISK_BYTES + 64 * MIB, cpus=1.0, processes=64),
        volumes={names.of(broker_process(broker_id)): disk_of(broker_id) for broker_id in layout.brokers},
        volume_options=_volume_options(layout),
    )


def disk_of(broker_id: int) -> str:
    """Return the path of a broker's disk in the container that keeps it."""
    return f"/disks/{broker_id}"


def _volume_options(layout: ClusterLayout) -> dict[str, str]:
    if not layout.disks:
        return {}
    uid, gid = user()
    return {"type": "tmpfs", "device": "tmpfs", "o": f"size={DISK_BYTES},uid={uid},gid={gid},mode=0700"}


def _seen_files(layout: ClusterLayout, broker_id: int) -> dict[Path, str]:
    """Return a broker's files on this machine's disk, for faults that change them: its data and its record of syncs."""
    seen: dict[Path, str] = {}
    if layout.disk_files and not layout.disks:
        seen[_writable(layout.log_dir(broker_id).resolve())] = BROKER_DATA
    if layout.syncs:
        syncs = layout.sync_log(broker_id).resolve()
        syncs.touch()
        seen[_writable(syncs)] = BROKER_SYNCS
    return seen


def peer_address(layout: ClusterLayout, broker_id: int) -> str:
    """Return where other brokers reach a broker."""
    own = layout.relay.get(broker_id)
    return f"{broker_process(broker_id)}:{PEER_PORT}" if own is None else f"{relays.PROCESS}:{own.peer}"


def _zookeeper_connect(layout: ClusterLayout, broker_id: int) -> str:
    own = layout.relay.get(broker_id)
    if own is None:
        return ",".join(f"{zookeeper_process(id_)}:{ZOOKEEPER_PORT}" for id_ in layout.zookeeper)
    return ",".join(f"{relays.PROCESS}:{port}" for port in own.zookeeper.values())


def _user_text() -> str:
    return ":".join(map(str, user()))


def _readable(path: Path) -> Path:
    path.chmod(0o644)
    return path


def _writable(path: Path) -> Path:
    if not path.is_file():
        path.mkdir(parents=True, exist_ok=True)
    own(path)
    return path


def own(path: Path) -> None:
    """Give a file or folder to the user that servers run as."""
    if os.getuid() == 0:
        os.chown(path, *user())
