"""What does the metadata log make of a cluster, and which changes of znodes would Kafka have made of the same records?

The offset of a record stands for the zxid, the partition epoch for the version of a state znode, the epoch of the
quorum's leader for the controller epoch, the incarnation of a broker's process for its session. A broker that is fenced
has no registration until it is unfenced, as one whose session has ended.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from harness.kraft.records import (
    Bound,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FenceBrokerRecord,
    LeaderChange,
    MetadataEntry,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from harness.kraft.snapshots import Snapshot
from harness.store.history import SNAPSHOT, ZnodeChange
from harness.values import NO_BROKER, TopicPartition
from harness.zookeeper.view import Controller, PartitionView, Registration

SOURCE = "transaction_log"
"""As of what was read from ZooKeeper's: the servers' log of what they decided."""
SAME_LEADER = -2
FENCED, UNFENCED = 1, -1
TOPIC = 2
"""The type of resource whose configuration is a topic's."""
BLOCK = 1000
"""How many producer ids a broker gets at a time (`ProducerIdsBlock`)."""
_SESSION_BITS = (1 << 64) - 1


def session_of(incarnation: UUID) -> str:
    """Return an incarnation as the text that a session has: its lower half, in hexadecimal."""
    return f"0x{incarnation.int & _SESSION_BITS:x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition."""

    view: PartitionView
    eligible: tuple[int, ...] = ()
    """Outside the ISR, but may lead: has all that is committed (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last leader, where the ISR and the eligible replicas are empty: it may lead again (KIP-966)."""


@dataclass(slots=True)
class _Broker:
    epoch: int
    session: str
    registered: bool = True
    """Whether its znode would be there."""
    fenced: bool = True


