"""A partition leader's reads and writes in ZooKeeper: its partition's state, and notifications of ISR changes."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import BadVersion, NoNode, Stat, ZooKeeper
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.znodes import (
    ISR_CHANGE_PREFIX,
    LOG_DIR_EVENT_PREFIX,
    MalformedZnode,
    PartitionStateZnode,
    encode_isr_change,
    encode_log_dir_event,
    partition_state_path,
)
from harness.events import ZkWrite

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedState:
    """A partition's state with the version of the znode that held it."""

    state: PartitionStateZnode
    zk_version: int


async def read_partition_state(zk: ZooKeeper, topic: str, partition: int) -> VersionedState | None:
    """Return a partition's state, or None before its first leader; an invalid znode counts as none."""
    try:
        data, stat = await zk.get(partition_state_path(topic, partition))
        return VersionedState(state=PartitionStateZnode.decode(topic, partition, data), zk_version=stat.version)
    except NoNode:
        return None
    except MalformedZnode as error:
        log.error("partition_state.ignored error=%s", error)
        return None


async def read_partition_states(
    zk: ZooKeeper, partitions: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], VersionedState]:
    """Return the states of those partitions that have one."""
    states = await all_of(read_partition_state(zk, topic, partition) for topic, partition in partitions)
    return {partition: state for partition, state in zip(partitions, states, strict=True) if state is not None}


async def write_isr(
    zk: ZooKeeper,
    topic: str,
    partition: int,
    state: PartitionStateZnode,
    expected_version: int,
    *,
    state_log: StateLog,
) -> int:
    """Replace a partition's state if its znode has the expected version, and return the new version.

    A write whose answer was lost with the connection is sent again and may then find its own work; so when the
    version is another one and the znode holds exactly `state`, this write did succeed (Kafka's
    `ReplicationUtils.checkLeaderAndIsrZkData`). The znode's version is returned as read back.

    Raises:
        BadVersion: another write came first, or the znode is gone; nothing was written.
    """
    path = partition_state_path(topic, partition)
    result, version = "ok", -1
    try:
        version = (await zk.set(path, state.encode(), expected_version)).version
    except NoNode:
        result = "nonode"
    except BadVersion:
        standing = await read_partition_state(zk, topic, partition)
        if standing is not None and standing.state == state:
            version = standing.zk_version
        else:
            result = "badversion"
    state_log.emit(
        ZkWrite(
            path=path,
            op="set",
            expected_version=expected_version,
            result=result,
            new_version=version,
            by="leader",
            controller_epoch=state.controller_epoch,
        )
    )
    if result != "ok":
        raise BadVersion(f"{path}: {result}, expected version {expected_version}")
    return version


async def publish_isr_changes(zk: ZooKeeper, partitions: Sequence[tuple[str, int]], *, state_log: StateLog) -> str:
    """Notify the controller of changed ISRs; return the path of the notification.

    An answer lost with the connection may leave two notifications, which is harmless.
    """
    path, stat = await zk.create(ISR_CHANGE_PREFIX, encode_isr_change(partitions), sequential=True)
    _log_created(path, stat, state_log)
    return path


async def publish_log_dir_failure(zk: ZooKeeper, broker_id: int, *, state_log: StateLog) -> None:
    """Notify the controller of a broker's failed data directory: it then asks which replicas are gone."""
    _, stat = await zk.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_event(broker_id), sequential=True)
    _log_created(LOG_DIR_EVENT_PREFIX, stat, state_log)


def _log_created(path: str, stat: Stat, state_log: StateLog) -> None:
    state_log.emit(
        ZkWrite(
            path=path,
            op="create",
            expected_version=-1,
            result="ok",
            new_version=stat.version,
            by="leader",
            controller_epoch=-1,
        )
    )
