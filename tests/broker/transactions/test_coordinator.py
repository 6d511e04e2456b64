"""A coordinator that stores what it answers, delivers markers, dies, and goes on where another one was."""

import asyncio
import gc
from typing import Any

import pytest

from harness.broker.metadata_cache import MetadataCache
from harness.broker.transactions.coordinator import NO_PRODUCER, TransactionLimits
from harness.broker.transactions.records import decode_chunk
from harness.broker.transactions.transaction import Producer
from harness.broker.wire.error_codes import ErrorCode
from harness.events import TransactionLoad, TransactionMarkerResponse, TransactionUnload
from harness.values import TRANSACTIONS_TOPIC
from tests.broker.transactions.coordinating import ID, TIMEOUT_MS, Coordinating, FakeBrokers

NONE, BUSY = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
COMPLETE = ("CompleteCommit", "CompleteAbort")


async def leading(**changes: Any) -> Coordinating:
    here = Coordinating(**changes)
    await here.lead()
    return here


async def test_a_transaction_from_begin_to_end() -> None:
    here = await leading()
    producer = await here.begin(0, 1)
    assert await here.coordinator.end(ID, producer, commit=True) is NONE
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert sorted(here.brokers.markers()) == [(1, "t-0", True), (2, "t-1", True)]
    assert here.states() == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    stored = [decode_chunk(data).records[0] for _, data in here.topic.disk.batches]
    assert [each.value and each.value.state.value for each in stored] == here.states()
    await here.coordinator.stop()


async def test_the_answer_comes_when_the_decision_is_stored_and_markers_follow() -> None:
    here = await leading()
    producer = await here.begin(0)
    here.topic.gate = asyncio.Event()
    ending = asyncio.create_task(here.coordinator.end(ID, producer, commit=True))
    await asyncio.sleep(1)
    assert (ending.done(), here.brokers.requests, here.state()) == (False, [], "Ongoing")
    assert await here.coordinator.end(ID, producer, commit=False) is BUSY
    here.topic.gate.set()
    assert await ending is NONE
    await here.settled(lambda: here.state() == "CompleteCommit")
    await here.coordinator.stop()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="too few replicas"),
        pytest.param(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="replicas are too slow"),
        pytest.param(ErrorCode.NOT_LEADER_FOR_PARTITION, ErrorCode.NOT_COORDINATOR, id="the lead is lost"),
        pytest.param(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR, id="it is too large"),
    ],
)
async def test_what_cannot_be_stored_does_not_count(failure: ErrorCode, error: ErrorCode) -> None:
    here = await leading()
    producer = await here.begin(0)
    here.topic.error = failure
    assert await here.coordinator.end(ID, producer, commit=True) is error
    assert here.state() == "Ongoing"
    here.topic.error = NONE
    assert await here.coordinator.end(ID, producer, commit=False) is NONE
    await here.coordinator.stop()


async def test_a_lead_that_is_lost_while_something_is_stored() -> None:
    here = await leading()
    producer = await here.begin(0)
    here.topic.gate = asyncio.Event()
    ending = asyncio.create_task(here.coordinator.end(ID, producer, commit=True))
    await asyncio.sleep(0)
    here.coordinator.leadership_changed([], [(TRANSACTIONS_TOPIC, 0, 4)])
    here.topic.gate.set()
    assert await ending is ErrorCode.NOT_COORDINATOR
    assert here.brokers.requests == []
    assert here.of(TransactionUnload)[0].transactions == 1
    await here.coordinator.stop()


async def test_a_new_session_aborts_what_the_old_one_left_open() -> None:
    here = await leading()
    old = await here.begin(0)
    assert await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None) == (BUSY, NO_PRODUCER)
    await here.settled(lambda: here.state() == "CompleteAbort")
    new = await here.begin()
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert await here.coordinator.end(ID, old, commit=True) is ErrorCode.PRODUCER_FENCED
    assert here.brokers.markers() == [(1, "t-0", False)]
    await here.coordinator.stop()


async def test_a_fence_that_is_not_stored_raises_the_epoch_once() -> None:
    here = await leading()
    await here.begin(0)
    here.topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        error, _ = await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
        assert error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    here.topic.error = NONE
    await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
    await here.settled(lambda: here.state() == "CompleteAbort")
    assert (await here.begin()).epoch == 2
    await here.coordinator.stop()


