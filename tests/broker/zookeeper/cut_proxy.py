"""A TCP proxy on loopback whose connections a test can cut."""

import asyncio


class CutProxy:
    """Forwards to one port; while it is cut, connections break and new ones are refused."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        self._is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers |= {writer, onward_writer}
        await asyncio.gather(self._pump(reader, onward_writer), self._pump(onward_reader, writer))
        self._writers -= {writer, onward_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
        except OSError:
            pass
        writer.transport.abort()
