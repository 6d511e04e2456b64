"""The rules of a transactional producer: what follows each answer of some shell, and what is written down of it."""

import pytest

from harness.client_rules.outcomes import coordinator_failure
from harness.client_rules.steps import (
    DONE,
    AwaitSends,
    CloseProducer,
    EndTransaction,
    Failure,
    InitTransactions,
    Step,
    StepResult,
    carry_out,
)
from harness.client_rules.transacting import MOST_ENDS, Transacting
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder

ID = "t-1"
UNKNOWN = StepResult(error="NETWORK_EXCEPTION", failure=Failure.RETRIABLE)
REFUSED = StepResult(error="TRANSACTION_ABORTABLE", failure=Failure.ABORTABLE)
FENCED = StepResult(error="PRODUCER_FENCED", failure=Failure.FATAL, had_no_effect=True)
COMMIT, ABORT = EndTransaction(ID, True), EndTransaction(ID, False)
PARAMETERS = {
    "transactional_ids": [ID],
    "records_of_transaction": 3,
    "partitions_of_transaction": 2,
    "abort_share": 0.0,
    "pause_share": 0.0,
    "pause_s": 1.0,
    "away_s": 1.0,
    "rate_per_s": 10.0,
    "acks": -1,
    "keys": 5,
    "value_bytes": 0,
    "message_timeout_ms": 1000,
}


def written(answers: dict[Step, list[StepResult]], **parameters: object) -> tuple[list[Step], list[Operation]]:
    """Return the steps and operations of one transaction; a step gets its answers in turn, and then DONE."""
    operations: list[Operation] = []
    plan = ClientPlan(
        process="p",
        workload="transact",
        role="transactor",
        bootstrap_servers="",
        topics={"orders": 3},
        seed=1,
        parameters={**PARAMETERS, **parameters},
    )
    rules = Transacting(plan, Recorder("p", operations.append, lambda: 0))
    left = {step: list(results) for step, results in answers.items()}
    steps: list[Step] = []

    def act(step: Step) -> StepResult:
        steps.append(step)
        return left[step].pop(0) if left.get(step) else DONE

    ended = {OpKind.COMMIT_TRANSACTION, OpKind.ABORT_TRANSACTION}

    def stopped() -> bool:
        return CloseProducer(ID) in steps or any(each.kind in ended and each.type is OpType.OK for each in operations)

    carry_out(rules.script(stopped), act)
    return [each for each in steps if isinstance(each, InitTransactions | EndTransaction | CloseProducer)], operations


@pytest.mark.parametrize(
    ("answers", "expected", "outcomes"),
    [
        pytest.param({}, [COMMIT], ["ok"], id="a transaction whose records are acknowledged is committed"),
        pytest.param({AwaitSends(ID): [REFUSED]}, [ABORT], ["ok"], id="one with a lost record is aborted"),
        pytest.param({AwaitSends(ID): [FENCED]}, [], [], id="a fenced producer does not end its transaction"),
        pytest.param({COMMIT: [UNKNOWN]}, [COMMIT, COMMIT], ["info", "ok"], id="an unknown commit is tried again"),
        pytest.param(
            {COMMIT: [REFUSED]}, [COMMIT, ABORT], ["info", "ok"], id="a refused commit is followed by an abort"
        ),
        pytest.param({COMMIT: [FENCED]}, [COMMIT], ["fail"], id="a fenced commit certainly failed"),
        pytest.param(
            {COMMIT: [UNKNOWN] * 9}, [COMMIT] * MOST_ENDS, ["info"] * MOST_ENDS, id="an end is not tried for ever"
        ),
        pytest.param(
            {AwaitSends(ID): [REFUSED], ABORT: [REFUSED]}, [ABORT], ["info"], id="a refused abort closes the producer"
        ),
    ],
)
def test_the_end_of_a_transaction(
    answers: dict[Step, list[StepResult]], expected: list[Step], outcomes: list[str]
) -> None:
    steps, operations = written(answers)
    assert steps == [InitTransactions(ID), *expected, CloseProducer(ID)]
    ends = [each for each in operations if each.kind in (OpKind.COMMIT_TRANSACTION, OpKind.ABORT_TRANSACTION)]
    assert [each.type for each in ends if each.type is not OpType.INVOKE] == outcomes


def test_operations_name_their_transaction() -> None:
    _, operations = written({})
    (begin,) = {each.index for each in operations if each.kind is OpKind.BEGIN_TRANSACTION}
    of_it = [each for each in operations if each.transaction >= 0]
    assert {each.transaction for each in of_it} == {begin}
    assert {each.transactional_id for each in operations} == {ID}
    assert {each.kind for each in of_it} == {OpKind.BEGIN_TRANSACTION, OpKind.SEND, OpKind.COMMIT_TRANSACTION}


def test_transactions_are_aborted_on_purpose() -> None:
    steps, _ = written({}, abort_share=1.0)
    assert ABORT in steps
    assert COMMIT not in steps


def test_an_id_that_is_not_initialised_begins_nothing() -> None:
    _, operations = written({InitTransactions(ID): [UNKNOWN]})
    kinds = [(each.kind, each.type) for each in operations[:4]]
    init = OpKind.INIT_TRANSACTIONS
    assert kinds == [(init, OpType.INVOKE), (init, OpType.INFO), (init, OpType.INVOKE), (init, OpType.OK)]


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        pytest.param(90, Failure.FATAL, id="PRODUCER_FENCED"),
        pytest.param(48, Failure.FATAL, id="INVALID_TXN_STATE"),
        pytest.param(22, Failure.ABORTABLE, id="ILLEGAL_GENERATION"),
        pytest.param(120, Failure.ABORTABLE, id="TRANSACTION_ABORTABLE"),
    ],
)
def test_what_an_error_leaves_to_a_producer(code: int, failure: Failure) -> None:
    assert coordinator_failure(code) is failure
