"""Silently drops packets of a container, by rules in its network namespace, which end with it.

The kernel drops them, so the other end receives nothing: neither a reset nor an answer to a new connection.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness.cluster.capabilities import Direction
from harness.errors import ClusterError

MARK = "kafka-chaos"
_CHAINS = {Direction.INBOUND: ("INPUT", "-i"), Direction.OUTBOUND: ("OUTPUT", "-o")}
_OWN = Path("/proc/self/ns/net")
_TIMEOUT_S = 10.0


def lacking() -> str:
    """Return why no container's packets can be dropped here; empty if they can."""
    if absent := [name for name in ("nsenter", "iptables") if shutil.which(name) is None]:
        return f"there is no {' and no '.join(absent)}"
    return "" if os.geteuid() == 0 else "a packet filter in a container's network namespace takes root"


def drop(pid: int, direction: Direction) -> None:
    """Drop all packets of a process's network namespace, except on its loopback; raises ClusterError."""
    for way in direction.ways:
        chain, device = _CHAINS[way]
        _inside(pid, "-I", chain, *_rule(device))


def let_pass(pid: int) -> None:
    """Remove the rule; raises ClusterError."""
    for chain, device in _CHAINS.values():
        for _ in _marked(pid, chain):
            _inside(pid, "-D", chain, *_rule(device))


def dropped(pid: int) -> int | None:
    """Return the number of dropped packets; None if nothing drops them; raises ClusterError."""
    counts = [int(line.split()[0]) for chain, _ in _CHAINS.values() for line in _marked(pid, chain)]
    return sum(counts) if counts else None


def _rule(device: str) -> list[str]:
    return ["!", device, "lo", "-m", "comment", "--comment", MARK, "-j", "DROP"]


def _marked(pid: int, chain: str) -> Iterator[str]:
    return (line for line in _inside(pid, "-nvxL", chain).splitlines() if MARK in line)


def _inside(pid: int, *arguments: str) -> str:
    """Run iptables in another network namespace, never in this process's own."""
    argv = ["iptables", "-w", *arguments]
    try:
        with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:  # kept open: the pid may be reused later
            if os.path.samestat(os.fstat(namespace.fileno()), _OWN.stat()):
                raise ClusterError(f"process {pid} has the harness's own network namespace, which is not filtered")
            done = subprocess.run(  # noqa: S603
                [str(shutil.which("nsenter")), f"--net=/proc/self/fd/{namespace.fileno()}", *argv],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                pass_fds=[namespace.fileno()],
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{' '.join(argv)} for process {pid}: {error}") from error
    if done.returncode:
        raise ClusterError(f"{' '.join(argv)} for process {pid}: {done.stderr.strip()}")
    return done.stdout
