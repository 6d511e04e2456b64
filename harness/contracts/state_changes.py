"""Reads a broker's logged state changes since some position, while it writes more."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.cluster.driver import ClusterDriver
from harness.cluster.releases import Writer, parts_of
from harness.cluster.systems.system import system_named
from harness.system.tail import end_of_lines, whole_lines

LOOK_EVERY_S = 0.02
"""How often growing files are read for a line that is waited for."""


class StateChanges(Protocol):
    """The logged state changes of a cluster's brokers; a position in a broker's log is a number."""

    async def end_of(self, broker_id: int) -> int:
        """Return where a broker's log ends now."""
        ...

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        """Return the events of these kinds from `position` on, and the position for the next look."""
        ...

    async def grown(self, kind: str, within_s: float) -> None:
        """Return when it is worth looking for this kind again, or when the time is over."""
        ...

    async def dated(self, broker_id: int, position: int) -> tuple[int | None, int]:
        """Return the broker's wall clock at its last line, and the position for the next look.

        In nanoseconds since 1970; None without a line from `position` on.
        """
        ...

    async def release(self, broker_id: int, position: int) -> str:
        """Return the release that a broker logs from `position` on; empty if it logs none."""
        ...

    def wall_ns(self) -> int:
        """Return the harness's wall clock."""
        ...


@dataclass(frozen=True, slots=True)
class LogFiles:
    """State changes in files: the driver knows the paths, the system under test the format."""

    driver: ClusterDriver

    async def end_of(self, broker_id: int) -> int:
        """Return where a broker's log ends now, in bytes and whole lines; 0 when there is none."""
        path, _ = await self._log(broker_id)
        return end_of_lines(path)

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        """Return the events of these kinds from `position` on, and the position for the next look."""
        path, writers = await self._log(broker_id)
        lines = whole_lines(path, position)
        parts = [(system_named(name), part) for name, part in parts_of(lines, position, writers)]
        events = [event for system, part in parts for event in system.state_changes(part, kinds)]
        return events, position + len(lines)

    async def grown(self, kind: str, within_s: float) -> None:
        """Return after a short time: files do not say when they grow."""
        await asyncio.sleep(min(LOOK_EVERY_S, within_s))

    async def dated(self, broker_id: int, position: int) -> tuple[int | None, int]:
        """Return the broker's wall clock at its last line, and the position for the next look."""
        path, writers = await self._log(broker_id)
        lines = whole_lines(path, position)
        return system_named(writers[-1].system).dated(lines), position + len(lines)

    async def release(self, broker_id: int, position: int) -> str:
        """Return the release that a broker logs from `position` on."""
        path, writers = await self._log(broker_id)
        return system_named(writers[-1].system).release_in(whole_lines(path, position))

    def wall_ns(self) -> int:
        """Return the machine's wall clock."""
        return time.time_ns()

    async def _log(self, broker_id: int) -> tuple[Path, tuple[Writer, ...]]:
        """Return a broker's log, and which releases wrote which parts of it."""
        status = await self.driver.status()
        writers = status.writers(broker_id)
        return system_named(writers[-1].system).event_log(status.broker(broker_id)), writers
