"""What does a history of transactions of any length look like in which every promise holds? Files for benchmarks.

Four producers write transactions of eight records to three partitions, all at once, and abort one of ten. Two readers
with read_committed get what was committed. Three pipelines read a partition each, write a record for each that they got
to another topic, and commit it with their offset in one transaction (KIP-447); one reader gets their records. Lines are
as other tools write them, and streamed to their files, so memory does not grow with the history.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from harness.store.history import READ_COMMITTED, OpKind, OpType

INPUTS, OUTPUTS, GROUP = "orders", "shipped", "shipping"
PARTITIONS, PRODUCERS = 3, 4
RECORDS_A_TRANSACTION, ABORTED_OF = 8, 10
OPERATIONS_A_CYCLE = 84
"""About so many: each producer's transaction, what pipelines make of them, and what readers get."""
TICK_NS = 1_000

Read = tuple[int, int, str]
"""Partition, offset and value of a record."""


def generate(folder: Path, operations: int) -> int:
    """Write a history of about so many operations, a file a client, into a folder; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:

        def client(name: str) -> _Client:
            path = folder / f"{name}.jsonl"
            return _Client(name, files.enter_context(path.open("w", encoding="utf-8", buffering=1 << 18)))

        history = _History(
            producers=[client(f"producer-{number}") for number in range(PRODUCERS)],
            pipelines=[client(f"pipeline-{number}") for number in range(PARTITIONS)],
            readers=[client(f"reader-{number}") for number in range(2)],
            last_reader=client("reader-of-outputs"),
        )
        for _ in range(max(operations // OPERATIONS_A_CYCLE, 1)):
            history.cycle()
        history.end()
    return sum(client.operations for client in history.clients)


@dataclass(slots=True)
class _Client:
    """One client process's file."""

    name: str
    file: TextIO
    operations: int = 0
    transaction: int = -1
    """The index with which its open transaction began."""

    def write(self, now_ns: int, kind: OpKind, more: str, end: str = "") -> None:
        """Write an operation that succeeds, with fields as JSON, of its end alone too."""
        index, self.operations = self.operations, self.operations + 1
        if kind is OpKind.BEGIN_TRANSACTION:
            self.transaction = index
        if self.transaction >= 0:
            more = f'"transactional_id":"{self.name}","transaction":{self.transaction},{more}'
        head = f'"process":"{self.name}","index":{index},"kind":"{kind}",{more}'
        self.file.write(
            f'{{"time_ns":{now_ns},"type":"{OpType.INVOKE}",{head}"acks":-1}}\n'
            f'{{"time_ns":{now_ns + TICK_NS},"type":"{OpType.OK}",{head}{end}"acks":-1}}\n'
        )
        if kind in (OpKind.COMMIT_TRANSACTION, OpKind.ABORT_TRANSACTION):
            self.transaction = -1


def _ends() -> dict[str, list[int]]:
    return {topic: [0] * PARTITIONS for topic in (INPUTS, OUTPUTS)}


@dataclass(slots=True)
class _History:
    """The clients, and the ends of the logs that they write."""

    producers: Sequence[_Client]
    pipelines: Sequence[_Client]
    readers: Sequence[_Client]
    last_reader: _Client
    now_ns: int = 0
    ends: dict[str, list[int]] = field(default_factory=_ends)
    sent: int = 0
    transactions: int = 0

    @property
    def clients(self) -> list[_Client]:
        return [*self.producers, *self.pipelines, *self.readers, self.last_reader]

    def cycle(self) -> None:
        """Producers write a transaction each, pipelines and readers get what was committed."""
        committed = self._produce()
        for reader in self.readers:
            self._poll(reader, INPUTS, committed)
        made = [
            record
            for number, pipeline in enumerate(self.pipelines)
            for record in self._pipe(pipeline, number, committed)
        ]
        self._poll(self.last_reader, OUTPUTS, made)

    def end(self) -> None:
        """A reader asks for the ends of all partitions."""
        for topic, ends in self.ends.items():
            for partition, offset in enumerate(ends):
                place = f'"topic":"{topic}","partition":{partition},'
                self.last_reader.write(self._tick(), OpKind.END_OFFSET, place, f'"offset":{offset},')

    def _produce(self) -> list[Read]:
        """Write the producers' transactions record by record in turn; return what is committed, by partition."""
        written: dict[str, list[Read]] = {producer.name: [] for producer in self.producers}
        for producer in self.producers:
            producer.write(self._tick(), OpKind.BEGIN_TRANSACTION, "")
        for number in range(RECORDS_A_TRANSACTION):
            for producer in self.producers:
                self.sent += 1
                record = self._send(producer, INPUTS, number % PARTITIONS, f"v{self.sent}")
                written[producer.name].append(record)
        committed: list[Read] = []
        for producer in self.producers:
            self.transactions += 1
            aborts = self.transactions % ABORTED_OF == 0
            producer.write(self._tick(), OpKind.ABORT_TRANSACTION if aborts else OpKind.COMMIT_TRANSACTION, "")
            self._mark(INPUTS, {partition for partition, _, _ in written[producer.name]})
            committed += [] if aborts else written[producer.name]
        return sorted(committed)

    def _pipe(self, pipeline: _Client, number: int, committed: Sequence[Read]) -> list[Read]:
        """Make a record of each that was committed in a partition; return them."""
        inputs = [record for record in committed if record[0] == number]
        if not inputs:
            return []
        self._poll(pipeline, INPUTS, inputs)
        pipeline.write(self._tick(), OpKind.BEGIN_TRANSACTION, "")
        made = [
            self._send(pipeline, OUTPUTS, number, f"{value}-out", f'"made_from":"{value}",') for _, _, value in inputs
        ]
        place = f'"group":"{GROUP}","topic":"{INPUTS}","partition":{number},"offset":{inputs[-1][1] + 1},'
        pipeline.write(self._tick(), OpKind.SEND_OFFSETS, place)
        pipeline.write(self._tick(), OpKind.COMMIT_TRANSACTION, "")
        self._mark(OUTPUTS, {number})
        return made

    def _send(self, client: _Client, topic: str, partition: int, value: str, more: str = "") -> Read:
        offset = self.ends[topic][partition]
        self.ends[topic][partition] += 1
        place = f'"topic":"{topic}","partition":{partition},"value":"{value}",{more}'
        client.write(self._tick(), OpKind.SEND, place, f'"offset":{offset},')
        return partition, offset, value

    def _mark(self, topic: str, partitions: set[int]) -> None:
        """Append the markers that end a transaction."""
        for partition in partitions:
            self.ends[topic][partition] += 1

    def _poll(self, client: _Client, topic: str, records: Sequence[Read]) -> None:
        read = [
            {"topic": topic, "partition": partition, "offset": offset, "value": value}
            for partition, offset, value in records
        ]
        content = json.dumps(read, separators=(",", ":"))
        mode = f'"mode":"assign","isolation":"{READ_COMMITTED}",'
        client.write(self._tick(), OpKind.POLL, mode, f'"records":{content},')

    def _tick(self) -> int:
        """Return when the next operation begins; it ends before the one after it begins."""
        self.now_ns += 2 * TICK_NS
        return self.now_ns
