"""How does a process that knows the cluster's folder talk to its supervisor?"""
# ruff: noqa: ASYNC240 - small local files only; they take microseconds

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import harness
from harness.cluster.supervision.command_socket import LINE_LIMIT_BYTES
from harness.cluster.supervision.supervisor import SOCKET_NAME
from harness.errors import ClusterError, DeadlineError
from harness.system.pids import LINUX

SOURCE_ROOT = Path(harness.__file__).resolve().parent.parent
LAUNCH_TIMEOUT_S = 10.0
CALL_TIMEOUT_S = 10.0


class SupervisorGone(ClusterError):
    """No supervisor answers in the folder: no cluster was started there, or it has ended."""


async def launch(folder: Path, *, run_id: str, owner_pid: int | None, behind: Sequence[str] = ()) -> None:
    """Start a supervisor for the folder; return when it takes commands. `behind` is a command that starts its own.

    Raises:
        ClusterError: another one runs there, or it died at its start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    argv = [
        *behind,
        sys.executable,
        "-m",
        "harness.cluster.supervision.supervisor",
        str(folder.resolve()),
        "--run-id",
        run_id,
    ]
    if owner_pid is not None:
        argv += ["--owner-pid", str(owner_pid)]
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=SOURCE_ROOT, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        _, stderr = await asyncio.wait_for(process.communicate(), LAUNCH_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise DeadlineError(f"supervisor in {folder}: not ready within {LAUNCH_TIMEOUT_S:g} s") from None
    if process.returncode != 0:
        raise ClusterError(f"supervisor in {folder}: {stderr.decode().strip()}")


async def call(
    folder: Path,
    command: str,
    *,
    socket_name: str = SOCKET_NAME,
    answer_within_s: float = CALL_TIMEOUT_S,
    **arguments: Any,
) -> Any:
    """Send one command and return its answer; the supervisor's, or that of a helper with another socket.

    Raises:
        SupervisorGone: no process answers there.
        DeadlineError: no answer within `answer_within_s`.
        ClusterError: the supervisor refused; the message says why.
    """
    try:
        async with asyncio.timeout(answer_within_s), connection(folder, socket_name) as (reader, writer):
            writer.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
    except TimeoutError:
        raise DeadlineError(f"{socket_name} in {folder}: no answer to {command} within {answer_within_s:g} s") from None
    except OSError as error:
        problem = "no cluster runs" if socket_name == SOCKET_NAME else f"no process answers at {socket_name}"
        raise SupervisorGone(f"{problem} in {folder}: {error.strerror or error}") from error
    if not line:
        raise SupervisorGone(f"{socket_name} in {folder}: it ended before it answered {command}")
    answer = json.loads(line)
    if "error" in answer:
        raise ClusterError(answer["error"])
    return answer


@asynccontextmanager
async def connection(folder: Path, name: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection to a socket in a cluster's folder; raises OSError when no process answers there."""
    with _short_path(folder, name) as path:
        reader, writer = await asyncio.open_unix_connection(path, limit=LINE_LIMIT_BYTES)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.contextmanager
def _short_path(folder: Path, name: str) -> Iterator[str]:
    """Yield a path to the socket that fits into the 108 bytes (104 on macOS) an address has room for."""
    if LINUX:
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{descriptor}/{name}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory(prefix="chaos-") as short:
            link = Path(short, "c")
            link.symlink_to(folder.resolve())
            yield str(link / name)
