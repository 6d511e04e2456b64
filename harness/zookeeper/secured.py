"""How does a session of the harness reach a ZooKeeper that asks for TLS, or for a user (SASL, DIGEST-MD5)?"""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler

from harness.errors import ClusterError
from harness.kafka.security.settings import Tls, ZookeeperSecurity
from harness.system.extras import require

OPEN = ZookeeperSecurity()
"""A ZooKeeper that asks for nothing."""


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """Ends threads without a traceback where ZooKeeper refuses a user: the session's state says so."""

    def spawn(self, func: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Start a thread."""

        def run(*args: Any, **options: Any) -> None:
            with suppress(KazooException):  # kazoo has logged it
                func(*args, **options)

        return super().spawn(run, *args, **options)


class _SecureHandler(_Handler):
    """Opens connections by the harness's own rules for certificates; kazoo's take paths only."""

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._context = tls.context()

    def create_connection(
        self, address: tuple[str, int], *, hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> socket.socket:
        """Return a connection over TLS."""
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _over_tls(plain, self._context, hostname or address[0])


def session_client(hosts: str, security: ZookeeperSecurity, **options: Any) -> KazooClient:
    """Return kazoo's client of one session, not started.

    Raises:
        NotInstalled: the settings name a user, and the package that proves it is not installed.
    """
    if security.username:
        require("puresasl")
        options["handler"] = _Handler()
        options["sasl_options"] = {
            "mechanism": "DIGEST-MD5",
            "username": security.username,
            "password": security.password,
        }
    if security.tls is not None:
        options |= {"handler": _SecureHandler(security.tls), "use_ssl": True}
    return KazooClient(hosts=hosts, **options)


def refusal(hosts: str, security: ZookeeperSecurity, error: Exception) -> ClusterError:
    """Return the error that a session could not be opened, with what the client settings say of it."""
    tls = "with TLS" if security.tls else "without TLS (zookeeper.ssl.client.enable)"
    user = "with a user" if security.username else "without a user (zookeeper.sasl.username)"
    return ClusterError(f"ZooKeeper at {hosts} does not answer: {error!r}; it was asked {tls} and {user}")


def connected(server: tuple[str, int], security: ZookeeperSecurity, timeout_s: float) -> socket.socket:
    """Return a connection to a server, over TLS if the settings say so; raises OSError."""
    plain = socket.create_connection(server, timeout_s)
    return plain if security.tls is None else _over_tls(plain, security.tls.context(), server[0])


def _over_tls(plain: socket.socket, context: ssl.SSLContext, name: str) -> ssl.SSLSocket:
    """Return a connection over TLS to the server of this name; the plain one is closed if it fails."""
    try:
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise
