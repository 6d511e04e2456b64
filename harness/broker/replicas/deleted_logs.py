"""Removes deleted logs, and segments, from disk after a delay (`log.segment.delete.delay.ms`).

Deleting a replica only renames its folder, which is quick and lets readers finish; the files are removed later, also
those left by the broker's earlier process. After Kafka's `LogManager.deleteLogs`. Files of a removed segment are
renamed, and stay for the topic's delay (`LocalLog.deleteSegmentFiles`).
"""

import asyncio
import logging
from dataclasses import dataclass, field

from harness.broker.log.directories import LogDirectories

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class DeletedLogs:
    """The folders and files to be removed."""

    logs: LogDirectories
    delay_s: float
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def start(self) -> None:
        """Schedule existing leftovers, and later ones."""
        self.logs.on_put_aside(self.remove_later)
        for folder in self.logs.put_aside():
            self.remove_later(folder)

    def remove_later(self, place: str, delay_ms: int | None = None) -> None:
        """Remove a folder or file after a delay; by default, that of a deleted log.

        Where a second file has taken the name of one that waits, the delay begins again.
        """
        delay_s = self.delay_s if delay_ms is None else delay_ms / 1000
        if place in self._timers:
            self._timers[place].cancel()
        self._timers[place] = asyncio.get_running_loop().call_later(delay_s, self._remove, place)

    def stop(self) -> None:
        """Leave the rest to the next start."""
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
