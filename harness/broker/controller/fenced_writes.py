"""The controller's writes to ZooKeeper: each succeeds only while `/controller_epoch` is its own (KAFKA-6082)."""

from collections.abc import Sequence

from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    OpResult,
    Set,
    Stat,
    ZooKeeperError,
)
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import CONTROLLER_EPOCH
from harness.events import ZkWrite

Write = Create | Set | Delete

_RESULTS: dict[type[ZooKeeperError], str] = {BadVersion: "badversion", NodeExists: "nodeexists", NoNode: "nonode"}


class FencedWrites:
    """Writes as the controller of one epoch."""

    def __init__(
        self, session: ZooKeeperSession, epoch: ControllerEpoch, state_log: StateLog, rules: ProtocolRules
    ) -> None:
        self._rules = rules
        self._session = session
        self._epoch = epoch
        self.state_log = state_log

    async def write(self, op: Write) -> OpResult:
        """Carry out one write; return its result; a failed one has its own error, as if sent alone.

        Raises:
            ControllerMovedError: another controller has taken over; nothing was written.
        """
        guarded = self._rules.controller_writes_are_fenced
        fence = Check(path=CONTROLLER_EPOCH, version=self._epoch.zk_version if guarded else ANY_VERSION)
        fenced, result = await self._session.current.multi([fence, op])
        moved = isinstance(fenced, BadVersion)
        self.state_log.emit(self._evidence(op, result, moved=moved))
        if moved:
            raise ControllerMovedError(f"controller epoch {self._epoch.value} is not the latest any more")
        return result

    async def write_all(self, ops: Sequence[Write]) -> list[OpResult]:
        """Carry out independent writes, many in flight at once; return their results in order.

        Raises:
            ControllerMovedError: another controller has taken over; some may have been written before.
        """
        return await all_of(self.write(op) for op in ops)

    def _evidence(self, op: Write, result: OpResult, *, moved: bool) -> ZkWrite:
        return ZkWrite(
            path=op.path,
            op=type(op).__name__.lower(),
            expected_version=-1 if isinstance(op, Create) else op.version,
            result="fenced" if moved else _outcome(result),
            new_version=_version(op, result),
            by="controller",
            controller_epoch=self._epoch.value,
        )


def _outcome(result: OpResult) -> str:
    if not isinstance(result, ZooKeeperError):
        return "ok"
    return _RESULTS.get(type(result), type(result).__name__.lower())


def _version(op: Write, result: OpResult) -> int:
    """Return the version of the znode after the write; -1 when it failed or was deleted."""
    if isinstance(result, Stat):
        return result.version
    return 0 if isinstance(op, Create) and isinstance(result, str) else -1
