"""`python -m harness.cluster.relay` relays in the working directory, a cluster's folder, until SIGTERM.

Its ports are in `relay.json` there, and it takes commands over `relay.sock`. It is a child of the supervisor.
"""

import asyncio
import contextlib
import resource
import signal
from contextlib import AsyncExitStack
from pathlib import Path

from harness.cluster.command_socket import taking
from harness.cluster.relay import SOCKET_NAME
from harness.cluster.relay.listeners import load
from harness.cluster.relay.relay import Relay
from harness.cluster.supervisor import PIDS_NAME


async def relay(folder: Path) -> None:
    """Relay until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with AsyncExitStack() as stack:
        own = Relay(load(folder), folder / PIDS_NAME)
        await own.listen(stack)
        await stack.enter_async_context(taking(own.commands, SOCKET_NAME))
        await ended.wait()


def main() -> None:
    """Relay; every connection takes two file descriptors, and over a cut link they stay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(relay(Path.cwd()))


if __name__ == "__main__":
    main()
