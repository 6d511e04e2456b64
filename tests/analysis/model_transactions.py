"""Transactions in the model of a cluster: each is begun and ended within one step, and every replica in sync has it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from harness.events import LastStableOffset, TransactionMarker, TransactionResponse, TransactionStateChange
from tests.analysis.model_cluster import PAYMENTS, TRANSACTIONS, Cluster, Partition
from tests.analysis.model_log import NONE, Entry
from tests.analysis.model_transaction_dumps import TIMEOUT_MS

IDS = ("t0", "t1")
MIN_ISR = 2


@dataclass
class Transactor:
    """Producers with a transactional id each, and their coordinator."""

    cluster: Cluster
    random: Random
    replicate: Callable[[Partition], None]
    producers: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    values: int = 0

    def transact(self) -> None:
        """Write one transaction to some partitions, and end it."""
        wanted = self.random.sample(self._of(PAYMENTS), self.random.randint(1, 2))
        (state,) = self._of(TRANSACTIONS)
        if any(partition.leader == NONE or len(partition.isr) < MIN_ISR for partition in (state, *wanted)):
            return
        name = self.random.choice(IDS)
        if name not in self.producers:
            self.producers[name] = self.cluster.claim_producer_ids()
            self._become(state, name, "Empty", [])
        self._become(state, name, "Ongoing", wanted)
        for partition in wanted:
            for _ in range(self.random.randint(1, 3)):
                self._write(partition, name)
        commits = self.random.random() < 0.6
        self._become(state, name, "PrepareCommit" if commits else "PrepareAbort", wanted)
        self._answer(state, name)
        for partition in wanted:
            self._mark(state, partition, name, "commit" if commits else "abort")
        self._become(state, name, "CompleteCommit" if commits else "CompleteAbort", [])

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

    def _write(self, partition: Partition, name: str) -> None:
        place = (self.producers[name], partition.number)
        sequence = self.sequences.get(place, 0)
        self.sequences[place], self.values = sequence + 1, self.values + 1
        entry = Entry(partition.epoch, "k", f"{name}-{self.values}", place[0], sequence, transactional=True)
        self.cluster.append(partition, [entry])
        self.replicate(partition)

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
