"""What does a history of any length look like in which every promise holds? A run folder for benchmarks.

It has the shape of a smoke run: of its operations 81 % are sends, 11 % polls and 8 % commits; three times a broker is
taken from its lead and comes back. Lines are streamed to their files, so memory does not grow with the history.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness import events, phases
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep, JournalEntry, Operation, OpKind, OpType, Record
from harness.store.seal import seal
from harness.system.chain import Link, chained, end
from harness.values import OFFSETS_TOPIC
from tools.synthetic_cluster import BROKERS, HEAD_BYTES, Broker, Cluster, Lines, Partition, encoded

TOPIC = "orders"
PARTITIONS, PRODUCERS, CONSUMERS = 3, 4, 2
BATCHES_A_CYCLE, RECORDS_A_BATCH = 12, 5
POLLS_A_CYCLE = BATCHES_A_CYCLE // PARTITIONS
OPERATIONS_A_CYCLE = BATCHES_A_CYCLE * RECORDS_A_BATCH + CONSUMERS * (POLLS_A_CYCLE + PARTITIONS)
SPARSE_END_OFFSET = 2**40
OUTAGE_NS = 3_000_000_000
EXPIRE_SESSION = "expire-session"


def generate(
    runs: Path, operations: int, *, sparse: bool = False, clients_alone: bool = False
) -> tuple[RunFolder, int]:
    """Write a history of about so many operations; return its folder and how many there are.

    Args:
        runs: Folder in which the run's own is made.
        operations: How many operations clients carry out, each an invoke and an end.
        sparse: Whether offsets leave gaps, as in a compacted topic, and go up to 2^40.
        clients_alone: Whether brokers, replicas and ZooKeeper leave no evidence; lines are then as others write them,
            without numbers and chains.
    """
    plan = make_plan(load_scenario("smoke"), operations)
    folder = phases.create(load_scenario("smoke"), plan, runs)
    cycles = max(operations // OPERATIONS_A_CYCLE, len(plan.faults) + 1)
    stride = SPARSE_END_OFFSET * PARTITIONS // (cycles * BATCHES_A_CYCLE) if sparse else 0
    faults = {cycles * (n + 1) // (len(plan.faults) + 1): (n, fault.fault) for n, fault in enumerate(plan.faults)}
    with _writing(folder, stride, clients_alone=clients_alone) as history:
        history.begin()
        for cycle in range(cycles):
            if cycle in faults:
                history.disturb(*faults[cycle])
            history.cycle()
        history.end()
    if not clients_alone:
        folder.phases.touch()  # judging logs there, which must not count as damage of a sealed run
        seal(folder)
    return folder, sum(client.operations for client in (*history.producers, *history.consumers))


@dataclass(slots=True)
class _Client:
    """One client process's file."""

    name: str
    file: Lines
    operations: int = 0

    def next_index(self) -> int:
        self.operations += 1
        return self.operations - 1

    def write(self, index: int, type_: OpType, time_ns: int, kind: OpKind, **more: Any) -> None:
        operation = Operation(index=index, time_ns=time_ns, process=self.name, type=type_, kind=kind, **more)
        self.file.write(encoded(operation))


