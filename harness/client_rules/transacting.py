"""A transactional producer's rules: write transactions under several ids in turn, and commit or abort each of them.

A transaction is committed only after the cluster has acknowledged everything in it; otherwise it is aborted. A fatal
error closes the producer, and its id is initialised anew, as an application does that is restarted (KIP-360).
"""

import random
from collections.abc import Callable, Sequence

from harness.client_rules.sending import Sending
from harness.client_rules.steps import (
    AwaitSends,
    BeginTransaction,
    CloseProducer,
    EndTransaction,
    Failure,
    InitTransactions,
    Pause,
    Script,
    Send,
    StepResult,
    partitions_of,
)
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder
from harness.values import TopicPartition

MOST_ENDS = 4
"""How often the end of one transaction is asked for, before its producer is closed."""


class Transactions:
    """The transactions of one process, one at a time, and their operations."""

    def __init__(self, recorder: Recorder) -> None:
        self.ready: set[str] = set()
        """Transactional ids whose producers may begin."""
        self._recorder = recorder

    def init(self, transactional_id: str) -> Script[bool]:
        """Make a producer the present one of its id; return whether that succeeded."""
        self.ready.discard(transactional_id)
        invoked = self._recorder.invoke(OpKind.INIT_TRANSACTIONS, transactional_id=transactional_id)
        answer = yield InitTransactions(transactional_id)
        if answer.error is None:
            self._recorder.end(invoked, OpType.OK)
            self.ready.add(transactional_id)
        else:
            self._recorder.end(invoked, outcome(answer), error=answer.error)
        return answer.error is None

    def begin(self, transactional_id: str) -> Script[int]:
        """Begin a transaction and return its number."""
        invoked = self._recorder.invoke(
            OpKind.BEGIN_TRANSACTION, transactional_id=transactional_id, transaction=self._recorder.next_index
        )
        yield BeginTransaction(transactional_id)
        self._recorder.end(invoked, OpType.OK)
        return invoked.index

    def end(self, transactional_id: str, transaction: int, *, commit: bool, failed: Failure | None) -> Script[bool]:
        """Commit or abort, as often as needed; return whether it was committed for certain.

        Args:
            transactional_id: Of the producer; one that cannot go on is closed.
            transaction: The transaction's number.
            commit: Whether to commit it, if it can be.
            failed: What became of its records and offsets.
        """
        commit = commit and failed is None
        for _ in range(MOST_ENDS):
            if failed is Failure.FATAL:
                break
            kind = OpKind.COMMIT_TRANSACTION if commit else OpKind.ABORT_TRANSACTION
            invoked = self._recorder.invoke(kind, transactional_id=transactional_id, transaction=transaction)
            answer = yield EndTransaction(transactional_id, commit)
            if answer.error is None:
                self._recorder.end(invoked, OpType.OK)
                return commit
            self._recorder.end(invoked, outcome(answer), error=answer.error)
            failed = answer.failure
            if failed is Failure.ABORTABLE:
                if not commit:
                    break
                commit = False
        yield from self.close(transactional_id)
        return False

    def close(self, transactional_id: str) -> Script[None]:
        """Drop a producer."""
        self.ready.discard(transactional_id)
        yield CloseProducer(transactional_id)


class Transacting:
    """One process with several transactional ids."""

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self.sending = Sending(plan, recorder)
        self._transactions = Transactions(recorder)
        self._rng = random.Random(f"{plan.seed} transactions")  # noqa: S311  repeatable, not secret
        self._ids: list[str] = plan.parameters["transactional_ids"]
        self._partitions = partitions_of(plan.topics)
        self._parameters = plan.parameters

    def script(self, stopped: Callable[[], bool]) -> Script[None]:
        """Write one transaction after the other until `stopped`, each id in its turn."""
        turn = 0
        while not stopped():
            transactional_id = self._ids[turn % len(self._ids)]
            turn += 1
            if transactional_id not in self._transactions.ready:
                yield Pause(self._rng.uniform(0, self._parameters["away_s"]), until_stopped=True)
                if stopped() or not (yield from self._transactions.init(transactional_id)):
                    continue
            yield from self._transaction(transactional_id)
        for transactional_id in sorted(self._transactions.ready):
            yield from self._transactions.close(transactional_id)

    def _transaction(self, transactional_id: str) -> Script[None]:
        commit = self._rng.random() >= self._parameters["abort_share"]
        transaction = yield from self._transactions.begin(transactional_id)
        written = yield from self._write(transactional_id, transaction)
        yield from self._transactions.end(transactional_id, transaction, commit=commit, failed=written.failure)

    def _write(self, transactional_id: str, transaction: int) -> Script[StepResult]:
        """Send a transaction's records to some partitions; return what became of them."""
        parameters = self._parameters
        records = self._rng.randint(1, parameters["records_of_transaction"])
        pauses_at = self._rng.randrange(records) if self._rng.random() < parameters["pause_share"] else -1
        among = self._chosen()
        for number in range(records):
            invoked = self.sending.invoke(among, transactional_id=transactional_id, transaction=transaction)
            answer = yield Send(invoked)
            if answer.failure is not None:
                break
            yield Pause(1 / parameters["rate_per_s"])
            if number == pauses_at:
                yield Pause(self._rng.uniform(0, parameters["pause_s"]))
        return (yield AwaitSends(transactional_id))

    def _chosen(self) -> Sequence[TopicPartition]:
        most = min(self._parameters["partitions_of_transaction"], len(self._partitions))
        return self._rng.sample(self._partitions, self._rng.randint(1, most))


def outcome(answer: StepResult) -> OpType:
    """Return the outcome of an operation whose step failed."""
    return OpType.FAIL if answer.had_no_effect else OpType.INFO