async def test_used_up_epochs_lead_to_a_new_producer_id() -> None:
    here = await leading()
    first = await here.begin()
    transaction = here.coordinator.transactions()[0]
    transaction.metadata = transaction.metadata.__class__(
        producer_id=first.producer_id, producer_epoch=32_766, timeout_ms=1, updated_ms=1
    )
    second = await here.begin()
    assert second.producer_id > first.producer_id
    assert second.epoch == 0
    await here.coordinator.stop()


@pytest.mark.parametrize(
    ("name", "timeout_ms", "error"),
    [
        pytest.param("", 1, ErrorCode.INVALID_REQUEST, id="an empty id"),
        pytest.param(ID, 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="no time at all"),
        pytest.param(ID, 101, ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="more than transaction.max.timeout.ms"),
    ],
)
async def test_a_session_that_cannot_begin(name: str, timeout_ms: int, error: ErrorCode) -> None:
    here = await leading(limits=TransactionLimits(max_timeout_ms=100))
    assert await here.coordinator.init_producer_id(name, timeout_ms, None) == (error, NO_PRODUCER)


async def test_who_does_not_coordinate_says_so() -> None:
    here = Coordinating()
    assert await here.coordinator.end(ID, Producer(1, 0), commit=True) is ErrorCode.NOT_COORDINATOR
    here.coordinator.leadership_changed([(TRANSACTIONS_TOPIC, 0, 1)], [])
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await here.coordinator.init_producer_id(ID, 1, None))[0] is loading
    assert here.coordinator.verify(ID, Producer(1, 0), [("t", 0)]) == {("t", 0): loading}
    await here.lead(2)
    assert await here.coordinator.end(ID, Producer(1, 0), commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert here.coordinator.describe(ID)[0] is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    await here.coordinator.stop()


# --- failover ---


async def test_the_next_coordinator_goes_on_with_what_was_decided() -> None:
    here = await leading()
    producer = await here.begin(0, 1)
    here.brokers.silent = {2}
    await here.coordinator.end(ID, producer, commit=True)
    await here.settled(lambda: len(here.brokers.markers()) == 1)
    await here.fail_over()
    assert here.state() == "PrepareCommit"
    here.brokers.silent = set()
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert {each[1:] for each in here.brokers.markers()} == {("t-0", True), ("t-1", True)}
    assert here.of(TransactionLoad)[-1].transactions == 1
    epochs = [event.coordinator_epoch for event in here.of(TransactionMarkerResponse)]
    assert epochs[-1] == 5
    await here.coordinator.stop()


async def test_an_open_transaction_goes_on_with_the_next_coordinator() -> None:
    here = await leading()
    producer = await here.begin(0)
    await here.fail_over()
    assert await here.coordinator.end(ID, producer, commit=True) is NONE
    await here.settled(lambda: here.state() == "CompleteCommit")
    await here.coordinator.stop()


async def test_a_deposed_coordinator_sends_no_markers() -> None:
    here = await leading()
    producer = await here.begin(0)
    here.brokers.silent = {1}
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(1)
    here.coordinator.leadership_changed([], [(TRANSACTIONS_TOPIC, 0, 4)])
    here.brokers.silent = set()
    await asyncio.sleep(1)
    assert here.brokers.requests == []
    await here.coordinator.stop()


async def test_a_load_of_an_older_epoch_undoes_nothing() -> None:
    here = await leading()
    producer = await here.begin(0)
    here.coordinator.leadership_changed([(TRANSACTIONS_TOPIC, 0, 2)], [(TRANSACTIONS_TOPIC, 0, 2)])
    assert await here.coordinator.end(ID, producer, commit=True) is NONE
    await here.coordinator.stop()


async def test_garbage_in_the_log_ends_the_load_with_what_was_read() -> None:
    here = await leading()
    await here.begin(0)
    here.topic.disk.add(here.topic.disk.batches[0][1][:61] + b"\xff" * 30)
    await here.fail_over()
    assert here.state() == "Ongoing"
    await here.coordinator.stop()


# --- time ---


async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    here = await leading()
    producer = await here.begin(0)
    here.coordinator.start(abort_every_s=10, expire_every_s=3600)
    await asyncio.sleep(15)
    assert here.state() == "Ongoing"
    here.now_ms += TIMEOUT_MS + 1
    await asyncio.sleep(10)
    assert here.state() == "CompleteAbort"
    assert await here.coordinator.end(ID, producer, commit=True) is ErrorCode.PRODUCER_FENCED
    error, resumed = await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
    assert (error, resumed.epoch) == (NONE, producer.epoch + 2)
    await here.coordinator.stop()


async def test_unused_ids_expire() -> None:
    here = await leading(limits=TransactionLimits(id_expiration_ms=1_000, max_batch_bytes=300))
    for number in range(5):
        await here.coordinator.init_producer_id(f"id{number}", TIMEOUT_MS, None)
    here.now_ms += 500
    await here.begin(0)
    here.now_ms += 500
    await here.coordinator.expire()
    assert [each.transactional_id for each in here.coordinator.transactions()] == [ID]
    tombstones = [decode_chunk(data).records for _, data in here.topic.disk.batches][-3:]
    assert [len(each) for each in tombstones] == [2, 2, 1]
    assert all(record.value is None for each in tombstones for record in each)
    await here.fail_over()
    assert [each.transactional_id for each in here.coordinator.transactions()] == [ID]
    await here.coordinator.stop()


async def test_an_id_whose_end_cannot_be_stored_stays() -> None:
    here = await leading(limits=TransactionLimits(id_expiration_ms=0))
    await here.begin()
    here.topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    await here.coordinator.expire()
    here.topic.error = NONE
    assert (await here.begin()).epoch == 1
    await here.coordinator.stop()


# --- markers ---


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_FOR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
async def test_a_marker_that_failed_for_now_is_sent_again(error: ErrorCode) -> None:
    here = await leading(brokers=FakeBrokers(errors={"t-0": [error, error]}))
    producer = await here.begin(0, 1)
    await here.coordinator.end(ID, producer, commit=False)
    await here.settled(lambda: here.state() == "CompleteAbort")
    assert sorted(here.brokers.markers()) == [(1, "t-0", False)] * 3 + [(2, "t-1", False)]
    await here.coordinator.stop()


async def test_markers_follow_a_leader_that_moves_or_comes_late() -> None:
    here = await leading(brokers=FakeBrokers(errors={"t-0": [ErrorCode.NOT_LEADER_FOR_PARTITION]}))
    producer = await here.begin(0, 1)
    here.leaders({0: 1, 1: 3})
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(0.02)
    assert here.coordinator.markers.without_destination == 1
    here.leaders({0: 2, 1: 2})
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert sorted(here.brokers.markers()) == [(1, "t-0", True), (2, "t-0", True), (2, "t-1", True)]
    await here.coordinator.stop()


async def test_partitions_of_a_deleted_topic_need_no_marker() -> None:
    here = await leading()
    producer = await here.begin(0, 1)
    here.leaders({0: -2})
    await here.coordinator.end(ID, producer, commit=True)
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert here.brokers.markers() == [(2, "t-1", True)]
    await here.coordinator.stop()


@pytest.mark.parametrize("comes", [True, False])
async def test_what_a_cache_lacks_is_deleted_only_when_zookeeper_says_so(comes: bool) -> None:
    here = await leading()
    producer = await here.begin(0)
    here.leaders({0: -2})
    here.existing = {("t", 0)}
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(4)
    assert here.state() == "PrepareCommit"
    if comes:
        here.leaders({0: 2})
    else:
        here.existing = set()
    await here.settled(lambda: here.state() == "CompleteCommit")
    assert here.brokers.markers() == ([(2, "t-0", True)] if comes else [])
    await here.coordinator.stop()


async def test_what_another_coordinator_has_taken_over_is_given_up() -> None:
    here = await leading(brokers=FakeBrokers(errors={"t-0": [ErrorCode.TRANSACTION_COORDINATOR_FENCED]}))
    producer = await here.begin(0)
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(1)
    assert here.state() == "PrepareCommit"
    assert len(here.brokers.requests) == 1
    await here.coordinator.stop()


async def test_a_completion_that_cannot_be_stored_is_tried_again() -> None:
    here = await leading()
    producer = await here.begin(0)
    await here.coordinator.end(ID, producer, commit=True)
    here.topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    await asyncio.sleep(1)
    assert (here.state(), here.coordinator.markers.retried_stores) == ("PrepareCommit", 1)
    assert (await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None))[0] is BUSY
    here.topic.error = NONE
    await here.settled(lambda: here.state() == "CompleteCommit")
    await here.coordinator.stop()


