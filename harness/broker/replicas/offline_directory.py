"""Handles a failed data directory: its replicas go offline, the controller is notified, the broker stays up.

The directory stays offline until the broker starts again, as in Kafka (KIP-112), even when the disk has room again.
Kafka exits with its last directory; this broker continues without any: it keeps its session, its metadata and, if it is
controller, that role.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.broker.background import reported
from harness.broker.log.directory import LogDirectory
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.partition_state import publish_log_dir_failure
from harness.events import LogDirectoryFailure

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class DirectoryFailures:
    """Waits for one data directory to fail (`LogDirFailureHandler`)."""

    broker_id: int
    directory: LogDirectory
    take_offline: Callable[[], int]
    """Takes every replica in it offline and returns their number."""
    zookeeper: Callable[[], ZooKeeper]
    """Returns the session in force."""
    state_log: StateLog
    rules: ProtocolRules
    _handling: asyncio.Task[None] | None = field(init=False, default=None)

    def start(self) -> None:
        """Take the replicas offline as soon as the directory fails; before this, a failure ends the start."""
        if self.rules.disk_failure_takes_replicas_offline:
            self.directory.on_failure(self._failed)

    async def stop(self) -> None:
        """Stop notifying the controller."""
        if self._handling is not None:
            self._handling.cancel()
            await asyncio.gather(self._handling, return_exceptions=True)

    def _failed(self, error: OSError) -> None:
        """Schedule a step of its own: the caller that met the error is in the middle of something."""
        self._handling = asyncio.create_task(self._handle(error), name="log-directory-failure")
        self._handling.add_done_callback(reported)

    async def _handle(self, error: OSError) -> None:
        offline = self.take_offline()
        log.error("log_directory.offline replicas=%d error=%s", offline, error)
        self.state_log.emit(LogDirectoryFailure(error=str(error), replicas=offline))
        try:
            await publish_log_dir_failure(self.zookeeper(), self.broker_id, state_log=self.state_log)
        except ZooKeeperError as refusal:  # with the next session comes a LeaderAndIsr, and its answer says it too
            log.error("log_directory.unpublished error=%r", refusal)
