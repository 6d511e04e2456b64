"""What do brokers and ZooKeeper write that keep every promise? The cluster of a synthetic history."""

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any, BinaryIO, Protocol

from harness import events
from harness.store.history import JournalEntry, Line, Operation, Record, ReplicaRecord, ReplicaState, ZnodeChange

BROKERS = (0, 1, 2)
TICK_NS = 50_000
"""Between any two lines."""
WALL_CLOCK_NS = 1_800_000_000_000_000_000
"""Wall clock minus monotonic clock."""
HEAD_BYTES = 512
"""Room for a replica's state, which is known last and stands first in its dump."""


# `asdict` copies every value, which is too slow for a million lines.
_NAMES: dict[type, tuple[str, ...]] = {
    kind: tuple(f.name for f in fields(kind))
    for kind in (JournalEntry, Operation, Record, ReplicaRecord, ReplicaState, ZnodeChange, events.PartitionState)
}


def _as_object(value: object) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _NAMES[type(value)]}


_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_as_object).encode


def encoded(line: Line) -> bytes:
    """Return one line of a history file."""
    return _to_json(line).encode() + b"\n"


class Lines(Protocol):
    """Takes the lines of one file, one after the other."""

    def write(self, line: bytes, /) -> object:
        """Append a line."""
        ...


@dataclass(slots=True)
class Broker:
    """One broker's state-change log."""

    id: int
    file: Lines
    incarnation: int = 0
    seq: int = 0

    def log(self, time_ns: int, event: events.Event) -> None:
        """Write one line."""
        common = {
            "ts": time_ns + WALL_CLOCK_NS,
            "mono": time_ns,
            "seq": self.seq,
            "broker": self.id,
            "inc": f"{self.id}-{self.incarnation}",
            "session": f"0x{self.id + 1:x}",
            "broker_epoch": self.id + 1,
        }
        self.seq += 1
        self.file.write(events.encode(event, common))

    def start(self, time_ns: int) -> None:
        """Write the first line of a new process."""
        self.incarnation, self.seq = self.incarnation + 1, 0
        self.log(time_ns, events.BrokerStart(config_digest="", clean_marker=False, planted_bugs=[]))


@dataclass(slots=True)
class Partition:
    """One partition as all replicas have it, and the dump of each."""

    topic: str
    number: int
    dumps: list[BinaryIO]
    assigned: list[int]
    isr: list[int]
    leader: int
    stride: int = 0
    """Distance of two batches' first offsets; 0 for none but their records."""
    leader_epoch: int = 0
    zk_version: int = 0
    log_end_offset: int = 0
    batches: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    unread: list[Record] = field(default_factory=list)
    """What no consumer has read yet."""

    @property
    def followers(self) -> list[int]:
        """The ISR without its leader."""
        return [broker for broker in self.isr if broker != self.leader]

    @property
    def named(self) -> dict[str, Any]:
        """What lines of a state-change log call it."""
        return {"topic": self.topic, "partition": self.number, "leader_epoch": self.leader_epoch}

    @property
    def path(self) -> str:
        """Of the state znode."""
        return f"/brokers/topics/{self.topic}/partitions/{self.number}/state"

    def append(self, records: list[tuple[str, str]], time_ns: int) -> tuple[int, int]:
        """Write a batch of keys and values to every replica's dump; return its first and last offset."""
        base = self.batches * self.stride or self.log_end_offset
        for offset, (key, value) in enumerate(records, start=base):
            digest = hashlib.sha256(f"{key} {value}".encode()).hexdigest()
            for broker, dump in zip(BROKERS, self.dumps, strict=True):
                record = ReplicaRecord(
                    **self.named,
                    broker=broker,
                    offset=offset,
                    timestamp_ms=(time_ns + WALL_CLOCK_NS) // 1_000_000,
                    key=key,
                    value=value,
                    digest=digest,
                    producer_id=-1,
                    producer_epoch=-1,
                    sequence=-1,
                )
                dump.write(encoded(record))
        self.batches += 1
        self.log_end_offset = base + len(records)
        return base, self.log_end_offset - 1

    def state(self, broker: int) -> ReplicaState:
        """Return the first line of one replica's dump."""
        return ReplicaState(
            broker=broker,
            topic=self.topic,
            partition=self.number,
            log_start_offset=0,
            log_end_offset=self.log_end_offset,
            high_watermark=self.log_end_offset,
            recovery_point=self.log_end_offset,
            leader_epochs=tuple(self.epochs),
            damage="",
        )