async def test_the_markers_of_many_transactions_go_out_together() -> None:
    here = await leading()
    here.brokers.silent = {1}
    for number in range(20):
        _, producer = await here.coordinator.init_producer_id(f"id{number}", TIMEOUT_MS, None)
        await here.coordinator.add_partitions(f"id{number}", producer, {("t", 0)}, api="AddPartitionsToTxn")
        await here.coordinator.end(f"id{number}", producer, commit=True)
    here.brokers.silent = set()
    await here.settled(lambda: all(each.metadata.state.is_idle for each in here.coordinator.transactions()))
    assert [len(message.markers) for _, message in here.brokers.requests] == [1, 19], "one was on its way"
    await here.coordinator.stop()


# --- planted bugs ---


async def markers_of_a_coordinator_that_dies_before_it_stores(here: Coordinating) -> Any:
    producer = await here.begin(0)
    here.topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(1)
    return here.brokers.markers()


async def partitions_without_marker(here: Coordinating) -> Any:
    producer = await here.begin(0, 1)
    here.brokers.silent = {2}
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(1)
    return here.state()


async def what_was_decided_after_a_failover(here: Coordinating) -> Any:
    producer = await here.begin(0)
    here.brokers.silent = {1}
    await here.coordinator.end(ID, producer, commit=True)
    await asyncio.sleep(0.01)
    await here.fail_over()
    here.brokers.silent = set()
    await asyncio.sleep(1)
    return here.state()


