"""Whole runs of the model; one of fewer steps is the beginning of the longer one of the same seed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.events import FetchResponse, ProduceResponse
from harness.store.history import Liveness, OpKind, OpType, Record, Sign
from tests.analysis.model_cluster import OFFSETS, PAYMENTS, TRANSACTIONS, Cluster, Partition
from tests.analysis.model_evidence import Evidence
from tests.analysis.model_log import NONE, Entry
from tests.analysis.model_transactions import Transactor

STEPS = 40
MIN_ISR = 2
SETTLED_MS = 70_000
"""Longer than the deadline for recovery, and than a partition takes to settle."""
GROUP = "g0"
LAST_TRANSACTIONS = 3
"""So that most runs have a transaction."""
CONSUMERS = ("c0", "c1")
ACKS = {"p0": -1, "p1": 1, "p2": 0}
"""Producers by what they wait for; the first is idempotent."""


def history(seed: int, steps: int = STEPS) -> Evidence:
    """Return the evidence of one run in which nothing went wrong that should not."""
    run = Run(Random(seed))
    for _ in range(steps):
        run.step()
    run.settle()
    return run.cluster.out


@dataclass
class _Position:
    offset: int = 0
    epoch: int = NONE
    """Of the last record that was read."""
    led_in: int = NONE


@dataclass
class Run:
    random: Random
    idempotent: bool = True
    """Whether producers that wait for all are."""
    cluster: Cluster = field(init=False)
    positions: dict[tuple[str, str, int], _Position] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    indexes: dict[str, int] = field(default_factory=dict)
    producer_id: int = field(init=False)
    transactor: Transactor = field(init=False)
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.random)
        self.producer_id = self.cluster.claim_producer_ids()
        self.transactor = Transactor(self.cluster, self.random, self._replicate)

    def step(self) -> None:
        """Do one thing, whatever is possible just now."""
        cluster, random = self.cluster, self.random
        partition = random.choice(self.data)
        broker = random.choice(list(cluster.brokers))
        steps: dict[Callable[[], object], int] = {
            lambda: self.produce("p0", partition): 20,
            lambda: self.produce("p1", partition): 6,
            lambda: self.produce("p2", partition): 2,
            self.transactor.transact: 8,
            lambda: self.read(random.choice(CONSUMERS), partition, 4): 16,
            lambda: self.commit(partition): 5,
            lambda: self.read_back(partition): 4,
            lambda: self.ask_end(partition): 3,
            lambda: self._fetch(partition, broker): 8,
            lambda: cluster.shrink(partition, broker): 4,
            lambda: self._rejoin(partition, broker): 8,
            lambda: self._lose(broker): 5,
            lambda: self._return(broker): 8,
            lambda: cluster.prefer(partition): 3,
            lambda: cluster.move_controller(): 2,
        }
        random.choices(list(steps), list(steps.values()))[0]()

    def settle(self) -> None:
        """Restart killed brokers, let all catch up, and read everything but, sometimes, the very last."""
        cluster = self.cluster
        for broker, each in cluster.brokers.items():
            if not each.alive and (broker in cluster.injections or self.random.random() < 0.5):
                cluster.restart(broker)
        for partition in cluster.partitions:
            for broker in cluster.followers(partition):
                self._rejoin(partition, broker)
                cluster.fetch(partition, broker)
        cluster.update_metadata()
        healed_ns = cluster.out.now_ns
        cluster.out.tick(SETTLED_MS)
        for partition in self.data:
            self.produce("p0", partition)
            for broker in cluster.followers(partition):
                cluster.fetch(partition, broker)
            self.ask_end(partition)
            for consumer in CONSUMERS if self.random.random() < 0.9 else CONSUMERS[:1]:
                while self.read(consumer, partition, 7):
                    pass
            self.commit(partition)
            self.read_back(partition)
        for _ in range(LAST_TRANSACTIONS):
            self.transactor.transact()
        self.transactor.read()
        cluster.dump()
        self.look(healed_ns)

    def look(self, healed_ns: int) -> None:
        """Probe every sign of life; brokers that stay down prevent some."""
        cluster, out = self.cluster, self.cluster.out
        signs: list[tuple[Sign, dict[str, Any]]] = [(Sign.REGISTERED, {"broker": broker}) for broker in cluster.alive()]
        signs += [(sign, each.names) for each in cluster.partitions for sign in (Sign.LED, Sign.IN_SYNC)]
        written = [each for each in cluster.partitions if each.topic not in (OFFSETS, TRANSACTIONS)]
        signs += [(sign, each.names) for each in written for sign in (Sign.PRODUCE, Sign.FETCH)]
        signs += [(Sign.READ, {**each.names, "process": CONSUMERS[0]}) for each in self.data]
        signs += [(Sign.COMMIT, each.names) for each in cluster.partitions if each.topic == OFFSETS]
        signs += [(Sign.WORK, {"process": consumer}) for consumer in CONSUMERS]
        dead = sorted(set(cluster.brokers) - set(cluster.alive()))
        for sign, of in signs:
            shown = not dead or self.random.random() < 0.5
            out.sign(
                Liveness(
                    time_ns=out.now_ns,
                    sign=sign,
                    **of,
                    shown=shown,
                    since_ns=out.now_ns if shown else healed_ns,
                    healed_ns=healed_ns,
                    detail="" if shown else "it is not",
                    hindrance="" if shown else f"{dead} do not run",
                    cpu_percent=self.random.randint(0, 100),
                    load_percent=self.random.randint(0, 199),
                    late_ms=self.random.randint(0, 1999),
                )
            )

    @property
    def data(self) -> list[Partition]:
        others = (OFFSETS, PAYMENTS, TRANSACTIONS)
        return [partition for partition in self.cluster.partitions if partition.topic not in others]

    # What happens to the cluster.
    def _fetch(self, partition: Partition, broker: int) -> None:
        if broker in self.cluster.followers(partition):
            self.cluster.fetch(partition, broker, self.random.randint(1, 5))

    def _rejoin(self, partition: Partition, broker: int) -> None:
        if broker in self.cluster.followers(partition):
            self.cluster.fetch(partition, broker)
            self.cluster.expand(partition, broker)

    def _lose(self, broker: int) -> None:
        if broker in self.cluster.alive() and len(self.cluster.alive()) > 1:
            self.random.choice((self.cluster.kill, self.cluster.kill, self.cluster.shut_down))(broker)

    def _return(self, broker: int) -> None:
        if broker not in self.cluster.alive():
            self.cluster.restart(broker)

    # What clients do.
    def produce(self, process: str, partition: Partition, records: int | None = None) -> None:
        """Send a few records, whose outcomes may stay unknown; or a given number, all answered."""
        acks = ACKS[process]
        keys = [self._index(process) for _ in range(records or self.random.randint(1, 3))]
        named = {**partition.names, "acks": acks}
        for index in keys:
            self._invoked(process, OpKind.SEND, index, key="k", value=f"{process}-{index}", **named)
        if partition.leader == NONE or (acks == -1 and len(partition.isr) < MIN_ISR):
            for index in keys:
                self._ended(process, OpKind.SEND, OpType.FAIL, index, error="refused", **named)
            return
        base = partition.led.end
        values = [f"{process}-{index}" for index in keys]
        self.cluster.append(
            partition, self._entries(partition, values, idempotent=self.idempotent and acks == -1), acks
        )
        lost = records is None and self.random.random() < 0.2
        if acks == -1 and not lost:
            self._replicate(partition)
        if not lost and acks:
            self._answer(partition, process, acks, base, len(keys))
        for number, index in enumerate(keys):
            value = {"value": f"{process}-{index}", "key": "k"}
            if lost:
                self._ended(process, OpKind.SEND, OpType.INFO, index, error="timed out", **value, **named)
            else:
                self._ended(
                    process, OpKind.SEND, OpType.OK, index, offset=base + number if acks else NONE, **value, **named
                )
        if lost and acks == -1:
            self._begin_anew()  # their outcome is unknown

    def _begin_anew(self) -> None:
        """Give the idempotent producer a new id."""
        self.producer_id = self.cluster.claim_producer_ids()
        self.sequences.clear()

    def _entries(self, partition: Partition, values: list[str], *, idempotent: bool) -> list[Entry]:
        where = (partition.topic, partition.number)
        known = [entry.sequence for entry in partition.led.log if entry.producer_id == self.producer_id]
        if idempotent and known and known[-1] + 1 != self.sequences.get(where, 0):
            self._begin_anew()  # an unclean election has taken some of its records, so it is refused
        first = self.sequences.get(where, 0)
        if idempotent:
            self.sequences[where] = first + len(values)
        numbered = self.producer_id if idempotent else NONE
        return [
            Entry(partition.epoch, "k", value, numbered, first + number if idempotent else NONE)
            for number, value in enumerate(values)
        ]

    def _replicate(self, partition: Partition) -> None:
        for broker in partition.isr:
            if broker != partition.leader:
                self.cluster.fetch(partition, broker)

    def _answer(self, partition: Partition, client: str, acks: int, base: int, records: int) -> None:
        self.cluster.say(
            partition.leader,
            ProduceResponse(
                correlation_id=0,
                client=client,
                **partition.names,
                acks=acks,
                base_offset=base,
                last_offset=base + records - 1,
                error=0,
                isr_size=len(partition.isr),
                high_watermark=partition.led.high_watermark,
                leader_epoch=partition.epoch,
                duration_ms=1.0,
            ),
        )

    def read(self, consumer: str, partition: Partition, limit: int) -> bool:
        """Have a consumer read on; return whether there was something."""
        position = self.positions.setdefault((consumer, partition.topic, partition.number), _Position())
        if partition.leader == NONE:
            return False
        if position.led_in != partition.epoch and position.epoch != NONE:
            _, end = partition.led.end_of(position.epoch)
            position.offset = position.offset if end == NONE else min(position.offset, end)
        position.led_in = partition.epoch
        leader = partition.led
        entries = leader.log[position.offset : min(leader.high_watermark, position.offset + limit)]
        if not entries:
            return False
        index = self._index(consumer)
        self._invoked(consumer, OpKind.POLL, index, mode="assign")
        served = FetchResponse(
            **partition.names,
            replica=NONE,
            fetch_offset=position.offset,
            current_leader_epoch=self.random.choice((NONE, partition.epoch)),
            high_watermark=leader.high_watermark,
            last_offset=position.offset + len(entries) - 1,
            leader_epoch=partition.epoch,
        )
        self.cluster.say(partition.leader, served)
        records = tuple(
            Record(**partition.names, offset=offset, value=entry.value, leader_epoch=entry.epoch)
            for offset, entry in enumerate(entries, start=position.offset)
        )
        self._ended(consumer, OpKind.POLL, OpType.OK, index, mode="assign", records=records)
        position.offset += len(entries)
        position.epoch = entries[-1].epoch
        return True

    def commit(self, partition: Partition) -> None:
        """Have the first consumer commit what it has read, if the coordinator is there."""
        consumer, offset = CONSUMERS[0], self._position(CONSUMERS[0], partition)
        (offsets,) = (each for each in self.cluster.partitions if each.topic == OFFSETS)
        if offsets.leader == NONE or not offset:
            return
        index = self._index(consumer)
        named = {**partition.names, "group": GROUP, "offset": offset}
        self._invoked(consumer, OpKind.COMMIT, index, **named)
        key = json.dumps({"group": GROUP, **partition.names})
        self.cluster.append(offsets, [Entry(offsets.epoch, key, json.dumps({"offset": offset}))])
        self._replicate(offsets)
        self._ended(consumer, OpKind.COMMIT, OpType.OK, index, **named)
        self.committed[(partition.topic, partition.number)] = offset

    def read_back(self, partition: Partition) -> None:
        offset = self.committed.get((partition.topic, partition.number), NONE)
        index = self._index(CONSUMERS[0])
        named = {**partition.names, "group": GROUP}
        self._invoked(CONSUMERS[0], OpKind.FETCH_COMMITTED, index, **named)
        self._ended(CONSUMERS[0], OpKind.FETCH_COMMITTED, OpType.OK, index, offset=offset, **named)

    def ask_end(self, partition: Partition, consumer: str = CONSUMERS[1]) -> None:
        """Ask where the partition ends; a leader answers when it has come to where the one before was (KIP-207)."""
        if partition.leader == NONE or partition.led.high_watermark < partition.epoch_start:
            return
        index = self._index(consumer)
        self._invoked(consumer, OpKind.END_OFFSET, index, **partition.names)
        end = partition.led.high_watermark
        self._ended(consumer, OpKind.END_OFFSET, OpType.OK, index, offset=end, **partition.names)

    def _position(self, consumer: str, partition: Partition) -> int:
        known = self.positions.get((consumer, partition.topic, partition.number))
        return known.offset if known else 0

    def _index(self, process: str) -> int:
        self.indexes[process] = self.indexes.get(process, NONE) + 1
        return self.indexes[process]

    def _invoked(self, process: str, kind: OpKind, index: int, **fields: object) -> None:
        self.cluster.out.operation(process, kind, OpType.INVOKE, index, **fields)

    def _ended(self, process: str, kind: OpKind, type_: OpType, index: int, **fields: object) -> None:
        self.cluster.out.operation(process, kind, type_, index, **fields)
