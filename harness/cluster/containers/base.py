"""The base of the images: the requested one, or the official one if it can be pulled, or one made here."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from pathlib import Path

from harness.cluster.containers.engine import Engine
from harness.cluster.containers.image_store import LOG_TAIL, ImageStore, LogLine
from harness.cluster.containers.images import base_name, base_script
from harness.cluster.containers.wheelhouse import Platform
from harness.errors import ClusterError

DEFAULT_BASE_IMAGE = "python:3.11-slim-bookworm"
"""The default of the Dockerfiles."""
MEGABYTE = 1_000_000
ROOM_BYTES = 800 * MEGABYTE
"""Space for packages, root file system and archive together."""
REGISTRY_TIMEOUT_S = 10.0
CLEAN_UP_TIMEOUT_S = 60.0
SUPPORTED_PYTHONS = ("3.11", "3.12", "3.13")

PYTHON_PROBE = "import platform, sys; print('%d.%d' % sys.version_info[:2], platform.machine(), *platform.libc_ver())"


def prepare(store: ImageStore, requested: str | None, *, fresh: bool, log: LogLine) -> tuple[str, str]:
    """Return the base to build on, which is then on the engine, and where it came from, as text.

    With `fresh` it is pulled or made again even when the engine has one.

    Raises:
        ClusterError: the requested one cannot be pulled, or none can be pulled or made.
    """
    if requested is not None:
        if not fresh and store.has(requested):
            return requested, "on the engine already"
        store.pull(requested, log)
        return requested, "pulled"
    for name in () if fresh else (DEFAULT_BASE_IMAGE, base_name()):
        if store.has(name):
            return name, "on the engine already"
    unreachable = _unreachable(DEFAULT_BASE_IMAGE)
    if unreachable is None:
        store.pull(DEFAULT_BASE_IMAGE, log)
        return DEFAULT_BASE_IMAGE, "pulled"
    try:
        _make(store, base_name(), log)
    except ClusterError as error:
        raise ClusterError(f"{unreachable}\nand {error}") from error
    return base_name(), f"made from the distribution's packages, because of: {unreachable}"


def platform_of(store: ImageStore, base: str) -> Platform:
    """Return the Python version and platform of a base.

    Raises:
        ClusterError: the broker does not run on it.
    """
    version = store.run(base, ["python3", "-c", PYTHON_PROBE]).split()
    if len(version) < 3 or version[2] != "glibc" or version[0] not in SUPPORTED_PYTHONS:
        supported = ", ".join(SUPPORTED_PYTHONS)
        raise ClusterError(f"{base}: has {' '.join(version)}; a base needs Python {supported} on glibc")
    return Platform(python=version[0], machine=version[1])


def _unreachable(image: str) -> str | None:
    """Return why an image cannot be pulled, or None when it can; takes `REGISTRY_TIMEOUT_S` at most."""
    try:
        with Engine.connect(timeout_s=REGISTRY_TIMEOUT_S) as engine:
            ImageStore(engine).check_registry(image)
    except ClusterError as error:
        return str(error)
    return None


def _make(store: ImageStore, name: str, log: LogLine) -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-chaos-base-") as folder:
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < ROOM_BYTES:
            free = f"{tempfile.gettempdir()} has {free_bytes // MEGABYTE} MB free"
            raise ClusterError(f"no base could be made here: {free} and it takes {ROOM_BYTES // MEGABYTE}; set TMPDIR")
        archive = Path(folder, "base.tar")
        run_script([str(base_script())], archive, Path(folder), log)
        store.import_tar(str(archive), name)


def run_script(command: list[str], output: Path, scratch: Path, log: LogLine) -> None:
    """Run a script with its standard output in a file, its temporary files in `scratch`, its stderr lines to `log`.

    An interrupt of this process ends the script.

    Raises:
        ClusterError: it failed; the message is the end of its stderr.
    """
    tail: deque[str] = deque(maxlen=LOG_TAIL)
    with (
        output.open("wb") as file,
        subprocess.Popen(  # noqa: S603  a script of our own
            command,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        ) as process,
    ):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                tail.append(line.rstrip())
                log(line.rstrip())
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise ClusterError("\n".join(["no base could be made here:", *tail]))


def _end(process: "subprocess.Popen[str]") -> None:
    """End a script and all its children after it has cleaned up: it must unmount before its folder is removed."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(CLEAN_UP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
