"""Reads what a broker has logged in its state-change log since some moment, while it goes on writing."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.cluster.driver import ClusterDriver


class StateChanges(Protocol):
    """What the brokers of a cluster log that they do; a position in a broker's log is a number."""

    async def end_of(self, broker_id: int) -> int:
        """Return where a broker's log ends now."""
        ...

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        """Return the events of these kinds from `position` on, and the position for the next look."""
        ...


@dataclass(frozen=True, slots=True)
class LogFiles:
    """State changes as they stand in files, wherever the driver says these are."""

    driver: ClusterDriver

    async def end_of(self, broker_id: int) -> int:
        """Return where a broker's log ends now."""
        return end_of(await self._path(broker_id))

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        """Return the events of these kinds from `position` on, and the position for the next look."""
        return events_after(await self._path(broker_id), position, *kinds)

    async def _path(self, broker_id: int) -> Path:
        return (await self.driver.status()).broker(broker_id).state_change_log


def end_of(path: Path) -> int:
    """Return how long the log is now, in bytes; 0 when there is none."""
    return path.stat().st_size if path.exists() else 0


def events_after(path: Path, offset: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines from `offset` on that are events of these kinds, and where the next look starts from."""
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    events = []
    for line in whole.splitlines():
        if any(kind.encode() in line for kind in kinds):  # most lines need no parsing
            event = _object(line)
            if event.get("ev") in kinds:
                events.append(event)
    return events, offset + len(whole)


def _object(line: bytes) -> dict[str, Any]:
    """Return the event of a line; a line torn by a kill and continued by the next process is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