async def what_was_decided_above_the_high_watermark(here: Coordinating) -> Any:
    here.brokers.silent = {1}
    producer = await here.begin(0)
    here.topic.committed = 2
    await here.coordinator.end(ID, producer, commit=True)
    await here.fail_over()
    return here.state()


async def test_a_producer_that_ends_its_transaction_as_it_times_out_is_first() -> None:
    here = await leading()
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    producer = await here.begin(0)
    here.now_ms += TIMEOUT_MS + 1
    await here.coordinator.abort_timed_out()
    assert await here.coordinator.end(ID, producer, commit=True) is ErrorCode.NONE
    await here.settled(lambda: here.state() in COMPLETE)
    gc.collect()  # a task that has failed says so when it goes
    assert (here.state(), failures) == ("CompleteCommit", [])


async def epoch_after_a_time_out(here: Coordinating) -> Any:
    producer = await here.begin(0)
    here.now_ms += TIMEOUT_MS + 1
    await here.coordinator.abort_timed_out()
    await here.settled(lambda: here.state() in COMPLETE)
    return await here.coordinator.add_partitions(ID, producer, {("t", 0)}, api="AddPartitionsToTxn")


async def what_a_coordinator_without_metadata_does(here: Coordinating) -> Any:
    producer = await here.begin(0)
    here.leaders({0: 2}, alive=())
    await here.coordinator.end(ID, producer, commit=True)
    here.metadata, here.existing = MetadataCache(), {("t", 0)}
    await here.fail_over()
    await asyncio.sleep(1)
    before = here.state()
    here.leaders({0: 2})
    await here.settled(lambda: here.state() == "CompleteCommit")
    return before, here.brokers.markers()


@pytest.mark.parametrize(
    ("bug", "play", "right", "wrong"),
    [
        pytest.param(
            "markers-before-decision",
            markers_of_a_coordinator_that_dies_before_it_stores,
            [],
            [(1, "t-0", True)],
            id="markers before the decision is stored",
        ),
        pytest.param(
            "complete-after-one-marker", partitions_without_marker, "PrepareCommit", "CompleteCommit", id="one marker"
        ),
        pytest.param(
            "decision-forgotten-at-failover",
            what_was_decided_after_a_failover,
            "CompleteCommit",
            "PrepareCommit",
            id="decided before a failover",
        ),
        pytest.param(
            "markers-before-metadata",
            what_a_coordinator_without_metadata_does,
            ("PrepareCommit", [(2, "t-0", True)]),
            ("CompleteCommit", []),
            id="resumed without metadata",
        ),
        pytest.param(
            "transaction-load-to-high-watermark",
            what_was_decided_above_the_high_watermark,
            "PrepareCommit",
            "Ongoing",
            id="decided above the high watermark",
        ),
        pytest.param(
            "fence-without-epoch", epoch_after_a_time_out, ErrorCode.PRODUCER_FENCED, NONE, id="aborted by its time-out"
        ),
    ],
)
async def test_a_guard_of_the_coordinator(bug: str, play: Any, right: Any, wrong: Any) -> None:
    ends = []
    for bugs in ((), (bug,)):
        here = await leading(bugs=bugs)
        ends.append(await play(here))
        await here.coordinator.stop()
    assert ends == [right, wrong]
