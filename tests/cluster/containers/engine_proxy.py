"""A way to the Docker engine that can be closed and opened again: an engine that goes away, with no harm to others."""

import contextlib
import os
import socket
import threading
from pathlib import Path

BUFFER_BYTES = 1 << 16
DEFAULT_SOCKET = "/var/run/docker.sock"


class EngineProxy:
    """Passes connections to a unix socket on to the engine's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = os.environ.get("DOCKER_HOST", f"unix://{DEFAULT_SOCKET}").removeprefix("unix://")
        self._listening: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self.open()

    @property
    def url(self) -> str:
        return f"unix://{self.path}"

    def open(self) -> None:
        """Let connections through from now on."""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.path))
        self._listening.listen(64)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections and cut those there are; idempotent."""
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
            self.path.unlink()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._target)
            self._open |= {client, engine}
            threading.Thread(target=self._both_ways, args=(client, engine), daemon=True).start()

    def _both_ways(self, client: socket.socket, engine: socket.socket) -> None:
        back = threading.Thread(target=_pump, args=(engine, client), daemon=True)
        back.start()
        _pump(client, engine)
        back.join()
        for end in (client, engine):
            self._open.discard(end)
            end.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(BUFFER_BYTES):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
