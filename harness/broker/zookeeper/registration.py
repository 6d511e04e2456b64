"""A broker's registration in ZooKeeper: the paths that all brokers need, the cluster's id, its own registration."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import Create, NodeExists, NoNode, OpResult, Set, Stat, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.znodes import (
    BROKER_IDS,
    CLUSTER_ID,
    PERSISTENT_PATHS,
    BrokerRegistration,
    broker_path,
    decode_cluster_id,
    encode_cluster_id,
)
from harness.events import BrokerRegistered

_MAX_TRIES = 10


class BrokerIdTaken(Exception):
    """Another session holds the registration of this broker id."""


async def ensure_persistent_paths(zk: ZooKeeper) -> None:
    """Create the paths that every broker expects; existing ones are left alone."""
    paths = {parent: None for path in PERSISTENT_PATHS for parent in _with_parents(path)}
    for path in paths:
        await _create_if_absent(zk, path, b"")


def _with_parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


async def read_or_create_cluster_id(zk: ZooKeeper, proposed: str) -> str:
    """Return the id of this cluster: the stored one, or `proposed` when this broker is the first."""
    await _create_if_absent(zk, CLUSTER_ID, encode_cluster_id(proposed))
    data, _ = await zk.get(CLUSTER_ID)
    return decode_cluster_id(data)


async def register_broker(
    zk: ZooKeeper,
    registration: BrokerRegistration,
    *,
    previous_session_id: int,
    state_log: StateLog,
    rules: ProtocolRules,
) -> int:
    """Create `/brokers/ids/<id>` and return its czxid, which is the broker epoch (KIP-380).

    Created empty and set in one multi, as only the set's answer has the stat. A registration left by
    `previous_session_id` (0 for none) is replaced, one of this very session is kept.

    Raises:
        BrokerIdTaken: the registration belongs to any other session.
    """
    path = broker_path(registration.broker_id)
    for _ in range(_MAX_TRIES):
        created = await zk.multi(
            [Create(path=path, data=b"", ephemeral=True), Set(path=path, data=registration.encode(), version=0)]
        )
        stat = (
            created[1]
            if isinstance(created[1], Stat)
            else await _existing(zk, path, created, previous_session_id, rules)
        )
        if stat is not None:
            state_log.registered(stat.czxid)
            state_log.emit(BrokerRegistered(czxid=stat.czxid))
            return stat.czxid
    raise BrokerIdTaken(f"{path} came and went {_MAX_TRIES} times")


async def _existing(
    zk: ZooKeeper, path: str, created: Sequence[OpResult], previous_session_id: int, rules: ProtocolRules
) -> Stat | None:
    """Return the stat of a registration that is ours already, or None to retry the creation."""
    if not isinstance(created[0], NodeExists):
        raise ZooKeeperError(f"{path}: cannot register: {created}")
    stat = await zk.exists(path)
    if stat is None or stat.ephemeral_owner == zk.session_id or not rules.registrations_are_of_this_session:
        return stat
    if stat.ephemeral_owner != previous_session_id:
        owner = f"{path} belongs to session 0x{stat.ephemeral_owner:x}, this is 0x{zk.session_id:x}"
        raise BrokerIdTaken(f"this broker id is taken: {owner}")
    with contextlib.suppress(NoNode):
        await zk.delete(path)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBroker:
    """A registered broker."""

    registration: BrokerRegistration
    epoch: int
    """The registration's czxid (KIP-380)."""


async def read_live_brokers(zk: ZooKeeper) -> dict[int, LiveBroker]:
    """Return all registered brokers by id; arms the child handler of `/brokers/ids`."""
    broker_ids = sorted(int(name) for name in await zk.children(BROKER_IDS) if name.isdecimal())
    brokers = await all_of(read_live_broker(zk, broker_id) for broker_id in broker_ids)
    return {broker_id: broker for broker_id, broker in zip(broker_ids, brokers, strict=True) if broker is not None}


async def read_live_broker(zk: ZooKeeper, broker_id: int) -> LiveBroker | None:
    """Return a registered broker, or None when there is no such one; arms the node handler of its registration."""
    try:
        data, stat = await zk.get(broker_path(broker_id))
    except NoNode:
        return None
    return LiveBroker(registration=BrokerRegistration.decode(broker_id, data), epoch=stat.czxid)


async def _create_if_absent(zk: ZooKeeper, path: str, data: bytes) -> None:
    with contextlib.suppress(NodeExists):
        await zk.create(path, data)
