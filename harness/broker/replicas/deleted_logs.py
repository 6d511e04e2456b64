"""Removes deleted logs, and segments, from disk a while after they were put aside (`log.segment.delete.delay.ms`).

Deleting a replica only renames its folder, which is quick and lets readers finish; the files go later, also those that
an earlier life of the broker left behind. After Kafka's `LogManager.deleteLogs`. Of a segment that a log has no more
the files are renamed, and stay as long as the topic says (`LocalLog.deleteSegmentFiles`).
"""

import asyncio
import logging
from dataclasses import dataclass, field

from harness.broker.log.directories import LogDirectories

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class DeletedLogs:
    """The folders and files that are on their way out."""

    logs: LogDirectories
    delay_s: float
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def start(self) -> None:
        """Take over what was left behind, and what comes."""
        self.logs.on_put_aside(self.remove_later)
        for folder in self.logs.put_aside():
            self.remove_later(folder)

    def remove_later(self, place: str, delay_ms: int | None = None) -> None:
        """Remove a folder or file when its time has come; without one, that of a deleted log."""
        delay_s = self.delay_s if delay_ms is None else delay_ms / 1000
        self._timers[place] = asyncio.get_running_loop().call_later(delay_s, self._remove, place)

    def stop(self) -> None:
        """Leave what is still there to the next life."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _remove(self, place: str) -> None:
        del self._timers[place]
        try:
            self.logs.remove(place)
        except OSError as error:
            _log.error("log.remove failed place=%s error=%s", place, error)
        else:
            _log.info("log.removed place=%s", place)