@dataclass(slots=True)
class _History:
    """The clients and the journal beside the cluster."""

    cluster: Cluster
    partitions: list[Partition]
    offsets: Partition
    producers: list[_Client]
    consumers: list[_Client]
    journal: Lines
    sent: int = 0
    batches: int = 0

    @property
    def all_partitions(self) -> list[Partition]:
        return [*self.partitions, self.offsets]

    def begin(self) -> None:
        """The cluster starts, and topics are made."""
        self.cluster.begin()
        self.cluster.create_topic(self.partitions)
        self.cluster.create_topic([self.offsets])

    def cycle(self) -> None:
        """Producers write, consumers read all of it and commit."""
        for number in range(BATCHES_A_CYCLE):
            self._produce(self.partitions[number % PARTITIONS], self.producers[self.batches % PRODUCERS])
            self.batches += 1
            if number % PARTITIONS == PARTITIONS - 1:
                self._poll()
        for consumer in self.consumers:
            self._commit(consumer)

    def disturb(self, injection: int, fault: str) -> None:
        """A fault takes a broker from every lead that it has, and it comes back."""
        cluster = self.cluster
        target = cluster.controller if fault == EXPIRE_SESSION else self.partitions[0].leader
        self._journal(injection, fault, target, InjectionStep.INTENDED, InjectionStep.INJECTED)
        cluster.now_ns += OUTAGE_NS
        if target == cluster.controller:
            cluster.elect_controller((target + 1) % len(BROKERS))
        led = [partition for partition in self.all_partitions if partition.leader == target]
        for partition in led:
            cluster.elect_leader(partition)
        if fault != EXPIRE_SESSION:
            cluster.brokers[target].start(cluster.tick())
        self._journal(injection, fault, target, InjectionStep.CONFIRMED, InjectionStep.HEALED)
        for partition in led:
            cluster.rejoin(partition, target)

    def end(self) -> None:
        """Consumers read ends and committed offsets back, and every dump gets its first line."""
        for consumer in self.consumers:
            for kind in (OpKind.END_OFFSET, OpKind.FETCH_COMMITTED):
                for partition in self.partitions:
                    more = {"topic": partition.topic, "partition": partition.number, "group": consumer.name}
                    index = consumer.next_index()
                    consumer.write(index, OpType.INVOKE, self.cluster.tick(), kind, **more)
                    more["offset"] = partition.log_end_offset
                    consumer.write(index, OpType.OK, self.cluster.tick(), kind, **more)
        for partition in self.all_partitions:
            for broker, dump in zip(BROKERS, partition.dumps, strict=True):
                dump.seek(0)
                dump.write(encoded(partition.state(broker)).rstrip().ljust(HEAD_BYTES - 1) + b"\n")

    def _produce(self, partition: Partition, producer: _Client) -> None:
        target = {"topic": partition.topic, "partition": partition.number, "acks": -1}
        records = []
        for _ in range(RECORDS_A_BATCH):
            self.sent += 1
            index, content = producer.next_index(), {"key": f"key-{self.sent % 24}", "value": f"value-{self.sent}"}
            records.append((index, content))
            producer.write(index, OpType.INVOKE, self.cluster.tick(), OpKind.SEND, **target, **content)
        base, last = self.cluster.replicate(partition, [(content["key"], content["value"]) for _, content in records])
        answer = events.ProduceResponse(
            correlation_id=self.batches,
            client=producer.name,
            **partition.named,
            acks=-1,
            base_offset=base,
            last_offset=last,
            error=0,
            isr_size=len(partition.isr),
            high_watermark=last + 1,
            duration_ms=1.0,
        )
        self.cluster.log(partition.leader, answer)
        for offset, (index, content) in enumerate(records, start=base):
            producer.write(index, OpType.OK, self.cluster.tick(), OpKind.SEND, offset=offset, **target, **content)
            partition.unread.append(Record(**partition.named, offset=offset, value=content["value"]))

    def _poll(self) -> None:
        """Every consumer reads what was written since the last poll."""
        records = tuple(record for partition in self.partitions for record in partition.unread)
        for consumer in self.consumers:
            index = consumer.next_index()
            consumer.write(index, OpType.INVOKE, self.cluster.tick(), OpKind.POLL, mode="assign")
            for partition in self.partitions:
                self.cluster.fetched(partition, -1, partition.unread[0].offset, partition.unread[-1].offset)
            consumer.write(index, OpType.OK, self.cluster.tick(), OpKind.POLL, mode="assign", records=records)
        for partition in self.partitions:
            partition.unread.clear()

    def _commit(self, consumer: _Client) -> None:
        commits = []
        for partition in self.partitions:
            position = {"group": consumer.name, "topic": partition.topic, "partition": partition.number}
            index = consumer.next_index()
            consumer.write(
                index, OpType.INVOKE, self.cluster.tick(), OpKind.COMMIT, offset=partition.log_end_offset, **position
            )
            commits.append((index, position, partition.log_end_offset))
        records = [
            (json.dumps({"type": "offset", **position}), json.dumps({"offset": to})) for _, position, to in commits
        ]
        base, _ = self.cluster.replicate(self.offsets, records)
        for log_offset, (index, position, to) in enumerate(commits, start=base):
            more: dict[str, Any] = {**position, "offset": to}
            answer = events.OffsetCommit(
                generation=-1,
                member="",
                instance=None,
                coordinator_epoch=self.offsets.leader_epoch,
                decided_seq=0,
                log_offset=log_offset,
                error=0,
                **more,
            )
            self.cluster.log(self.offsets.leader, answer)
            consumer.write(index, OpType.OK, self.cluster.tick(), OpKind.COMMIT, **more)

    def _journal(self, injection: int, fault: str, target: int, *steps: InjectionStep) -> None:
        for step in steps:
            at_ns = self.cluster.tick()
            entry = JournalEntry(time_ns=at_ns, injection=injection, fault=fault, step=step, targets=(str(target),))
            self.journal.write(encoded(entry))


class _Chain:
    """Numbers and chains the lines of a file, as writers of evidence do."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._link = Link()

    def write(self, line: bytes) -> None:
        """Append a line."""
        written, self._link = chained(line, self._link)
        self._file.write(written)

    def close(self) -> None:
        """Write the end."""
        self._file.write(end(self._link))


@contextmanager
def _writing(folder: RunFolder, stride: int, *, clients_alone: bool) -> Iterator[_History]:
    """Open every file of a history, and close them at the end."""
    with ExitStack() as files:

        def written(path: Path) -> BinaryIO:
            path.parent.mkdir(parents=True, exist_ok=True)
            return files.enter_context(path.open("wb", buffering=1 << 18))

        def opened(path: Path) -> BinaryIO:
            return written(Path(os.devnull) if clients_alone else path)

        def chain(file: BinaryIO) -> Lines:
            return files.enter_context(closing(_Chain(file)))

        def partition(topic: str, number: int, stride: int) -> Partition:
            dumps = [opened(folder.replica_dump(broker, topic, number)) for broker in BROKERS]
            for dump in dumps:
                dump.seek(HEAD_BYTES)
            isr = [(number + place) % len(BROKERS) for place in BROKERS]
            return Partition(
                topic=topic, number=number, dumps=dumps, assigned=isr, isr=list(isr), leader=isr[0], stride=stride
            )

        def clients(role: str, number: int) -> list[_Client]:
            names = [f"{role}-{n + 1}" for n in range(number)]
            files = [written(folder.operations_of(name)) for name in names]
            return [
                _Client(name, file if clients_alone else chain(file)) for name, file in zip(names, files, strict=True)
            ]

        brokers = [Broker(broker, chain(opened(folder.state_change_log(broker)))) for broker in BROKERS]
        yield _History(
            cluster=Cluster(brokers=brokers, zookeeper=chain(opened(folder.zookeeper))),
            partitions=[partition(TOPIC, number, stride) for number in range(PARTITIONS)],
            offsets=partition(OFFSETS_TOPIC, 0, 0),
            producers=clients("producer", PRODUCERS),
            consumers=clients("consumer", CONSUMERS),
            journal=chain(opened(folder.journal)),
        )
