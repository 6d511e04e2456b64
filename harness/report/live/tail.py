"""Reads of a file that grows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Tail:
    """The growing end of a file, look by look."""

    def __init__(self, path: Path, most_bytes: int | None = None) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._offset = 0
        self._torn = b""

    def lines(self) -> bytes:
        """Return the whole new lines; if more than `most_bytes`, only the last ones."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if self._most_bytes is not None and size - self._offset > self._most_bytes:
                    self._offset, self._torn = size - self._most_bytes, b""
                file.seek(self._offset)
                new = self._torn + file.read()
        except OSError:
            return b""
        self._offset += len(new) - len(self._torn)
        whole, newline, self._torn = new.rpartition(b"\n")
        return whole + newline

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield those that are JSON objects."""
        for line in self.lines().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry
