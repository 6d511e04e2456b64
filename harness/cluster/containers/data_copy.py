"""Copies the servers' data from volumes into the run folder, also from stopped or frozen containers."""

import contextlib
import fcntl
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from harness.cluster import relay
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.plans import ZOOKEEPER_DATA, Names
from harness.cluster.containers.unpacking import Bounds, unpack
from harness.cluster.layout import ClusterLayout, broker_process, zookeeper_process
from harness.cluster.systems.contained import BROKER_DATA
from harness.errors import ClusterError, DeadlineError
from harness.store.folder import RunFolder

LOCK_NAME = "containers.lock"
"""Lock file in the cluster's folder: held while data is copied out of containers, or containers are removed."""
OUTPUT_NAME = "output.log"
LOCK_POLL_S = 0.05
BOUNDS = Bounds()
"""Limits of one server's data."""


@contextlib.contextmanager
def containers_lock(root: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock on the containers of a run; without a lock when the run folder is gone.

    Raises:
        DeadlineError: another process held it for longer than `timeout_s`.
    """
    path = RunFolder(root).cluster / LOCK_NAME
    deadline = time.monotonic() + timeout_s
    try:
        lock = path.open("ab")
    except FileNotFoundError:
        yield
        return
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DeadlineError(f"{path} is held by another process for more than {timeout_s:g} s") from None
                time.sleep(LOCK_POLL_S)
            else:
                break
        yield


def copy_data(engine: Engine, layout: ClusterLayout) -> list[str]:
    """Copy the data and output of every server to the layout's paths; return a sentence for each failure.

    An earlier copy of a server whose container is gone stays, and is no failure.
    """
    names = Names(layout.root)
    servers = [(broker_process(id_), BROKER_DATA, layout.log_dir(id_), layout.human_log(id_)) for id_ in layout.brokers]
    servers += [
        (zookeeper_process(id_), ZOOKEEPER_DATA, layout.zookeeper_data(id_), layout.zookeeper_log(id_))
        for id_ in layout.zookeeper
    ]
    missing = []
    for process, inside, destination, log in servers:
        try:
            if inside != BROKER_DATA or layout.disks or not layout.disk_files:  # else it is there
                _copy_data(engine, names.of(process), inside, destination)
            _save_output(engine, names.of(process), log.with_name(OUTPUT_NAME))
        except (ClusterError, OSError) as error:
            missing.append(f"the data of {process} could not be brought out: {error}")
    if layout.relay:
        with contextlib.suppress(ClusterError, OSError):  # no evidence, but the reason if it has ended
            _save_output(engine, names.of(relay.PROCESS), relay_output(layout))
    return missing


def relay_output(layout: ClusterLayout) -> Path:
    """Return where the relay's output is saved."""
    return layout.folder / relay.FOLDER / OUTPUT_NAME


def _copy_data(engine: Engine, container: str, inside: str, destination: Path) -> None:
    state = engine.state(container)
    if state is None:
        if destination.exists():
            return
        raise ClusterError(f"the container {container} is gone")
    partial = destination.with_name(f"{destination.name}.part")  # an incomplete copy must not look like a complete one
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with _frozen(engine, container, runs=state.state == "running"):
            unpack(engine.archive(container, f"{inside}/."), partial, BOUNDS)
        shutil.rmtree(destination, ignore_errors=True)
        partial.rename(destination)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _save_output(engine: Engine, container: str, path: Path) -> None:
    """Save a server's output, if any, beside its log: it shows a crash of the interpreter, for example."""
    if (output := engine.output(container)) and path.parent.is_dir():
        path.write_bytes(output)


@contextlib.contextmanager
def _frozen(engine: Engine, container: str, *, runs: bool) -> Iterator[None]:
    """Freeze a running server, so that its checkpoints are no newer than the logs copied before them."""
    if not runs or not engine.can_freeze():
        yield
        return
    engine.pause(container)
    try:
        yield
    finally:
        engine.unpause(container)
