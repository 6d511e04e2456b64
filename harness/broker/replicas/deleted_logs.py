"""Removes deleted logs from disk a while after they were put aside (`log.segment.delete.delay.ms`).

Deleting a replica only renames its folder, which is quick and lets readers finish; the files go later, also those that
an earlier life of the broker left behind. After Kafka's `LogManager.deleteLogs`.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from harness.broker.log.directories import LogDirectories

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class DeletedLogs:
    """The folders that are on their way out."""

    logs: LogDirectories
    delay_s: float
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def start(self) -> None:
        """Take over what was left behind."""
        for folder in self.logs.put_aside():
            self.remove_later(folder)

    def remove_later(self, folder: str) -> None:
        """Remove a folder when its time has come."""
        self._timers[folder] = asyncio.get_running_loop().call_later(self.delay_s, self._remove, folder)

    def stop(self) -> None:
        """Leave what is still there to the next life."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _remove(self, folder: str) -> None:
        del self._timers[folder]
        try:
            self.logs.remove(folder)
        except OSError as error:
            _log.error("log.remove failed folder=%s error=%s", folder, error)
        else:
            _log.info("log.removed folder=%s", folder)
