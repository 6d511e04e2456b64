"""Which metadata change while a run goes on? The log is looked at again and again, and each change written."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.broker.wire.transport import Transport
from harness.errors import ClusterError
from harness.kraft.view import NoLeaderError, QuorumView
from harness.store.history import SNAPSHOT, ChainedWriter
from harness.zookeeper.scope import EVERYTHING, Scope

SOURCE = "observer"
LOOK_EVERY_S = 0.25


class QuorumObserver:
    """Follows the metadata log from `start` to `stop` and appends a line to a file for each change.

    Where no controller leads nothing changes, and it looks again. What else kept it from seeing, it keeps.
    """

    problem = ""
    """Why the log could not be read, when last that was so; empty if it always could."""

    def __init__(
        self,
        controllers: Mapping[int, str],
        path: Path,
        scope: Scope = EVERYTHING,
        transport: Transport | None = None,
    ) -> None:
        """Take where each controller listens, the file, which changes belong into it, and how to connect."""
        self._view = QuorumView(controllers, transport)
        self._path = path
        self._scope = scope
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to follow."""
        self._following = asyncio.create_task(self._follow(), name="metadata-observer")

    async def stop(self) -> None:
        """End the file.

        Raises:
            ClusterError: the file could not be written completely.
        """
        if self._following is None:
            return
        self._following.cancel()
        try:
            await self._following
        except asyncio.CancelledError:
            pass
        except OSError as error:
            raise ClusterError(f"the observer could not write {self._path}: {error}") from error
        finally:
            await self._view.close()

    async def _follow(self) -> None:
        with ChainedWriter(self._path) as history:
            while True:
                try:
                    changes = await self._view.news()
                except NoLeaderError:
                    changes = []
                except ClusterError as error:
                    changes, self.problem = [], str(error)
                self.problem = self._view.gap or self.problem
                for change in filter(lambda change: self._scope.holds(change.path), changes):
                    history.write(change if change.source == SNAPSHOT else replace(change, source=SOURCE))
                await asyncio.sleep(LOOK_EVERY_S)
