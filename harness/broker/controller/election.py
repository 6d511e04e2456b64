"""Winning `/controller`: the znode and the next controller epoch are written in one multi (KAFKA-6082)."""

import logging
from dataclasses import dataclass

from harness.broker.controller.errors import ControllerMovedError
from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import (
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    RolledBack,
    Set,
    Stat,
    ZooKeeper,
    ZooKeeperError,
)
from harness.broker.zookeeper.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    ControllerZnode,
    MalformedZnode,
    decode_controller_epoch,
    encode_controller_epoch,
)
from harness.events import ControllerElected

log = logging.getLogger(__name__)

NO_CONTROLLER = -1
INITIAL_EPOCH = 0
"""Initial value of `/controller_epoch`; the first controller has epoch 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerEpoch:
    """A controller's epoch."""

    value: int
    zk_version: int
    """Version of `/controller_epoch`; all ZooKeeper writes of this controller are fenced with it."""


async def read_controller(zk: ZooKeeper) -> int:
    """Return the id of the broker in `/controller`, or -1; invalid content names none, as in Kafka."""
    try:
        data, _ = await zk.get(CONTROLLER)
        return ControllerZnode.decode(data).broker_id
    except NoNode:
        return NO_CONTROLLER
    except MalformedZnode as error:
        log.error("controller.ignored error=%s", error)
        return NO_CONTROLLER


async def register_and_increment(zk: ZooKeeper, znode: ControllerZnode, *, state_log: StateLog) -> ControllerEpoch:
    """Make this broker the controller and return its epoch.

    Raises:
        ControllerMovedError: another broker was faster.
    """
    epoch, version = await _read_or_create_epoch(zk)
    wanted = epoch + 1
    created, written = await zk.multi(
        [
            Create(path=CONTROLLER, data=znode.encode(), ephemeral=True),
            Set(path=CONTROLLER_EPOCH, data=encode_controller_epoch(wanted), version=version),
        ]
    )
    if isinstance(written, Stat):
        won = ControllerEpoch(value=wanted, zk_version=written.version)
    elif isinstance(created, NodeExists) or isinstance(written, BadVersion):
        won = await _read_back(zk, znode.broker_id, wanted)
    else:
        error = written if isinstance(created, RolledBack) else created
        raise error if isinstance(error, ZooKeeperError) else ZooKeeperError(f"election multi answered {error!r}")
    state_log.emit(ControllerElected(controller_epoch=won.value, epoch_zk_version=won.zk_version))
    return won


async def _read_or_create_epoch(zk: ZooKeeper) -> tuple[int, int]:
    try:
        data, stat = await zk.get(CONTROLLER_EPOCH)
    except NoNode:
        try:
            _, stat = await zk.create(CONTROLLER_EPOCH, encode_controller_epoch(INITIAL_EPOCH))
        except NodeExists:
            data, stat = await zk.get(CONTROLLER_EPOCH)
        else:
            return INITIAL_EPOCH, stat.version
    return decode_controller_epoch(data), stat.version


async def _read_back(zk: ZooKeeper, broker_id: int, wanted: int) -> ControllerEpoch:
    """Check whether a failed multi had been carried out, with its answer lost with the connection."""
    holder = await read_controller(zk)
    data, stat = await zk.get(CONTROLLER_EPOCH)
    if holder == broker_id and decode_controller_epoch(data) == wanted:
        return ControllerEpoch(value=wanted, zk_version=stat.version)
    raise ControllerMovedError(f"broker {holder} is controller with epoch {decode_controller_epoch(data)}")
