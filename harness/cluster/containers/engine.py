"""Requests to the Docker engine; the only module that uses the Docker SDK.

Every method blocks; every failure is a `ClusterError` that says what was requested and what the engine answered. Every
resource that is created carries three labels, so that a reaper finds it with nothing but the engine.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import ClusterError
from harness.system.extras import lacking

if TYPE_CHECKING:
    from docker import DockerClient

RUN_LABEL = "kafka-chaos.run"
ROOT_LABEL = "kafka-chaos.root"
HOST_LABEL = "kafka-chaos.host"

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
REQUEST_TIMEOUT_S = 30.0
"""For one answer of the engine; it takes milliseconds, seconds under load."""
REMOVAL_TIMEOUT_S = 15.0
REMOVAL_POLL_S = 0.05
FREEZE_TIMEOUT_S = 30.0
"""For freezing a container: the engine's runtime gives up after 0.2 s, also where threads wait for CPU only."""
FREEZE_POLL_S = 0.05
PARALLEL_REQUESTS = 8
_CPU_PERIOD_US = 100_000
MOST_NETWORKS = 10
"""How often to ask for another range of addresses after a race for a free one is lost."""

ResourceKind = Literal["container", "network", "volume"]


class EngineUnavailable(ClusterError):
    """No Docker engine answers; the message says why. Exit code 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The run that resources are created for."""

    run_id: str
    root: Path
    """The run folder."""

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of every resource of this run."""
        return {RUN_LABEL: self.run_id, ROOT_LABEL: str(self.root.resolve()), HOST_LABEL: socket.gethostname()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A container, network or volume with our labels on the engine."""

    kind: ResourceKind
    id: str
    name: str
    run_id: str
    root: Path
    host: str
    """Name of the machine whose harness created it: an engine may serve several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one container."""

    memory_bytes: int
    cpus: float
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """One container to be created; `Engine.create_container` adds what is the same for all."""

    name: str
    image: str
    command: list[str]
    user: str
    """uid:gid; never root."""
    network: str
    alias: str
    """Name under which the other containers of the network find it."""
    address: str | None = None
    """Its address there; None for any free one."""
    limits: Limits
    entrypoint: list[str] | None = None
    """None for the image's own."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Path in the container by name of the volume."""
    volume_options: dict[str, str] = field(default_factory=dict)
    """Options of the volumes for the engine, unless they are folders."""
    files: dict[Path, str] = field(default_factory=dict)
    """Path in the container by path on the host; read only."""
    folders: dict[Path, str] = field(default_factory=dict)
    """Path in the container by path on the host; writable."""
    seen: dict[Path, str] = field(default_factory=dict)
    """Folders likewise, read-only."""
    environment: dict[str, str] = field(default_factory=dict)
    """Added to the image's."""
    ports: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Address on the host by port in the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container's state now."""

    state: str
    """created, running, paused, exited …, as the engine says."""
    pid: int | None
    """Of its first process, as the engine's machine sees it; None when it does not run."""
    exit_status: int
    out_of_memory: bool

    @property
    def runs(self) -> bool:
        """Whether it has processes, frozen or not."""
        return self.state in ("running", "paused", "restarting")


class Engine:
    """One Docker engine; thread-safe."""

    def __init__(self, client: "DockerClient") -> None:
        self.client = client

    @classmethod
    def connect(cls, *, timeout_s: float = REQUEST_TIMEOUT_S) -> "Engine":
        """Return the engine that DOCKER_HOST names, else the local one.

        Raises:
            EngineUnavailable: it does not answer, or the SDK to ask it is not installed.
        """
        if absent := lacking("docker"):
            raise EngineUnavailable(absent)
        import docker  # takes a third of a second to load
        from docker.errors import DockerException

        try:
            return cls(docker.from_env(timeout=int(timeout_s), max_pool_size=PARALLEL_REQUESTS))
        except (DockerException, OSError, ValueError) as error:
            raise EngineUnavailable(f"no Docker engine answers at {_address()}: {_reason(error)}") from error

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def request(self, what: str) -> Iterator[None]:
        """Turn every error of the SDK into one sentence that starts with the request.

        Raises:
            EngineUnavailable: the engine does not answer any more.
            ClusterError: it refused.
        """
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except APIError as error:
            raise ClusterError(f"{what}: {error.explanation or error}") from error
        except DockerException as error:
            raise ClusterError(f"{what}: {error}") from error
        except (RequestException, HTTPError, ConnectionError) as error:
            raise EngineUnavailable(f"{what}: the Docker engine does not answer: {_reason(error)}") from error

    def has_image(self, name: str) -> bool:
        """Return whether the engine has an image of this name."""
        with self.request(f"looking for the image {name}"):
            return bool(self.client.api.images(name=name, quiet=True))

    def can_freeze(self) -> bool:
        """Return whether containers can be paused: a rootless engine without control groups cannot."""
        with self.request("asking what the engine can do"):
            return bool(self.client.api.info().get("CgroupDriver") != "none")

    def create_network(self, name: str, owner: Owner) -> None:
        """Create a bridge network."""
        with self.request(f"creating the network {name}"):
            self.client.networks.create(name, driver="bridge", labels=owner.labels)

    def create_addressed_network(self, name: str, owner: Owner) -> IPv4Network:
        """Create a bridge network on which plans may name addresses, and return its range.

        Docker allows this only for a range given at creation, but only the engine knows which one is free.
        """
        from docker.errors import APIError
        from docker.types import IPAMConfig, IPAMPool

        for left in reversed(range(MOST_NETWORKS)):
            self.create_network(name, owner)
            with self.request(f"creating the network {name}"):
                ranges = [each["Subnet"] for each in self.client.api.inspect_network(name)["IPAM"]["Config"]]
                range_ = next(each for each in ranges if ":" not in each)
                self.client.api.remove_network(name)
                try:
                    ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=range_)])
                    self.client.networks.create(name, driver="bridge", labels=owner.labels, ipam=ipam)
                except APIError:
                    if not left:
                        raise
                else:
                    return IPv4Network(range_)
        raise AssertionError("the last one fails")

    def create_volume(self, name: str, owner: Owner, options: dict[str, str] | None = None) -> None:
        """Create a local volume, a folder of the engine's unless options say what else."""
        with self.request(f"creating the volume {name}"):
            self.client.volumes.create(name, driver="local", driver_opts=options, labels=owner.labels)

    def create_container(self, plan: ContainerPlan, owner: Owner) -> None:
        """Create a container: no capabilities, no new privileges, read-only but for its mounts, limited.

        A signal other than its stop signal reaches a frozen container without thawing it, as it reaches a stopped
        process. Hence the stop signal is one that no other code sends.
        """
        from docker.types import EndpointConfig, LogConfig, Mount

        mounts = [Mount(target, source, type="volume") for source, target in plan.volumes.items()]
        unchanged = (plan.files | plan.seen).items()
        mounts += [Mount(target, str(path), type="bind", read_only=True) for path, target in unchanged]
        mounts += [Mount(target, str(path), type="bind") for path, target in plan.folders.items()]
        endpoint = EndpointConfig(self.client.api.api_version, aliases=[plan.alias], ipv4_address=plan.address)
        with self.request(f"creating the container {plan.name}"):
            self.client.containers.create(
                plan.image,
                plan.command,
                name=plan.name,
                hostname=plan.alias,
                entrypoint=plan.entrypoint,
                user=plan.user,
                environment=plan.environment,
                labels=owner.labels,
                network=plan.network,
                networking_config={plan.network: endpoint},
                ports={f"{port}/tcp": address for port, address in plan.ports.items()},
                mounts=mounts,
                tmpfs={"/tmp": "size=64m,mode=1777"},  # noqa: S108 - in the container
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges:true"],
                init=True,
                stop_signal="SIGUSR2",
                mem_limit=plan.limits.memory_bytes,
                memswap_limit=plan.limits.memory_bytes,
                cpu_period=_CPU_PERIOD_US,  # other than a number of CPUs, that can be changed later
                cpu_quota=round(plan.limits.cpus * _CPU_PERIOD_US),
                pids_limit=plan.limits.processes,
                log_config=LogConfig(type=LogConfig.types.JSON, config={"max-size": "8m", "max-file": "1"}),
            )

    def start(self, name: str) -> None:
        """Start a container."""
        with self.request(f"starting the container {name}"):
            self.client.api.start(name)

    def signal(self, name: str, signal: str) -> None:
        """Send a signal to a container's first process; a frozen one gets it, except SIGKILL, when it is thawed."""
        with self.request(f"sending SIG{signal} to the container {name}"):
            self.client.api.kill(name, f"SIG{signal}")

    def pause(self, name: str, *, within_s: float = FREEZE_TIMEOUT_S) -> None:
        """Freeze a container; request it again while the runtime does not get hold of all of its threads.

        Raises:
            ClusterError: it refused, or the container was not frozen within `within_s`.
        """
        from docker.errors import APIError

        deadline, gave_up = time.monotonic() + within_s, False
        with self.request(f"pausing the container {name}"):
            while True:
                try:
                    return self.client.api.pause(name)
                except APIError as error:
                    if gave_up and "is already paused" in str(error.explanation):
                        return None  # the request timed out, but took effect
                    gave_up = "unable to freeze" in str(error.explanation)
                    if not gave_up or time.monotonic() > deadline:
                        raise
                time.sleep(FREEZE_POLL_S)

    def unpause(self, name: str) -> None:
        """Thaw a container."""
        with self.request(f"resuming the container {name}"):
            self.client.api.unpause(name)

    def state(self, name: str) -> ContainerState | None:
        """Return a container's state, or None when there is no such container."""
        from docker.errors import NotFound

        with self.request(f"looking at the container {name}"):
            try:
                state = self.client.api.inspect_container(name)["State"]
            except NotFound:
                return None
        return ContainerState(
            state=state["Status"],
            pid=state["Pid"] or None,
            exit_status=state["ExitCode"],
            out_of_memory=state["OOMKilled"],
        )

    def limit_cpus(self, name: str, cpus: float) -> None:
        """Set a container's CPU limit, whether it runs or not."""
        with self.request(f"limiting the CPU time of the container {name}"):
            quota = round(cpus * _CPU_PERIOD_US)
            self.client.api.update_container(name, cpu_period=_CPU_PERIOD_US, cpu_quota=quota)

    def limit_memory(self, name: str, size: int) -> None:
        """Set a container's memory limit; raises ClusterError if it uses more that cannot be reclaimed."""
        with self.request(f"limiting the memory of the container {name}"):
            self.client.api.update_container(name, mem_limit=size, memswap_limit=size)

    def cpus(self, name: str) -> float:
        """Return a container's CPU limit."""
        with self.request(f"looking at the container {name}"):
            host = self.client.api.inspect_container(name)["HostConfig"]
        return float(host["CpuQuota"] / host["CpuPeriod"])

    def memory_limit(self, name: str) -> float:
        """Return a container's memory limit in bytes."""
        with self.request(f"looking at the container {name}"):
            return float(self.client.api.inspect_container(name)["HostConfig"]["Memory"])

    def times_throttled(self, name: str) -> int:
        """Return in how many periods the kernel throttled a container since its start; 0 if it does not run."""
        cpu = self._statistics(name).get("cpu_stats", {})
        return int(cpu.get("throttling_data", {}).get("throttled_periods", 0))

    def memory_used(self, name: str) -> int:
        """Return how many bytes of memory a container uses that the kernel cannot reclaim (without page cache)."""
        memory = self._statistics(name).get("memory_stats", {})
        details = memory.get("stats", {})
        return int(memory.get("usage", 0) - details.get("active_file", 0) - details.get("inactive_file", 0))

    def _statistics(self, name: str) -> dict[str, Any]:
        with self.request(f"reading the statistics of the container {name}"):
            statistics: dict[str, Any] = self.client.api.stats(name, stream=False, one_shot=True)
        return statistics

    def run_inside(self, name: str, argv: list[str], *, detached: bool = False) -> str:
        """Run a command in a container that runs, as its user; return its output, or if `detached` at once.

        Raises:
            ClusterError: it could not be run, or failed.
        """
        with self.request(f"running {argv} in the container {name}"):
            id_ = self.client.api.exec_create(name, argv)["Id"]
            if detached:
                self.client.api.exec_start(id_, detach=True)
                return ""
            output = self.client.api.exec_start(id_).decode(errors="replace").strip()
            status = self.client.api.exec_inspect(id_)["ExitCode"]
        if status != 0:
            raise ClusterError(f"running {argv} in the container {name}: status {status}: {output}")
        return str(output)

    def output(self, name: str, lines: int | None = None) -> bytes:
        """Return a container's output, or its last `lines`; empty when there is no such container."""
        from docker.errors import NotFound

        with self.request(f"reading the output of the container {name}"):
            try:
                output: bytes = self.client.api.logs(name, tail="all" if lines is None else lines)
            except NotFound:
                return b""
        return output

    def archive(self, name: str, path: str) -> Iterator[bytes]:
        """Yield a tar archive of a path in a container, in chunks; the container may be stopped or frozen."""
        with self.request(f"reading {path} of the container {name}"):
            chunks, _ = self.client.api.get_archive(name, path)
            yield from chunks

    def resources(self, root: Path | None = None) -> list[Resource]:
        """Return all resources with our labels, or those that this machine created for one run folder.

        `root` is the path in the labels: absolute and without links; the folder need not exist any more.
        """
        of_run = [f"{ROOT_LABEL}={root}", f"{HOST_LABEL}={socket.gethostname()}"]
        filters = {"label": [RUN_LABEL] if root is None else of_run}
        with self.request("listing what chaos runs have made"):
            containers = self.client.api.containers(all=True, filters=filters)
            networks = self.client.api.networks(filters=filters)
            volumes = self.client.api.volumes(filters=filters)["Volumes"] or []
        return [
            *(
                _resource("container", item["Id"], item["Names"][0].removeprefix("/"), item["Labels"])
                for item in containers
            ),
            *(_resource("network", item["Id"], item["Name"], item["Labels"]) for item in networks),
            *(_resource("volume", item["Name"], item["Name"], item["Labels"]) for item in volumes),
        ]

    def remove(self, resource: Resource) -> None:
        """Remove one resource, killing a container; return when it is gone, also when another process removes it.

        Raises:
            ClusterError: it still exists after `REMOVAL_TIMEOUT_S`; the message has the engine's reason.
        """
        from docker.errors import APIError, NotFound

        deadline = time.monotonic() + REMOVAL_TIMEOUT_S
        with self.request(f"removing the {resource.kind} {resource.name}"):
            while True:
                try:
                    self._remove_once(resource)
                except NotFound:
                    return
                except APIError:  # another process removes it, or a container that is about to end still uses it
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(REMOVAL_POLL_S)
                else:
                    return

    def remove_run(self, root: Path) -> list[Resource]:
        """Remove all resources of one run folder and return them; containers first, as they use the others."""
        everything = self.resources(root)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for kinds in (("container",), ("network", "volume")):
                list(pool.map(self.remove, [resource for resource in everything if resource.kind in kinds]))
        return everything

    def _remove_once(self, resource: Resource) -> None:
        if resource.kind == "container":
            self.client.api.remove_container(resource.id, v=True, force=True)
        elif resource.kind == "network":
            self.client.api.remove_network(resource.id)
        else:
            self.client.api.remove_volume(resource.id)


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS


def _reason(error: BaseException) -> str:
    """Return the operating system's message, which the SDK wraps three times, or else the SDK's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _resource(kind: ResourceKind, id_: str, name: str, labels: dict[str, Any]) -> Resource:
    return Resource(
        kind=kind,
        id=id_,
        name=name,
        run_id=labels.get(RUN_LABEL, ""),
        root=Path(labels.get(ROOT_LABEL, "")),
        host=labels.get(HOST_LABEL, ""),
    )
