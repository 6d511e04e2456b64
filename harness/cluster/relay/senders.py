"""Which process has the other end of a connection: the kernel knows the socket, /proc its owner (Linux only).

Asked once a connection. A socket without an owner was closed meanwhile, or belongs to another user's process.
"""

import os
import socket
import struct
from pathlib import Path

from harness.cluster.ports import LOOPBACK
from harness.system.pids import LINUX, ProcessIdentity, identify, read_pid_file

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
"""Netlink's protocol, message and flag (linux/sock_diag.h, linux/inet_diag.h)."""
_HEADER = struct.Struct("=IHHII")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
_INODE_AT = _HEADER.size + 68
"""Behind a message's four bytes, the socket's 48, and four numbers."""
_ANSWER_BYTES = 4096


def inode_of(port: int, peer_port: int) -> int | None:
    """Return the inode of the loopback TCP socket with these two ports; None when it is gone."""
    address = socket.inet_aton(LOOPBACK) + bytes(12)
    wanted = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, _ANY_STATE)
    wanted += struct.pack(">HH", port, peer_port) + address + address + struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _REQUEST, 0, 0) + wanted)
        answer = kernel.recv(_ANSWER_BYTES)
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY:
        return None
    (inode,) = struct.unpack_from("=I", answer, _INODE_AT)
    return inode or None


def has_open(process: ProcessIdentity, inode: int) -> bool:
    """Return whether a process has this socket open; not if it has ended."""
    wanted, folder = f"socket:[{inode}]", Path(f"/proc/{process.pid}/fd")
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208  names are enough
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return False
    for name in reversed(descriptors):  # the latest is most often the highest
        try:
            if os.readlink(folder / name) == wanted:  # noqa: PTH115  a link to no path
                return process.alive()
        except OSError:  # closed meanwhile
            continue
    return False


def lacking() -> str:
    """Return why a connection's owner cannot be known here; empty where a connection of this process is known."""
    if not LINUX:
        return "only Linux identifies the sender of a connection"
    me = identify(os.getpid())
    assert me is not None, "this process runs"
    try:
        with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname()) as own:
            inode = inode_of(own.getsockname()[1], server.getsockname()[1])
            known = inode is not None and has_open(me, inode)
    except OSError as error:
        return f"the kernel does not identify the sender of a connection: {error.strerror or error}"
    return "" if known else "the kernel does not identify the sender of a connection"


def sender(port: int, peer_port: int, hosts: list[str], pids: Path) -> str | None:
    """Return which of these hosts, each a process with a pid file, opened a connection; None for none of them."""
    inode = inode_of(port, peer_port)
    if inode is None:
        return None
    processes = [(host, read_pid_file(pids / f"{host}.pid")) for host in hosts]
    return next((host for host, process in processes if process is not None and has_open(process, inode)), None)