@dataclass(slots=True)
class Cluster:
    """Brokers, ZooKeeper, and the clock by which all lines are written."""

    brokers: list[Broker]
    zookeeper: Lines
    now_ns: int = 1_000_000_000
    zxid: int = 0
    controller: int = 0
    controller_epoch: int = 0

    def tick(self) -> int:
        """Return the next instant."""
        self.now_ns += TICK_NS
        return self.now_ns

    def log(self, broker: int, event: events.Event) -> None:
        """One broker writes a line to its state-change log."""
        self.brokers[broker].log(self.tick(), event)

    def begin(self) -> None:
        """Brokers start, and one is elected controller."""
        for broker in self.brokers:
            broker.start(self.tick())
            self._znode("create", f"/brokers/ids/{broker.id}", "{}", 0, owner=broker.id)
            broker.log(self.tick(), events.BrokerRegistered(czxid=self.zxid))
        self._znode("create", "/controller_epoch", "0", 0)
        self.elect_controller(0)

    def create_topic(self, partitions: list[Partition]) -> None:
        """The controller makes a topic and its partitions' first leaders."""
        assignment = {str(partition.number): partition.isr for partition in partitions}
        self._znode("create", f"/brokers/topics/{partitions[0].topic}", json.dumps({"partitions": assignment}), 0)
        for partition in partitions:
            self._write_state("create", partition, by="controller")
            self._lead(partition, previous_epoch=-1)

    def rejoin(self, partition: Partition, broker: int) -> None:
        """The leader takes a broker into the ISR again."""
        partition.isr = [*partition.isr, broker]
        partition.zk_version += 1
        self._write_state("set", partition, by="leader")

    def replicate(self, partition: Partition, records: list[tuple[str, str]]) -> tuple[int, int]:
        """Append a batch on the leader, then on the followers, then raise every high watermark."""
        before = partition.log_end_offset
        base, last = partition.append(records, self.tick())
        self._appended(partition, partition.leader, base, last)
        for follower in partition.followers:
            self.fetched(partition, follower, before, last)
            self._appended(partition, follower, base, last)
        for broker in (partition.leader, *partition.followers):
            leads = broker == partition.leader
            self.log(
                broker,
                events.HighWatermark(
                    **partition.named,
                    role="leader" if leads else "follower",
                    old=before,
                    new=last + 1,
                    log_end_offset=last + 1,
                    isr=partition.isr if leads else [],
                    zk_version=partition.zk_version,
                    cause="fetch",
                ),
            )
        return base, last

    def _appended(self, partition: Partition, broker: int, base: int, last: int) -> None:
        leads = broker == partition.leader
        self.log(
            broker,
            events.Append(
                **partition.named,
                role="leader" if leads else "follower",
                base_offset=base,
                last_offset=last,
                batch_epoch=partition.leader_epoch,
                crc=0,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                isr_size=len(partition.isr) if leads else 0,
                acks=-1 if leads else None,
            ),
        )

    def fetched(self, partition: Partition, replica: int, fetch_offset: int, last: int) -> None:
        """The leader hands records out, to replica -1 where it is a consumer."""
        self.log(
            partition.leader,
            events.FetchResponse(
                **partition.named,
                replica=replica,
                fetch_offset=fetch_offset,
                current_leader_epoch=partition.leader_epoch,
                high_watermark=last + 1,
                last_offset=last,
            ),
        )

    def elect_controller(self, broker: int) -> None:
        """One transaction gives `/controller` to a broker and raises the epoch."""
        if self.controller_epoch:
            self._znode("delete", "/controller", "", -1)
        self.controller, self.controller_epoch = broker, self.controller_epoch + 1
        self._znode("create", "/controller", json.dumps({"version": 1, "brokerid": broker}), 0, owner=broker)
        self.zxid -= 1
        self._znode("set", "/controller_epoch", str(self.controller_epoch), self.controller_epoch)
        self.log(
            broker,
            events.ControllerElected(controller_epoch=self.controller_epoch, epoch_zk_version=self.controller_epoch),
        )

    def elect_leader(self, partition: Partition) -> None:
        """The next member of the ISR leads, and the old leader leaves it."""
        before = self._partition_state(partition)
        partition.isr = partition.followers
        partition.leader = next(broker for broker in partition.assigned if broker in partition.isr)
        partition.leader_epoch += 1
        partition.zk_version += 1
        partition.epochs.append((partition.leader_epoch, partition.log_end_offset))
        self._write_state("set", partition, by="controller")
        self.log(
            self.controller,
            events.Election(
                topic=partition.topic,
                partition=partition.number,
                strategy="offline",
                trigger="broker change",
                controller_epoch=self.controller_epoch,
                previous=before,
                online=partition.isr,
                shutting_down=[],
                assigned=partition.assigned,
                profile="2.5",
                unclean_allowed=False,
                unclean=False,
                result=self._partition_state(partition),
                error="",
            ),
        )
        self._lead(partition, previous_epoch=partition.leader_epoch - 1)

    def _partition_state(self, partition: Partition) -> events.PartitionState:
        return events.PartitionState(
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            zk_version=partition.zk_version,
            controller_epoch=self.controller_epoch,
        )

    def _lead(self, partition: Partition, previous_epoch: int) -> None:
        """The leader and the followers of a new epoch say so."""
        fields_of_both: dict[str, Any] = {
            **partition.named,
            "previous_leader_epoch": previous_epoch,
            "log_start_offset": 0,
            "high_watermark": partition.log_end_offset,
            "log_end_offset": partition.log_end_offset,
        }
        for broker in partition.isr:
            self._receive(broker, partition)
        self.log(
            partition.leader, events.BecomeLeader(isr=partition.isr, zk_version=partition.zk_version, **fields_of_both)
        )
        for follower in partition.followers:
            self.log(follower, events.BecomeFollower(leader=partition.leader, **fields_of_both))

    def _receive(self, broker: int, partition: Partition) -> None:
        """The controller's request reaches a broker."""
        controlled = events.ControlledPartition(
            **partition.named,
            leader=partition.leader,
            isr=partition.isr,
            zk_version=partition.zk_version,
            replicas=partition.assigned,
            verdict="applied",
        )
        self.log(
            broker,
            events.ControlReceive(
                api="LeaderAndIsr",
                sender=self.controller,
                controller_epoch=self.controller_epoch,
                request_broker_epoch=-1,
                verdict="applied",
                partitions=[controlled],
                live_brokers=None,
            ),
        )

    def _write_state(self, op: str, partition: Partition, *, by: str) -> None:
        state = _as_object(self._partition_state(partition))
        version = state.pop("zk_version")
        self._znode(op, partition.path, json.dumps({"version": 1, **state}), version)
        writer = self.controller if by == "controller" else partition.leader
        self.log(
            writer,
            events.ZkWrite(
                path=partition.path,
                op=op,
                expected_version=version - 1,
                result="ok",
                new_version=version,
                by=by,
                controller_epoch=self.controller_epoch,
            ),
        )

    def _znode(self, type_: str, path: str, data: str, version: int, *, owner: int | None = None) -> None:
        self.zxid += 1
        session = "" if owner is None else f"0x{owner + 1:x}"
        change = ZnodeChange(
            zxid=self.zxid,
            time_ms=(self.tick() + WALL_CLOCK_NS) // 1_000_000,
            type=type_,
            path=path,
            data=data,
            version=version,
            session=session,
            ephemeral_owner=session,
            source="transaction_log",
        )
        self.zookeeper.write(encoded(change))
