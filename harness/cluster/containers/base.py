"""What images stand on: the image that is asked for, an official one where it can be pulled, else one that is made."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from harness.cluster.containers.engine import Engine
from harness.cluster.containers.image_store import LOG_TAIL, ImageStore
from harness.cluster.containers.images import base_name, base_script
from harness.cluster.containers.wheelhouse import Platform
from harness.errors import ClusterError

DEFAULT_BASE_IMAGE = "python:3.11-slim-bookworm"
"""As the Dockerfiles have it."""
MEGABYTE = 1_000_000
ROOM_BYTES = 800 * MEGABYTE
"""What packages, root file system and archive take together."""
REGISTRY_TIMEOUT_S = 10.0
CLEAN_UP_TIMEOUT_S = 60.0
SUPPORTED = ("3.11", "3.12", "3.13")

WHICH_PYTHON = "import platform, sys; print('%d.%d' % sys.version_info[:2], platform.machine(), *platform.libc_ver())"


def prepare(store: ImageStore, asked: str | None, *, fresh: bool, say: Callable[[str], None]) -> tuple[str, str]:
    """Return the base to build on, which the engine then has, and how it came there.

    `fresh` means that one the engine has already is not enough.

    Raises:
        ClusterError: what was asked for cannot be pulled, or nothing can be pulled and none can be made.
    """
    if asked is not None:
        if not fresh and store.has(asked):
            return asked, "on the engine already"
        store.pull(asked, say)
        return asked, "pulled"
    for name in () if fresh else (DEFAULT_BASE_IMAGE, base_name()):
        if store.has(name):
            return name, "on the engine already"
    unreachable = _unreachable(DEFAULT_BASE_IMAGE)
    if unreachable is None:
        store.pull(DEFAULT_BASE_IMAGE, say)
        return DEFAULT_BASE_IMAGE, "pulled"
    try:
        _make(store, base_name(), say)
    except ClusterError as error:
        raise ClusterError(f"{unreachable}\nand {error}") from error
    return base_name(), f"made from the distribution's packages, because of: {unreachable}"


def platform_of(store: ImageStore, base: str) -> Platform:
    """Return which Python a base has.

    Raises:
        ClusterError: none that the broker runs on.
    """
    answer = store.run(base, ["python3", "-c", WHICH_PYTHON]).split()
    if len(answer) < 3 or answer[2] != "glibc" or answer[0] not in SUPPORTED:
        raise ClusterError(f"{base}: has {' '.join(answer)}; a base needs Python {', '.join(SUPPORTED)} on glibc")
    return Platform(python=answer[0], machine=answer[1])


def _unreachable(image: str) -> str | None:
    """Return why an image cannot be pulled, found out in seconds, or None when it can be."""
    try:
        with Engine.connect(timeout_s=REGISTRY_TIMEOUT_S) as engine:
            ImageStore(engine).ask_registry(image)
    except ClusterError as error:
        return str(error)
    return None


def _make(store: ImageStore, name: str, say: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-chaos-base-") as folder:
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < ROOM_BYTES:
            free = f"{tempfile.gettempdir()} has {free_bytes // MEGABYTE} MB free"
            raise ClusterError(f"no base could be made here: {free} and it takes {ROOM_BYTES // MEGABYTE}; set TMPDIR")
        archive = Path(folder, "base.tar")
        run_script([str(base_script())], archive, Path(folder), say)
        store.import_tar(str(archive), name)


def run_script(command: list[str], output: Path, scratch: Path, say: Callable[[str], None]) -> None:
    """Run a script with its standard output in a file; it ends with us, its temporary files with the scratch folder.

    Raises:
        ClusterError: it failed; the message is what it said last.
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
                say(line.rstrip())
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise ClusterError("\n".join(["no base could be made here:", *tail]))


def _end(process: "subprocess.Popen[str]") -> None:
    """End a script with all it started, after it has cleaned up: what it mounted must be gone before its folder is."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(CLEAN_UP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
