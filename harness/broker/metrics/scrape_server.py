"""An HTTP server for scrapes: a thread a connection, as in the client library's own, with a limit."""

import logging
import socket
import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import WSGIApplication

_log = logging.getLogger(__name__)

CONNECTIONS = 16
"""At a time; one more is closed at once."""
IDLE_S = 10.0
"""An idle connection is closed after this time."""


class ScrapeServer(ThreadingMixIn, WSGIServer):
    """Takes a bounded number of connections."""

    daemon_threads = True
    request_queue_size = 128
    """Connections that wait to be taken or closed; the kernel lets others try again after a second, or more."""

    def __init__(self, *args: Any) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there is a place."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and give up the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log silent and vanished clients; they see a missing answer themselves."""
        _log.debug("scrape.failed client=%s", client_address, exc_info=True)


class _Handler(WSGIRequestHandler):
    timeout = IDLE_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the base class
        """Log no request."""


def serve(host: str, port: int, app: WSGIApplication) -> ScrapeServer:
    """Return a server that answers in the background; raises OSError when the port cannot be had."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]

    class Server(ScrapeServer):
        address_family = family

    server = make_server(host, port, app, Server, _Handler)
    threading.Thread(target=server.serve_forever, name="scrapes", daemon=True).start()
    return server
