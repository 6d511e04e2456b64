"""The Docker engine as the harness uses it: the only place that talks to the Docker SDK.

Every method blocks; every failure is a `ClusterError` that says what was asked of the engine and what it answered.
All that is made carries three labels, by which it can be found again by whoever knows nothing but the engine.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
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
PARALLEL_REQUESTS = 8

Kind = Literal["container", "network", "volume"]


class EngineUnavailable(ClusterError):
    """No Docker engine answers; the message says why. Exit code 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The run that something is made for; its labels."""

    run_id: str
    root: Path
    """The run folder."""

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of everything that is made for this run."""
        return {RUN_LABEL: self.run_id, ROOT_LABEL: str(self.root.resolve()), HOST_LABEL: socket.gethostname()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Something of ours on the engine, as its labels tell."""

    kind: Kind
    id: str
    name: str
    run_id: str
    root: Path
    host: str
    """Name of the machine whose harness made it: an engine may serve several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one container may use at most."""

    memory_bytes: int
    cpus: float
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """One container to be created; what is the same for all of them is the engine's own business."""

    name: str
    image: str
    command: list[str]
    user: str
    """uid:gid; never root."""
    network: str
    alias: str
    """Name under which the other containers of the network find it."""
    limits: Limits
    entrypoint: list[str] | None = None
    """None for the image's own."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Path in the container by name of the volume."""
    files: dict[Path, str] = field(default_factory=dict)
    """Path in the container by path on the host; read only."""
    folders: dict[Path, str] = field(default_factory=dict)
    """Path in the container by path on the host; may be written."""
    ports: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Address on the host by port in the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container now."""

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
    """One engine; may be used by several threads."""

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
        """Give the connections back."""
        self.client.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Turn every error of the SDK into one sentence that begins with `what` was asked for.

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
        with self.asked(f"looking for the image {name}"):
            return bool(self.client.api.images(name=name, quiet=True))

    def can_freeze(self) -> bool:
        """Return whether containers can be paused: a rootless engine without control groups cannot."""
        with self.asked("asking what the engine can do"):
            return bool(self.client.api.info().get("CgroupDriver") != "none")

    def create_network(self, name: str, owner: Owner) -> None:
        """Create a bridge network."""
        with self.asked(f"creating the network {name}"):
            self.client.networks.create(name, driver="bridge", labels=owner.labels)

    def create_volume(self, name: str, owner: Owner) -> None:
        """Create a local volume."""
        with self.asked(f"creating the volume {name}"):
            self.client.volumes.create(name, driver="local", labels=owner.labels)

    def create_container(self, plan: ContainerPlan, owner: Owner) -> None:
        """Create a container: no capability, no new privileges, read-only but for its mounts, limited.

        A signal other than its stop signal reaches a frozen container without thawing it, as it reaches a stopped
        process; that is why the stop signal is none that anybody sends.
        """
        from docker.types import EndpointConfig, LogConfig, Mount

        mounts = [Mount(target, source, type="volume") for source, target in plan.volumes.items()]
        mounts += [Mount(target, str(path), type="bind", read_only=True) for path, target in plan.files.items()]
        mounts += [Mount(target, str(path), type="bind") for path, target in plan.folders.items()]
        endpoint = EndpointConfig(self.client.api.api_version, aliases=[plan.alias])
        with self.asked(f"creating the container {plan.name}"):
            self.client.containers.create(
                plan.image,
                plan.command,
                name=plan.name,
                hostname=plan.alias,
                entrypoint=plan.entrypoint,
                user=plan.user,
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
                nano_cpus=int(plan.limits.cpus * 1e9),
                pids_limit=plan.limits.processes,
                log_config=LogConfig(type=LogConfig.types.JSON, config={"max-size": "8m", "max-file": "1"}),
            )

    def start(self, name: str) -> None:
        """Start a container."""
        with self.asked(f"starting the container {name}"):
            self.client.api.start(name)

    def signal(self, name: str, signal: str) -> None:
        """Send a signal to a container's first process; a frozen one gets it when it is thawed, but for SIGKILL."""
        with self.asked(f"sending SIG{signal} to the container {name}"):
            self.client.api.kill(name, f"SIG{signal}")

    def pause(self, name: str) -> None:
        """Freeze a container."""
        with self.asked(f"pausing the container {name}"):
            self.client.api.pause(name)

    def unpause(self, name: str) -> None:
        """Thaw a container."""
        with self.asked(f"resuming the container {name}"):
            self.client.api.unpause(name)

    def state(self, name: str) -> ContainerState | None:
        """Return a container's state, or None when there is no such container."""
        from docker.errors import NotFound

        with self.asked(f"looking at the container {name}"):
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

    def output(self, name: str, lines: int | None = None) -> bytes:
        """Return what a container printed, or the last lines of it; nothing when there is no such container."""
        from docker.errors import NotFound

        with self.asked(f"reading the output of the container {name}"):
            try:
                output: bytes = self.client.api.logs(name, tail="all" if lines is None else lines)
            except NotFound:
                return b""
        return output

    def archive(self, name: str, path: str) -> Iterator[bytes]:
        """Yield a tar archive of a path in a container, whatever state that is in."""
        with self.asked(f"reading {path} of the container {name}"):
            chunks, _ = self.client.api.get_archive(name, path)
            yield from chunks

    def made(self, root: Path | None = None) -> list[Made]:
        """Return everything on the engine with our labels, or all that was made for this machine's run folder there.

        `root` is the path that the labels hold, without links, whatever lies there now.
        """
        of_run = [f"{ROOT_LABEL}={root}", f"{HOST_LABEL}={socket.gethostname()}"]
        filters = {"label": [RUN_LABEL] if root is None else of_run}
        with self.asked("listing what chaos runs have made"):
            containers = self.client.api.containers(all=True, filters=filters)
            networks = self.client.api.networks(filters=filters)
            volumes = self.client.api.volumes(filters=filters)["Volumes"] or []
        return [
            *(
                _made("container", item["Id"], item["Names"][0].removeprefix("/"), item["Labels"])
                for item in containers
            ),
            *(_made("network", item["Id"], item["Name"], item["Labels"]) for item in networks),
            *(_made("volume", item["Name"], item["Name"], item["Labels"]) for item in volumes),
        ]

    def remove(self, made: Made) -> None:
        """Remove something, a container with a kill; return when it is gone, whoever removes it.

        Raises:
            ClusterError: it is still there after some seconds; the message holds the engine's reason.
        """
        from docker.errors import APIError, NotFound

        deadline = time.monotonic() + REMOVAL_TIMEOUT_S
        with self.asked(f"removing the {made.kind} {made.name}"):
            while True:
                try:
                    self._remove_once(made)
                except NotFound:
                    return
                except APIError:  # somebody else removes it, or what uses it is still on its way out
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(REMOVAL_POLL_S)
                else:
                    return

    def remove_run(self, root: Path) -> list[Made]:
        """Remove all that was made for one run folder, and return it: containers first, they use the rest."""
        everything = self.made(root)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for kinds in (("container",), ("network", "volume")):
                list(pool.map(self.remove, [made for made in everything if made.kind in kinds]))
        return everything

    def _remove_once(self, made: Made) -> None:
        if made.kind == "container":
            self.client.api.remove_container(made.id, v=True, force=True)
        elif made.kind == "network":
            self.client.api.remove_network(made.id)
        else:
            self.client.api.remove_volume(made.id)


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS


def _reason(error: BaseException) -> str:
    """Return what the operating system said, which the SDK hides under three layers, or else what the SDK says."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _made(kind: Kind, id_: str, name: str, labels: dict[str, Any]) -> Made:
    return Made(
        kind=kind,
        id=id_,
        name=name,
        run_id=labels.get(RUN_LABEL, ""),
        root=Path(labels.get(ROOT_LABEL, "")),
        host=labels.get(HOST_LABEL, ""),
    )
