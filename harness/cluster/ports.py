"""Which loopback ports may a cluster use? Free ones, outside the ephemeral range, that no other cluster has reserved.

The port of a broker that is down must stay unused. Were it ephemeral, a client that reconnects to it could get that
very port as its own end and so talk to itself (TCP simultaneous open). Could another cluster take it, the broker could
not listen when it starts again. So a process reserves each port by a name in Linux' abstract socket namespace, which
the kernel frees when the process ends and which leaves no file behind.

Standard library only: the supervisor imports this module and must start fast.
"""

import errno
import random
import socket
from pathlib import Path
from typing import Self

from harness.system.pids import LINUX

LOOPBACK = "127.0.0.1"
ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - in a container, of which ports are published on loopback only
LOWEST_PORT = 10_000
HIGHEST_PORT = 65_535
MOST_PORTS = 500
USUAL_EPHEMERAL_RANGE = (32_768, 65_535)


def ephemeral_range() -> tuple[int, int]:
    """Return the first and last port that the kernel gives to outgoing connections."""
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    except FileNotFoundError:
        return USUAL_EPHEMERAL_RANGE
    low, high = text.split()
    return int(low), int(high)


def listens(port: int) -> bool:
    """Return whether something on this host accepts connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


class PortReservations:
    """Ports that this process reserves against other clusters on the host until it releases them, or ends."""

    def __init__(self) -> None:
        self._held: dict[int, socket.socket | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def reserve(self, count: int) -> list[int]:
        """Reserve and return `count` unused ports.

        Raises:
            OSError: there are not that many.
            ValueError: more than `MOST_PORTS`.
        """
        if not 0 <= count <= MOST_PORTS:
            raise ValueError(f"{count} ports are requested; a cluster may have {MOST_PORTS}")
        low, high = ephemeral_range()
        candidates = [port for port in range(LOWEST_PORT, HIGHEST_PORT + 1) if not low <= port <= high]
        random.shuffle(candidates)
        chosen: list[int] = []
        for port in candidates:
            if len(chosen) == count:
                break
            if self._hold(port):
                chosen.append(port)
        if len(chosen) < count:
            raise OSError(
                errno.EADDRINUSE, f"only {len(chosen)} of {count} ports are free outside the range {low} to {high}"
            )
        return chosen

    def release(self) -> None:
        """Free the ports for others."""
        for holder in self._held.values():
            if holder is not None:
                holder.close()
        self._held.clear()

    def _hold(self, port: int) -> bool:
        """Reserve a port; return whether it was free."""
        if port in self._held:
            return False
        holder = _claim(port)
        if holder is None and LINUX:
            return False
        if not _free(port):
            if holder is not None:
                holder.close()
            return False
        self._held[port] = holder
        return True


def _claim(port: int) -> socket.socket | None:
    if not LINUX:
        return None
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0kafka-chaos-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))  # all interfaces, without SO_REUSEADDR: no listener and no lingering connection
        except OSError:
            return False
    return True
