"""What becomes of a line that is no command."""

import asyncio
from pathlib import Path

import pytest

from harness.cluster.supervision.command_socket import LINE_LIMIT_BYTES, taking


async def test_who_sends_too_long_a_line_is_answered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with taking({}, "c.sock"), asyncio.timeout(120):
        reader, writer = await asyncio.open_unix_connection("c.sock")
        writer.write(b"x" * (LINE_LIMIT_BYTES + 1))
        assert await reader.readline() == b'{"error": "not a line of at most 1048576 bytes"}\n'
        assert await reader.read() == b""
        writer.close()