@dataclass(slots=True)
class MetadataImage:
    """The cluster after the records that were applied."""

    partitions: dict[TopicPartition, Partition] = field(default_factory=dict)
    controller: Controller = field(
        default_factory=lambda: Controller(broker_id=NO_BROKER, controller_epoch=0, session="")
    )
    _brokers: dict[int, _Broker] = field(default_factory=dict)
    _topics: dict[UUID, str] = field(default_factory=dict)
    _configs: dict[str, dict[str, str]] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    """Of the znodes that are there, but for those of partitions' states."""
    _waiting: list[MetadataEntry] | None = None
    """What came since the begin of a transaction; None outside of one."""

    @property
    def registrations(self) -> dict[int, Registration]:
        """The brokers that are not fenced, by id."""
        return {
            broker_id: Registration(broker_id=broker_id, czxid=broker.epoch, session=broker.session)
            for broker_id, broker in sorted(self._brokers.items())
            if not broker.fenced
        }

    @property
    def topics(self) -> set[str]:
        """The names of the topics that there are."""
        return set(self._topics.values())

    def load(self, snapshot: Snapshot) -> Iterator[ZnodeChange]:
        """Take a snapshot in, into an image of nothing; yield the changes that its state stands for."""
        for change in self.apply(snapshot.entries):
            yield replace(change, source=SNAPSHOT)

    def apply(self, entries: Sequence[MetadataEntry]) -> Iterator[ZnodeChange]:
        """Take the records of a batch in; yield the changes that they stand for."""
        for entry in entries:
            if entry.record is Bound.BEGIN:
                self._waiting = []
            elif isinstance(entry.record, Bound):
                together, self._waiting = self._waiting or [], None
                if entry.record is Bound.END:
                    for each in together:
                        yield from self._changes(each)
            elif self._waiting is not None and not isinstance(entry.record, LeaderChange):
                self._waiting.append(entry)
            else:
                yield from self._changes(entry)

    def _changes(self, entry: MetadataEntry) -> Iterator[ZnodeChange]:
        apply = _APPLY.get(type(entry.record))
        if apply is not None:
            yield from apply(self, entry, entry.record)

    # --- controllers and brokers ---

    def _elected(self, entry: MetadataEntry, record: LeaderChange) -> Iterator[ZnodeChange]:
        self._waiting = None  # what an earlier controller did not end, it never will
        self.controller = Controller(broker_id=record.leader_id, controller_epoch=entry.epoch, session="")
        yield self._put(entry, "/controller_epoch", str(entry.epoch))
        if "/controller" in self._versions:
            yield self._deleted(entry, "/controller")
        # As Kafka itself wrote it while a cluster moved away from ZooKeeper (KIP-866).
        leader = {"version": 2, "brokerid": record.leader_id, "kraftControllerEpoch": entry.epoch}
        yield self._put(entry, "/controller", _json(leader))

    def _registered(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        session = session_of(record.incarnation_id)
        before = self._brokers.get(record.broker_id)
        if before is not None and before.session == session:
            before.fenced = record.fenced
            return
        if before is not None and before.registered:
            yield self._deleted(entry, _broker(record.broker_id), owner=before.session)
        self._brokers[record.broker_id] = _Broker(record.broker_epoch, session, fenced=record.fenced)
        yield self._put(entry, _broker(record.broker_id), "{}", owner=session)

    def _unregistered(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        broker = self._brokers.pop(record.broker_id, None)
        if broker is not None and broker.registered:
            yield self._deleted(entry, _broker(record.broker_id), owner=broker.session)

    def _fencing(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        if isinstance(record, BrokerRegistrationChangeRecord):
            broker_id, fenced = record.broker_id, record.fenced
        else:
            broker_id, fenced = record.id, FENCED if isinstance(record, FenceBrokerRecord) else UNFENCED
        broker = self._brokers.get(broker_id)
        if broker is None or fenced not in (FENCED, UNFENCED):
            return
        was_fenced, broker.fenced = broker.fenced, fenced == FENCED
        if broker.fenced and not was_fenced and broker.registered:
            broker.registered = False
            yield self._deleted(entry, _broker(broker_id), owner=broker.session)
        elif not broker.fenced and not broker.registered:
            broker.registered = True
            yield self._put(entry, _broker(broker_id), "{}", owner=broker.session)

    # --- topics ---

    def _topic(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        self._topics[record.topic_id] = record.name
        self._configs[record.name] = {}
        yield self._put(entry, f"/config/topics/{record.name}", _config({}))
        yield self._put(entry, f"/brokers/topics/{record.name}", self._assignment(record.name))

    def _topic_removed(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        name = self._topics.pop(record.topic_id)
        self._configs.pop(name, None)
        for key in sorted(key for key in self.partitions if key[0] == name):
            del self.partitions[key]
            yield _change(entry, "delete", _state_path(key), "", -1)
        yield self._deleted(entry, f"/brokers/topics/{name}")
        yield self._deleted(entry, f"/config/topics/{name}")

    def _configured(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        own = self._configs.get(record.resource_name) if record.resource_type == TOPIC else None
        if own is None:
            return
        own.pop(record.name, None)
        if record.value is not None:
            own[record.name] = record.value
        yield self._put(entry, f"/config/topics/{record.resource_name}", _config(own))

    def _assignment(self, topic: str) -> str:
        own = {str(key[1]): list(each.view.assignment) for key, each in self.partitions.items() if key[0] == topic}
        return _json({"version": 1, "partitions": own})

    # --- partitions ---

    def _partition(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        key = self._topics[record.topic_id], record.partition_id
        there = key in self.partitions
        view = PartitionView(
            topic=key[0],
            partition=key[1],
            assignment=tuple(record.replicas),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            isr=tuple(record.isr),
            controller_epoch=entry.epoch,
            zk_version=record.partition_epoch,
        )
        self.partitions[key] = Partition(
            view=view,
            eligible=tuple(record.eligible_leader_replicas or ()),
            last_known=tuple(record.last_known_elr or ()),
        )
        yield self._put(entry, f"/brokers/topics/{key[0]}", self._assignment(key[0]))
        yield self._state(entry, key, "set" if there else "create")

    def _partition_changed(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        key = self._topics[record.topic_id], record.partition_id
        before = self.partitions[key]
        decided = record.leader != SAME_LEADER
        eligible, last_known, replicas = record.eligible_leader_replicas, record.last_known_elr, record.replicas
        view = replace(
            before.view,
            zk_version=before.view.zk_version + 1,
            isr=before.view.isr if record.isr is None else tuple(record.isr),
            assignment=before.view.assignment if replicas is None else tuple(replicas),
            leader=record.leader if decided else before.view.leader,
            leader_epoch=before.view.leader_epoch + decided,
            controller_epoch=entry.epoch,
        )
        self.partitions[key] = Partition(
            view=view,
            eligible=before.eligible if eligible is None else tuple(eligible),
            last_known=before.last_known if last_known is None else tuple(last_known),
        )
        if replicas is not None:
            yield self._put(entry, f"/brokers/topics/{key[0]}", self._assignment(key[0]))
        yield self._state(entry, key, "set")

    def _eligible_cleared(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        for key, partition in sorted(self.partitions.items()):
            if record.topic_name in ("", key[0]) and (partition.eligible or partition.last_known):
                view = replace(partition.view, zk_version=partition.view.zk_version + 1)
                self.partitions[key] = Partition(view=view)
                yield self._state(entry, key, "set")

    def _state(self, entry: MetadataEntry, key: TopicPartition, type_: str) -> ZnodeChange:
        partition = self.partitions[key]
        view = partition.view
        state = {
            "controller_epoch": view.controller_epoch,
            "leader": view.leader,
            "version": 1,
            "leader_epoch": view.leader_epoch,
            "isr": list(view.isr),
            "eligible": list(partition.eligible),
            "last_known": list(partition.last_known),
        }
        return _change(entry, type_, _state_path(key), _json(state), view.zk_version)

    # --- the rest ---

    def _block(self, entry: MetadataEntry, record: Any) -> Iterator[ZnodeChange]:
        last = record.next_producer_id - 1
        block = {"version": 1, "broker": record.broker_id, "block_start": str(last - BLOCK + 1), "block_end": str(last)}
        yield self._put(entry, "/latest_producer_id_block", _json(block))

    def _put(self, entry: MetadataEntry, path: str, data: str, owner: str = "") -> ZnodeChange:
        there = path in self._versions
        self._versions[path] = self._versions[path] + 1 if there else 0
        return _change(entry, "set" if there else "create", path, data, self._versions[path], owner)

    def _deleted(self, entry: MetadataEntry, path: str, owner: str = "") -> ZnodeChange:
        del self._versions[path]
        return _change(entry, "delete", path, "", -1, owner)


_APPLY: dict[type, Callable[[MetadataImage, MetadataEntry, Any], Iterator[ZnodeChange]]] = {
    LeaderChange: MetadataImage._elected,
    RegisterBrokerRecord: MetadataImage._registered,
    UnregisterBrokerRecord: MetadataImage._unregistered,
    FenceBrokerRecord: MetadataImage._fencing,
    UnfenceBrokerRecord: MetadataImage._fencing,
    BrokerRegistrationChangeRecord: MetadataImage._fencing,
    TopicRecord: MetadataImage._topic,
    RemoveTopicRecord: MetadataImage._topic_removed,
    ConfigRecord: MetadataImage._configured,
    PartitionRecord: MetadataImage._partition,
    PartitionChangeRecord: MetadataImage._partition_changed,
    ClearElrRecord: MetadataImage._eligible_cleared,
    ProducerIdsRecord: MetadataImage._block,
}


def _change(entry: MetadataEntry, type_: str, path: str, data: str, version: int, owner: str = "") -> ZnodeChange:
    return ZnodeChange(
        zxid=entry.offset,
        time_ms=entry.time_ms,
        type=type_,
        path=path,
        data=data,
        version=version,
        session="",
        ephemeral_owner=owner,
        source=SOURCE,
    )


def _broker(broker_id: int) -> str:
    return f"/brokers/ids/{broker_id}"


def _state_path(key: TopicPartition) -> str:
    return f"/brokers/topics/{key[0]}/partitions/{key[1]}/state"


def _config(own: dict[str, str]) -> str:
    return _json({"version": 1, "config": own})


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
