"""How does a helper process of a cluster take commands: a JSON line a connection over a unix socket, and one back?

Standard library only: the supervisor and the relay import this module and must start fast.
"""
# ruff: noqa: ASYNC240 - small local files only; they take microseconds

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

LINE_LIMIT_BYTES = 1 << 20

Commands = Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]
"""By name, what takes plain values and returns them."""


class CommandError(Exception):
    """A command cannot be carried out; the message is the answer."""


@contextlib.asynccontextmanager
async def taking(commands: Commands, socket_name: str) -> AsyncIterator[None]:
    """Take commands over a socket in the working directory, which is removed in the end."""
    path = Path(socket_name)
    path.unlink(missing_ok=True)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled only at the end of the loop, which Python 3.11 would log as an error of this callback.
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.CancelledError):
            try:
                reply = await answer(commands, await reader.readline())
            except ValueError:
                reply = {"error": f"not a line of at most {LINE_LIMIT_BYTES} bytes"}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()

    server = await asyncio.start_unix_server(converse, socket_name, limit=LINE_LIMIT_BYTES)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        server.close()


async def answer(commands: Commands, line: bytes) -> dict[str, Any]:
    """Carry out one command and return its answer, which holds `error` when it could not be."""
    try:
        arguments: dict[str, Any] = dict(json.loads(line))
    except (TypeError, ValueError):
        return {"error": f"not a JSON object: {line[:80]!r}"}
    name = arguments.pop("command", None)
    if name not in commands:
        return {"error": f"unknown command {name!r}; known: {', '.join(commands)}"}
    try:
        return await commands[name](**arguments)
    except (CommandError, OSError, TypeError, ValueError) as error:
        return {"error": f"{name}: {error}"}
