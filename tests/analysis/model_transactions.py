"""Transactions in the model of a cluster: each is begun and ended within one step, and every replica in sync has it.

The second transactional id is a pipeline's: it makes a payment of each order of one partition, in order, and its
transactions commit the position of its group.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.events import (
    FetchResponse,
    LastStableOffset,
    ProduceResponse,
    TransactionMarker,
    TransactionResponse,
    TransactionStateChange,
)
from harness.store.history import OpKind, OpType, Record
from tests.analysis.model_cluster import OFFSETS, ORDERS, PAYMENTS, TRANSACTIONS, Cluster, Partition
from tests.analysis.model_log import NONE, Entry
from tests.analysis.model_transaction_dumps import TIMEOUT_MS

IDS = PLAIN, PIPELINE = ("t0", "t1")
GROUP = "pipeline"
MIN_ISR = 2


@dataclass
class Transactor:
    """Producers with a transactional id each, and their coordinator."""

    cluster: Cluster
    random: Random
    replicate: Callable[[Partition], None]
    producers: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    sequences: dict[tuple[int, str, int], int] = field(default_factory=dict)
    values: int = 0
    indexes: dict[str, int] = field(default_factory=dict)
    done: int = 0
    """Orders of the first partition that the pipeline has made payments of."""
    aborted: set[str] = field(default_factory=set)
    """Values of aborted transactions."""

    def transact(self) -> None:
        """Write one transaction to some partitions, and end it."""
        name = self.random.choice(IDS)
        wanted = self.random.sample(self._of(PAYMENTS), self.random.randint(1, 2))
        inputs = self._inputs() if name == PIPELINE else []
        places = [*wanted, *self._of(OFFSETS)] if inputs else wanted
        (state,) = self._of(TRANSACTIONS)
        if any(partition.leader == NONE or len(partition.isr) < MIN_ISR for partition in (state, *places)):
            return
        if name not in self.producers:
            self.producers[name] = self.cluster.claim_producer_ids()
            self._become(state, name, "Empty", [])
        transaction = self._operation(name, OpKind.BEGIN_TRANSACTION)
        self._become(state, name, "Ongoing", places)
        values = [self._write(place, name, transaction, each) for place, each in self._records(wanted, inputs)]
        if inputs:
            self._commit_position(name, transaction, self.done + len(inputs))
        commits = self.random.random() < 0.6
        kind = OpKind.COMMIT_TRANSACTION if commits else OpKind.ABORT_TRANSACTION
        named = {"transactional_id": name, "transaction": transaction}
        index = self._index(name)
        self.cluster.out.operation(process_of(name), kind, OpType.INVOKE, index, **named)
        self._become(state, name, "PrepareCommit" if commits else "PrepareAbort", places)
        self._answer(state, name)
        for partition in places:
            self._mark(state, partition, name, "commit" if commits else "abort")
        self._become(state, name, "CompleteCommit" if commits else "CompleteAbort", [])
        known = OpType.OK if self.random.random() < 0.7 else OpType.INFO
        self.cluster.out.operation(process_of(name), kind, known, index, **named)
        self.done += len(inputs) if commits else 0
        self.aborted |= set() if commits else set(values)

    def read(self) -> None:
        """Read all payments with both isolation levels, to their ends; read the pipeline's position back."""
        for level in ("read_committed", "read_uncommitted"):
            for partition in self._of(PAYMENTS):
                self._read(level, partition)
        if self.done:
            named = {**self._of(ORDERS)[0].names, "group": GROUP}
            self._operation(PIPELINE, OpKind.FETCH_COMMITTED, named, offset=self.done)

    def _inputs(self) -> list[Entry]:
        orders = self._of(ORDERS)[0]
        readable = orders.led.log[: orders.led.high_watermark] if orders.leader != NONE else []
        return readable[self.done :][: self.random.randint(1, 3)]

    def _records(self, wanted: Sequence[Partition], inputs: Sequence[Entry]) -> list[tuple[Partition, str]]:
        """Return where records go and what each is made from, in the order of the partitions."""
        if inputs:
            places = sorted((self.random.choice(wanted) for _ in inputs), key=lambda place: place.number)
            return [(place, each.value) for place, each in zip(places, inputs, strict=True)]
        return [(place, "") for place in wanted for _ in range(self.random.randint(1, 3))]

    def _read(self, level: str, partition: Partition) -> None:
        if partition.leader == NONE:
            return
        process, log = f"reader of {level}", list(enumerate(partition.led.log))[: partition.led.high_watermark]
        records = tuple(
            Record(**partition.names, offset=offset, value=entry.value, leader_epoch=entry.epoch)
            for offset, entry in log
            if not entry.marker and (level == "read_uncommitted" or entry.value not in self.aborted)
        )
        served = FetchResponse(
            **partition.names,
            replica=NONE,
            fetch_offset=0,
            current_leader_epoch=partition.epoch,
            high_watermark=partition.led.high_watermark,
            last_offset=len(log) - 1,
            leader_epoch=partition.epoch,
        )
        for number, record in enumerate(records):
            index = self._index(process)
            self.cluster.out.operation(process, OpKind.POLL, OpType.INVOKE, index, mode="assign", isolation=level)
            if not number:
                self.cluster.say(partition.leader, served)
            ended = {"mode": "assign", "isolation": level, "records": (record,)}
            self.cluster.out.operation(process, OpKind.POLL, OpType.OK, index, **ended)
        index, named = self._index(process), {**partition.names, "isolation": level}
        self.cluster.out.operation(process, OpKind.END_OFFSET, OpType.INVOKE, index, **named)
        self.cluster.out.operation(process, OpKind.END_OFFSET, OpType.OK, index, offset=len(log), **named)

    def _operation(self, name: str, kind: OpKind, fields: dict[str, Any] | None = None, *, offset: int = NONE) -> int:
        """Write an operation that succeeds; return its index."""
        process, index = process_of(name), self._index(name)
        named = {"transactional_id": name, "transaction": index} if fields is None else fields
        self.cluster.out.operation(process, kind, OpType.INVOKE, index, **named)
        answer = named if offset == NONE else named | {"offset": offset}
        self.cluster.out.operation(process, kind, OpType.OK, index, **answer)
        return index

    def _index(self, name: str) -> int:
        self.indexes[name] = self.indexes.get(name, NONE) + 1
        return self.indexes[name]

    def _commit_position(self, name: str, transaction: int, position: int) -> None:
        orders, (offsets,) = self._of(ORDERS)[0], self._of(OFFSETS)
        named = {"transactional_id": name, "transaction": transaction, "group": GROUP, "offset": position}
        key = json.dumps({"group": GROUP, **orders.names})
        self._append(offsets, name, key, json.dumps({"offset": position}))
        self._operation(name, OpKind.SEND_OFFSETS, {**orders.names, **named})

    def _of(self, topic: str) -> list[Partition]:
        return [partition for partition in self.cluster.partitions if partition.topic == topic]

    def _become(self, state: Partition, name: str, to: str, partitions: list[Partition]) -> None:
        named = [f"{partition.topic}-{partition.number}" for partition in partitions]
        offset, producer_id = state.led.end, self.producers[name]
        entry = Entry(state.epoch, name, " ".join(named), of_producer=producer_id, transition=to)
        self.cluster.append(state, [entry])
        self.replicate(state)
        self.cluster.say(
            state.leader,
            TransactionStateChange(
                transactional_id=name,
                state_partition=state.number,
                coordinator_epoch=state.epoch,
                producer_id=producer_id,
                producer_epoch=0,
                from_state=self.states.get(name, ""),
                to_state=to,
                timeout_ms=TIMEOUT_MS,
                partitions=named,
                log_offset=offset,
            ),
        )
        self.states[name] = to

    def _answer(self, state: Partition, name: str) -> None:
        self.cluster.say(
            state.leader,
            TransactionResponse(
                transactional_id=name,
                state_partition=state.number,
                coordinator_epoch=state.epoch,
                producer_id=self.producers[name],
                producer_epoch=0,
                api="EndTxn",
                error=0,
            ),
        )

    def _write(self, partition: Partition, name: str, transaction: int, made_from: str) -> str:
        """Send a record that is acknowledged; return its value."""
        self.values += 1
        value, process, index = f"{name}-{self.values}", process_of(name), self._index(name)
        named = {**partition.names, "key": "k", "value": value, "acks": -1, "made_from": made_from}
        named |= {"transactional_id": name, "transaction": transaction}
        self.cluster.out.operation(process, OpKind.SEND, OpType.INVOKE, index, **named)
        offset = self._append(partition, name, "k", value)
        answer = ProduceResponse(
            correlation_id=0,
            client=process,
            **partition.names,
            acks=-1,
            base_offset=offset,
            last_offset=offset,
            error=0,
            isr_size=len(partition.isr),
            high_watermark=partition.led.high_watermark,
            leader_epoch=partition.epoch,
            duration_ms=1.0,
        )
        self.cluster.say(partition.leader, answer)
        self.cluster.out.operation(process, OpKind.SEND, OpType.OK, index, offset=offset, **named)
        return value

    def _append(self, partition: Partition, name: str, key: str, value: str) -> int:
        """Write a record of a transaction to every replica in sync; return its offset."""
        producer_id, offset = self.producers[name], partition.led.end
        sequence = self.sequences.get((producer_id, partition.topic, partition.number), 0)
        self.sequences[(producer_id, partition.topic, partition.number)] = sequence + 1
        self.cluster.append(partition, [Entry(partition.epoch, key, value, producer_id, sequence, transactional=True)])
        self.replicate(partition)
        return offset

    def _mark(self, state: Partition, partition: Partition, name: str, result: str) -> None:
        producer_id, offset = self.producers[name], partition.led.end
        entry = Entry(partition.epoch, "", "", producer_id=producer_id, marker=result, coordinator_epoch=state.epoch)
        first = self._first_open(partition, producer_id)
        self.cluster.append(partition, [entry])
        self.cluster.say(
            partition.leader,
            TransactionMarker(
                **partition.names,
                role="leader",
                leader_epoch=partition.epoch,
                offset=offset,
                producer_id=producer_id,
                producer_epoch=0,
                result=result,
                coordinator_epoch=state.epoch,
                first_offset=first,
                stable_offset=offset + 1,
            ),
        )
        self.replicate(partition)
        mark = partition.led.high_watermark
        self.cluster.say(
            partition.leader,
            LastStableOffset(
                **partition.names,
                role="leader",
                leader_epoch=partition.epoch,
                old=first,
                new=mark,
                high_watermark=mark,
                first_unstable_offset=NONE,
            ),
        )

    def _first_open(self, partition: Partition, producer_id: int) -> int:
        first = NONE
        for offset, entry in enumerate(partition.led.log):
            if entry.producer_id == producer_id:
                first = NONE if entry.marker else offset if first == NONE else first
        return first


def process_of(name: str) -> str:
    """Return the process that has a transactional id."""
    return f"transactor {name}"
