"""`python -m harness.cluster.relay FOLDER` relays until SIGTERM.

Its ports are in `relay.json` there, and it takes commands over `relay.sock`. It is a child of the supervisor, or in a
container of its own.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from harness.cluster.relay import SOCKET_NAME
from harness.cluster.relay.listeners import load
from harness.cluster.relay.relay import Relay
from harness.cluster.supervision.command_socket import taking


async def relay() -> None:
    """Relay until SIGTERM, in the working directory."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with AsyncExitStack() as stack:
        own = Relay(load(Path.cwd()))
        await own.listen(stack)
        await stack.enter_async_context(taking(own.commands, SOCKET_NAME))
        await ended.wait()


def main() -> None:
    """Relay; every connection takes two file descriptors, and over a cut link they stay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.chdir(sys.argv[1])
    asyncio.run(relay())


if __name__ == "__main__":
    main()
