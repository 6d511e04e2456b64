"""Facts about transactions from literal lines: what is a transition, and when a commit of offsets was decided."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from harness.events import TransactionalOffsetCommit, TransactionStateChange
from harness.store.history import ReplicaState, StoredTransition
from tests.analysis.group_lines import becomes
from tests.analysis.run_folders import Rows, RunWriter, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES: dict[str, Callable[[RunWriter], None]] = {}
STATE: dict[str, Any] = {"broker": 1, "topic": "__transaction_state", "partition": 0}
PRODUCER: dict[str, Any] = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "timeout_ms": 1000}
A, B = "orders-0", "orders-1"


def case(write: Callable[[RunWriter], None]) -> Callable[[RunWriter], None]:
    """Add what `write` leaves behind as a run of its own, named as the function."""
    CASES[write.__name__] = write
    return write


@pytest.fixture(scope="module")
def rows(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return rows_of(spark, tmp_path_factory.mktemp("runs"), CASES)


def log(out: RunWriter, *records: tuple[str, int, list[str]]) -> None:
    """The log of a partition: state, leader epoch and partitions of each record."""
    dump = out.writer(out.folder.replica_dump(1, "__transaction_state", 0))
    ends: dict[str, Any] = {"log_end_offset": len(records), "high_watermark": len(records), "recovery_point": 0}
    dump.write(ReplicaState(**STATE, log_start_offset=0, **ends, leader_epochs=(), damage=""))
    times: dict[str, Any] = {"timestamp_ms": 0, "started_ms": 0, "transaction_version": 0}
    for offset, (state, epoch, partitions) in enumerate(records):
        where: dict[str, Any] = {"offset": offset, "leader_epoch": epoch, "partitions": partitions}
        dump.write(StoredTransition(**STATE, **PRODUCER, **times, **where, state=state))


def became(out: RunWriter, state: str, partitions: list[str], *, offset: int, epoch: int = 0, life: str = "") -> None:
    """The coordinator stores a state, or loads it (offset -1)."""
    change: dict[str, Any] = {"from_state": "", "to_state": state, "partitions": partitions, "log_offset": offset}
    out.event(1, TransactionStateChange(**PRODUCER, **change, state_partition=0, coordinator_epoch=epoch), life=life)
    out.clock.tick()


@case
def restarted(out: RunWriter) -> None:
    became(out, "Ongoing", [A, B], offset=0)
    became(out, "PrepareAbort", [A, B], offset=-1, life="second")
    became(out, "CompleteAbort", [], offset=2, epoch=1, life="second")
    log(out, ("Ongoing", 0, [A, B]), ("PrepareAbort", 0, [A, B]), ("CompleteAbort", 1, []))


def test_what_a_coordinator_loads_in_its_own_epoch_after_a_restart_is_a_transition(rows: Rows) -> None:
    assert [row["counts"] for row in rows(restarted, "transactions", "offset")] == [True, True, True]


@case
def not_stored(out: RunWriter) -> None:
    became(out, "Ongoing", [A], offset=-1, epoch=1)
    became(out, "PrepareAbort", [A], offset=2, epoch=1)
    log(out, ("Ongoing", 0, [A]), ("Ongoing", 1, [A, B]), ("PrepareAbort", 1, [A]))


def test_a_record_with_other_partitions_than_were_loaded_is_no_transition(rows: Rows) -> None:
    assert [row["counts"] for row in rows(not_stored, "transactions", "offset")] == [True, False, True]


@case
def decided(out: RunWriter) -> None:
    producer: dict[str, Any] = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 3}
    where: dict[str, Any] = {
        "group": "g",
        "member": "a",
        "generation": 1,
        "topic": "orders",
        "partition": 0,
        "error": 0,
    }
    for line in (becomes("Stable", 1, "a"), becomes("Stable", 2, "b")):
        out.event(1, line)
    for offset, seq in enumerate((0, 1, 2)):
        out.event(1, TransactionalOffsetCommit(**producer, **where, offset=offset, decided_seq=seq))


def test_a_commit_is_beside_the_generation_when_it_was_decided_and_not_when_it_was_stored(rows: Rows) -> None:
    commits = rows(decided, "transactional_commits", "offset")
    assert [row["group_generation"] for row in commits] == [None, 1, 2]
