"""The rules of a consume-transform-produce member: what it reads, it writes again in transactions with its offsets.

Records, and the positions after them, become valid together or not at all (KIP-447). A member whose transaction was not
committed for certain leaves its group, and returns to where the group has come to.
"""

import random
from collections.abc import Callable, Iterable

from harness.client_rules.sending import Sending
from harness.client_rules.steps import AwaitSends, Failure, Pause, Script, Send, SendOffsets, StepResult, partitions_of
from harness.client_rules.subscribing import Subscribing
from harness.client_rules.transacting import Transactions, outcome
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType, Record
from harness.store.recording import Recorder
from harness.values import TopicPartition


class Piping(Subscribing):
    """One member of a group, with a transactional id."""

    def __init__(
        self,
        plan: ClientPlan,
        recorder: Recorder,
        now_s: Callable[[], float],
        *,
        at_once: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(plan, recorder, now_s, at_once=at_once)
        self.sending = Sending(plan, recorder)
        self._transactions = Transactions(recorder)
        self._read: list[Record] = []
        """Records of the last poll, of partitions that are still assigned."""
        self._id: str = plan.parameters["transactional_id"]
        self._outputs = partitions_of(plan.parameters["outputs"])
        self._choices = random.Random(f"{plan.seed} transactions")  # noqa: S311  repeatable, not secret

    def _work(self) -> Script[None]:
        """Poll, and write what was read; where that fails, begin again as a new member."""
        self._read.clear()
        is_over = yield from self.poll()
        if is_over or (self._read and not (yield from self._written())):
            yield from self._leave()
            yield Pause(self._about(self._plan.parameters["away_s"]), until_stopped=True)
            yield from self._subscribe()

    def _end_poll(self, answer: StepResult) -> None:
        super()._end_poll(answer)
        self._read += [each for each in answer.records if (each.topic, each.partition) in self.positions]

    def _give_up(self, kind: OpKind, partitions: Iterable[TopicPartition], before: tuple[Record, ...]) -> Script[None]:
        given_up = list(partitions)
        yield from super()._give_up(kind, given_up, before)
        self._read = [each for each in self._read if (each.topic, each.partition) not in given_up]

    def _written(self) -> Script[bool]:
        """Write what was read, in transactions of some records; return whether all of them were committed."""
        most = self._plan.parameters["records_of_transaction"]
        left = list(self._read)
        while left:
            records, left = left[:most], left[most:]
            if self._id not in self._transactions.ready and not (yield from self._transactions.init(self._id)):
                return False
            if not (yield from self._transaction(records)):
                return False
        return True

    def _transaction(self, records: list[Record]) -> Script[bool]:
        commit = self._choices.random() >= self._plan.parameters["abort_share"]
        transaction = yield from self._transactions.begin(self._id)
        failed: Failure | None = None
        for record in records:
            invoked = self.sending.invoke(
                self._outputs, made_from=record.value, transactional_id=self._id, transaction=transaction
            )
            failed = (yield Send(invoked)).failure
            if failed is not None:
                break
        failed = (yield AwaitSends(self._id)).failure or failed
        if failed is None:
            failed = yield from self._send_offsets(transaction, records)
        return (yield from self._transactions.end(self._id, transaction, commit=commit, failed=failed))

    def _send_offsets(self, transaction: int, records: list[Record]) -> Script[Failure | None]:
        """Make the positions after some records part of the transaction; return what is left to the producer."""
        positions: dict[TopicPartition, int] = {}
        for record in records:
            positions[record.topic, record.partition] = record.offset + 1
        invoked: list[Operation] = [
            self._recorder.invoke(
                OpKind.SEND_OFFSETS,
                topic=topic,
                partition=partition,
                offset=offset,
                transactional_id=self._id,
                transaction=transaction,
                group=self.group,
            )
            for (topic, partition), offset in positions.items()
        ]
        answer = yield SendOffsets(self._id, positions)
        for each in invoked:
            ended = OpType.OK if answer.error is None else outcome(answer)
            self._recorder.end(each, ended, error=answer.error or "")
        return answer.failure
