"""Writes run folders as a real run leaves them: one leader change in the middle, nothing lost."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    ControlledPartition,
    ControllerElected,
    ControlReceive,
    Election,
    Event,
    FetchResponse,
    HighWatermark,
    PartitionState,
    ProduceResponse,
    ZkWrite,
    encode,
)
from harness.store.folder import RunFolder
from harness.store.history import (
    InjectionStep,
    JournalEntry,
    JsonlWriter,
    Operation,
    OpKind,
    OpType,
    Record,
    ReplicaRecord,
    ReplicaState,
    ZnodeChange,
)

MS = 1_000_000
WALL_AHEAD_NS = 1_700_000_000_000_000_000
BROKERS = (1, 2, 3)
TOPIC = "orders"


@dataclass
class Clock:
    now_ns: int = 1_000 * MS

    def tick(self, ms: float = 1.0) -> int:
        self.now_ns += int(ms * MS)
        return self.now_ns


@dataclass
class RunWriter:
    """Low level: one method a kind of line."""

    folder: RunFolder
    clock: Clock = field(default_factory=Clock)
    zxid: int = 100
    _writers: dict[Path, JsonlWriter] = field(default_factory=dict)
    _seqs: dict[int, Any] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    _indexes: dict[str, Iterator[int]] = field(default_factory=dict)

    def writer(self, path: Path) -> JsonlWriter:
        if path not in self._writers:
            self._writers[path] = JsonlWriter(path)
        return self._writers[path]

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def event(self, broker: int, event: Event) -> None:
        seq = self._seqs.setdefault(broker, itertools.count())
        common = {
            "ts": self.clock.now_ns + WALL_AHEAD_NS,
            "mono": self.clock.now_ns,
            "seq": next(seq),
            "broker": broker,
            "inc": f"inc-{broker}",
            "session": f"0x10{broker}",
            "broker_epoch": 10 + broker,
        }
        path = self.folder.state_change_log(broker)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.writer(path).write(json.loads(encode(event, common)))

    def znode(self, path: str, data: str, *, multi: bool = False, session: str = "0x101", owner: str = "") -> int:
        if not multi:
            self.zxid += 1
        kind = "set" if path in self._versions else "create"
        self._versions[path] = self._versions.get(path, -1) + 1
        self.writer(self.folder.zookeeper).write(
            ZnodeChange(
                zxid=self.zxid,
                time_ms=(self.clock.now_ns + WALL_AHEAD_NS) // MS,
                type=kind,
                path=path,
                data=data,
                version=self._versions[path],
                session=session,
                ephemeral_owner=owner,
                source="observer",
            )
        )
        return self._versions[path]

    def operation(self, process: str, kind: OpKind, type_: OpType, index: int, **fields: Any) -> None:
        self.writer(self.folder.operations_of(process)).write(
            Operation(index=index, time_ns=self.clock.now_ns, process=process, type=type_, kind=kind, **fields)
        )

    def index(self, process: str) -> int:
        return next(self._indexes.setdefault(process, itertools.count()))

    def forget(self, path: str) -> None:
        """Let the znode be created anew."""
        del self._versions[path]

    def skip_seq(self, broker: int) -> None:
        """Lose one line of a broker."""
        next(self._seqs[broker])

    def raw(self, path: Path, text: str) -> None:
        """Append whatever text, as a killed writer or a broken disk leaves it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def write_intact_run(root: Path, *, records: int = 40, partitions: int = 1, batch: int = 5) -> RunFolder:
    """Broker 1 leads every partition, dies half-way, broker 2 takes over, broker 1 comes back; all is read and kept."""
    folder = RunFolder(root)
    run = _IntactRun(RunWriter(folder), records=records, partitions=partitions, batch=batch)
    run.write()
    run.out.close()
    return folder


@dataclass
class _IntactRun:
    out: RunWriter
    records: int
    partitions: int
    batch: int
    logs: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """Partition to (leader epoch, value) by offset."""
    states: dict[int, PartitionState] = field(default_factory=dict)
    """By partition, as the controller last decided."""

    def write(self) -> None:
        self.logs = {partition: [] for partition in range(self.partitions)}
        self._start()
        half = self.records // self.batch // 2
        for number in range(half):
            self._produce(number, leader=1, epoch=0, isr=[1, 2, 3])
        self._fail_over()
        for number in range(half, self.records // self.batch):
            self._produce(number, leader=2, epoch=1, isr=[2, 3] if number < half + 2 else [2, 3, 1])
        self._rejoin()
        self._consume()
        self._dump()

    def _start(self) -> None:
        out = self.out
        for broker in BROKERS:
            out.event(broker, BrokerStart(config_digest="d", clean_marker=True, planted_bugs=[]))
            out.znode(f"/brokers/ids/{broker}", "{}", owner=f"0x10{broker}")
            out.event(broker, BrokerRegistered(czxid=out.zxid))
        out.znode("/controller_epoch", "0")
        out.zxid += 1
        out.znode("/controller", '{"version":1,"brokerid":3,"timestamp":"1"}', multi=True, owner="0x103")
        version = out.znode("/controller_epoch", "1", multi=True)
        out.event(3, ControllerElected(controller_epoch=1, epoch_zk_version=version))
        assignment = ",".join(f'"{partition}":[1,2,3]' for partition in range(self.partitions))
        out.znode(f"/brokers/topics/{TOPIC}", f'{{"version":2,"partitions":{{{assignment}}}}}')
        for partition in range(self.partitions):
            self._state(partition, leader=1, epoch=0, isr=[1, 2, 3], by="controller", writer=3)
            self._lead(partition, leader=1, epoch=0, isr=[1, 2, 3])

    def _fail_over(self) -> None:
        out = self.out
        for step, wait_ms in (
            (InjectionStep.INTENDED, 1),
            (InjectionStep.INJECTED, 1),
            (InjectionStep.CONFIRMED, 5),
            (InjectionStep.HEALED, 900),
        ):
            out.clock.tick(wait_ms)
            out.writer(out.folder.journal).write(
                JournalEntry(
                    time_ns=out.clock.now_ns,
                    injection=0,
                    fault="kill",
                    step=step,
                    targets=("1",),
                    parameters={"signal": "KILL"},
                    detail=f"{step.value} it",
                )
            )
        for partition in range(self.partitions):
            self._state(partition, leader=2, epoch=1, isr=[2, 3], by="controller", writer=3)
            self._lead(partition, leader=2, epoch=1, isr=[2, 3])

    def _rejoin(self) -> None:
        for partition in range(self.partitions):
            self._state(partition, leader=2, epoch=1, isr=[2, 3, 1], by="leader", writer=2)

    def _state(self, partition: int, *, leader: int, epoch: int, isr: list[int], by: str, writer: int) -> None:
        path = f"/brokers/topics/{TOPIC}/partitions/{partition}/state"
        data = (
            f'{{"controller_epoch":1,"leader":{leader},"version":1,"leader_epoch":{epoch},'
            f'"isr":[{",".join(map(str, isr))}]}}'
        )
        version = self.out.znode(path, data)
        self.out.event(
            writer,
            ZkWrite(
                path=path,
                op="set" if version else "create",
                expected_version=version - 1,
                result="ok",
                new_version=version,
                by=by,
                controller_epoch=1,
            ),
        )
        if by == "controller":
            before = self.states.get(partition)
            state = PartitionState(leader=leader, leader_epoch=epoch, isr=isr, zk_version=version, controller_epoch=1)
            self.states[partition] = state
            self.out.event(
                writer,
                Election(
                    topic=TOPIC,
                    partition=partition,
                    strategy="offline" if version else "initialize",
                    trigger="test",
                    controller_epoch=1,
                    previous=before,
                    online=isr,
                    shutting_down=[],
                    assigned=[1, 2, 3],
                    profile="2.5",
                    unclean_allowed=False,
                    unclean=False,
                    result=state,
                    error="",
                ),
            )

    def _lead(self, partition: int, *, leader: int, epoch: int, isr: list[int]) -> None:
        end = len(self.logs[partition])
        for broker in isr:
            self._tell(broker, partition, leader=leader, epoch=epoch, isr=isr)
            if broker == leader:
                self.out.event(
                    broker,
                    BecomeLeader(
                        topic=TOPIC,
                        partition=partition,
                        leader_epoch=epoch,
                        previous_leader_epoch=epoch - 1,
                        log_start_offset=0,
                        high_watermark=end,
                        log_end_offset=end,
                        isr=isr,
                        zk_version=epoch,
                    ),
                )
            else:
                self.out.event(
                    broker,
                    BecomeFollower(
                        topic=TOPIC,
                        partition=partition,
                        leader=leader,
                        leader_epoch=epoch,
                        previous_leader_epoch=epoch - 1,
                        log_start_offset=0,
                        high_watermark=end,
                        log_end_offset=end,
                    ),
                )

    def _tell(self, broker: int, partition: int, *, leader: int, epoch: int, isr: list[int]) -> None:
        asked = ControlledPartition(
            topic=TOPIC,
            partition=partition,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            zk_version=epoch,
            replicas=[1, 2, 3],
            verdict="applied",
        )
        self.out.event(
            broker,
            ControlReceive(
                api="LeaderAndIsr",
                sender=3,
                controller_epoch=1,
                request_broker_epoch=10 + broker,
                verdict="applied",
                partitions=[asked],
            ),
        )

    def _produce(self, number: int, *, leader: int, epoch: int, isr: list[int]) -> None:
        out, partition = self.out, number % self.partitions
        log = self.logs[partition]
        base, last = len(log), len(log) + self.batch - 1
        values = [f"p0-{number}-{position}" for position in range(self.batch)]
        indexes = [out.index("p0") for _ in values]
        for index, value in zip(indexes, values, strict=True):
            out.operation(
                "p0", OpKind.SEND, OpType.INVOKE, index, topic=TOPIC, partition=partition, key="k", value=value
            )
        out.clock.tick()
        log += [(epoch, value) for value in values]
        for broker in isr:
            out.event(
                broker,
                Append(
                    topic=TOPIC,
                    partition=partition,
                    role="leader" if broker == leader else "follower",
                    leader_epoch=epoch,
                    base_offset=base,
                    last_offset=last,
                    batch_epoch=epoch,
                    crc=number,
                    producer_id=-1,
                    producer_epoch=-1,
                    base_sequence=-1,
                    isr_size=len(isr),
                ),
            )
            out.event(
                broker,
                HighWatermark(
                    topic=TOPIC,
                    partition=partition,
                    role="leader" if broker == leader else "follower",
                    leader_epoch=epoch,
                    old=base,
                    new=last + 1,
                    log_end_offset=last + 1,
                    isr=isr if broker == leader else [],
                    zk_version=epoch,
                    cause="test",
                ),
            )
        out.event(
            leader,
            ProduceResponse(
                correlation_id=number,
                client="p0",
                topic=TOPIC,
                partition=partition,
                acks=-1,
                base_offset=base,
                last_offset=last,
                error=0,
                isr_size=len(isr),
                high_watermark=last + 1,
                leader_epoch=epoch,
                duration_ms=1.0,
            ),
        )
        out.clock.tick()
        for position, (index, value) in enumerate(zip(indexes, values, strict=True)):
            out.operation(
                "p0",
                OpKind.SEND,
                OpType.OK,
                index,
                topic=TOPIC,
                partition=partition,
                key="k",
                value=value,
                offset=base + position,
            )

    def _consume(self) -> None:
        out = self.out
        for partition, log in self.logs.items():
            for start in range(0, len(log), 500):
                records = tuple(
                    Record(topic=TOPIC, partition=partition, offset=offset, value=value, leader_epoch=epoch)
                    for offset, (epoch, value) in list(enumerate(log))[start : start + 500]
                )
                index = out.index("c0")
                out.operation("c0", OpKind.POLL, OpType.INVOKE, index, mode="assign")
                out.event(
                    2,
                    FetchResponse(
                        topic=TOPIC,
                        partition=partition,
                        replica=-1,
                        fetch_offset=start,
                        current_leader_epoch=1,
                        high_watermark=len(log),
                        last_offset=records[-1].offset,
                        leader_epoch=1,
                    ),
                )
                out.clock.tick()
                out.operation("c0", OpKind.POLL, OpType.OK, index, mode="assign", records=records)
            for kind in (OpKind.END_OFFSET, OpKind.COMMIT, OpKind.FETCH_COMMITTED):
                index = out.index("c0")
                where = {"topic": TOPIC, "partition": partition, "group": "g0"}
                asked = {"offset": len(log)} if kind is OpKind.COMMIT else {}
                out.operation("c0", kind, OpType.INVOKE, index, **where, **asked)
                out.clock.tick()
                out.operation("c0", kind, OpType.OK, index, **where, offset=len(log))

    def _dump(self) -> None:
        out = self.out
        for broker in BROKERS:
            for partition, log in self.logs.items():
                path = out.folder.replica_dump(broker, TOPIC, partition)
                epochs = tuple(
                    (epoch, next(o for o, (e, _) in enumerate(log) if e == epoch)) for epoch in {e for e, _ in log}
                )
                out.writer(path).write(
                    ReplicaState(
                        broker=broker,
                        topic=TOPIC,
                        partition=partition,
                        log_start_offset=0,
                        log_end_offset=len(log),
                        high_watermark=len(log),
                        recovery_point=len(log),
                        leader_epochs=epochs,
                        damage="",
                    )
                )
                for offset, (epoch, value) in enumerate(log):
                    out.writer(path).write(
                        ReplicaRecord(
                            broker=broker,
                            topic=TOPIC,
                            partition=partition,
                            offset=offset,
                            leader_epoch=epoch,
                            timestamp_ms=0,
                            key="k",
                            value=value,
                            digest=f"digest of {value}",
                            producer_id=-1,
                            producer_epoch=-1,
                            sequence=-1,
                        )
                    )
