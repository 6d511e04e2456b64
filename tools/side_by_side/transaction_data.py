"""Situations of partitions that transactions write to: records, markers, what readers of both levels are served."""

import asyncio

from harness.broker.wire.sentinels import EARLIEST, LATEST
from tools.side_by_side.transaction_cluster import FAR, NEAR
from tools.side_by_side.transaction_script import Producer, Script
from tools.side_by_side.transaction_states import SHORT_MS, Situation


async def outside(s: Script) -> None:
    """A record of a partition that is not part of the transaction is refused, in the words of each version."""
    producer = await s.session()
    for version in (3, 8, 10, 11):
        await s.produce(producer, "a", version=version)
    await s.add(producer, 1)
    await s.produce(producer, "a")
    await s.produce(producer, "a", partition=1)
    await s.add(producer, NEAR)
    await s.produce(producer, "a")
    await s.read(NEAR, 1)


async def after_the_end(s: Script) -> None:
    """A record that comes after the transaction's end is refused."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    await s.produce(producer, "late")
    await s.produce(producer, "late", version=11)
    await s.read(committed=False)


async def levels(s: Script) -> None:
    """Readers of both levels at each boundary of a transaction that is open, then committed."""
    producer = await s.session()
    plain = Producer("", -1, -1)
    await s.produce(plain, "before", sequence=-1, transactional_id=None, transactional=False)
    await s.add(producer, NEAR)
    await s.produce(producer, "a", "b")
    await s.produce(producer, "c")
    await s.produce(plain, "behind", sequence=-1, transactional_id=None, transactional=False)
    for offset in range(7):
        await s.read(offset=offset)
    await s.read(committed=False)
    await s.end(producer, commit=True, wait=True)
    for offset in range(7):
        await s.read(offset=offset)


async def aborted_ranges(s: Script) -> None:
    """Which aborted transactions an answer names depends on where it begins."""
    producer = await s.session()
    for commit in (False, True, False):
        await s.reopened(producer, NEAR)
        await s.produce(producer, "more", quietly=True)
        await s.end(producer, commit=commit, wait=True)
    for offset in range(10):
        await s.read(offset=offset)
    await s.read(offset=0, committed=False)


async def interleaved(s: Script) -> None:
    """Of two transactions the second ends first: nothing is stable before the first one ends."""
    first, second = await s.session("-1"), await s.session("-2")
    await s.reopened(first, NEAR)
    await s.reopened(second, NEAR)
    await s.produce(first, "first")
    await s.end(second, commit=True, wait=True)
    await s.read()
    await s.producers()
    await s.produce(first, "again")
    await s.end(first, commit=False, wait=True)
    await s.read()
    await s.read(offset=4)
    await s.producers()


async def listed_offsets(s: Script) -> None:
    """Offsets by timestamp, the first and the last one, at both levels."""
    producer = await s.session()
    for number in range(2):
        await s.add(producer, NEAR)
        await s.produce(producer, f"{number}", timestamp_ms=100 * (number + 1))
        if number == 0:
            await s.end(producer, commit=True, wait=True)
    for committed in (True, False):
        await s.offsets(EARLIEST, LATEST, 50, 150, 250, committed=committed)
    await s.end(producer, commit=False, wait=True)
    for committed in (True, False):
        await s.offsets(EARLIEST, LATEST, 50, 150, 250, committed=committed)


async def sequences(s: Script) -> None:
    """Duplicates, gaps and a first sequence that is not zero, inside a transaction."""
    producer = await s.session()
    await s.add(producer, NEAR)
    await s.produce(producer, "a", sequence=5)
    await s.produce(producer, "a")
    await s.produce(producer, "a", sequence=0)
    await s.produce(producer, "c", sequence=2)
    await s.produce(producer, "b", sequence=1)
    await s.end(producer, commit=True, wait=True)
    await s.add(producer, NEAR)
    await s.produce(producer, "b", sequence=1)
    await s.produce(producer, "c", sequence=2)
    await s.read(committed=False)
    await s.producers()


async def sequences_of_the_next_epoch(s: Script) -> None:
    """In a new epoch sequences begin with zero."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    await s.begin_session(producer)
    await s.add(producer, NEAR)
    await s.produce(producer, "b", sequence=1)
    await s.produce(producer, "b", sequence=0)
    await s.end(producer, commit=True, wait=True)
    await s.read(committed=False)
    await s.producers()


async def zombie_records(s: Script) -> None:
    """Records of an older and of a newer epoch."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    old = producer.of_epoch(0)
    await s.begin_session(producer)
    await s.produce(old, "old", sequence=1)
    await s.reopened(producer, NEAR)
    await s.produce(old, "old", sequence=1)
    await s.produce(old, "old", sequence=1, version=11)
    await s.produce(producer.of_epoch(1), "future")
    await s.produce(producer.of_epoch(1), "future", version=11)
    await s.read(committed=False)


async def without_transactional_id(s: Script) -> None:
    """Transactional records in a request without, or with another, transactional id."""
    producer = await s.session()
    other = await s.session("-other")
    await s.add(producer, NEAR)
    await s.produce(producer, "a", transactional_id=None)
    await s.produce(producer, "a", transactional_id=other.transactional_id)
    await s.produce(producer, "a", transactional_id="no-such-id")
    await s.produce(producer, "a")
    await s.read(committed=False)


async def plain_records_of_a_transactional_producer(s: Script) -> None:
    """A producer with a transaction writes records that are not transactional."""
    producer = await s.session()
    await s.produce(producer, "plain", transactional=False, transactional_id=None)
    await s.produce(producer, "plain", transactional=False)
    await s.add(producer, NEAR)
    await s.produce(producer, "a")
    await s.produce(producer, "plain", transactional=False)
    await s.read(committed=False)
    await s.end(producer, commit=False, wait=True)
    await s.read()


async def records_after_a_time_out(s: Script) -> None:
    """The marker of a time-out raises the epoch in the log."""
    producer = await s.opened(timeout_ms=SHORT_MS)
    await s.until_state(producer, "CompleteAbort")
    await s.produce(producer, "late")
    await s.produce(producer.of_epoch(1), "guessed", sequence=0)
    await s.read(committed=False)
    await s.producers()


async def deleted_records(s: Script) -> None:
    """Records of transactions that are open, committed and aborted are deleted."""
    producer = await s.session()
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=False, wait=True)
    await s.reopened(producer, NEAR)
    await s.produce(producer, "open")
    await s.delete_records(1)
    await s.read()
    await s.delete_records(3)
    await s.read()
    await s.delete_records(-1)
    await s.read()
    await s.producers()
    await s.end(producer, commit=True, wait=True)
    await s.read(offset=4)
    await s.delete_records(-1)
    await s.producers()


async def stranger_markers(s: Script) -> None:
    """A marker for a producer that has written nothing, and for partitions that are not there."""
    stranger = Producer("", 1_000_000, 0)
    await s.markers(stranger, NEAR, commit=True)
    await s.markers(stranger, NEAR, 9, commit=False, version=0)
    await s.markers(stranger, NEAR, commit=False, topic="no-such-topic")
    await s.markers(stranger, NEAR, commit=False, at=s.leader(FAR))
    await s.read(committed=False)
    await s.producers()
    await s.producers(9)
    await s.producers(NEAR, topic="no-such-topic")


async def markers_by_epoch(s: Script) -> None:
    """Markers of older and newer epochs of the producer and the coordinator."""
    producer = await s.session()
    await s.begin_session(producer)
    await s.reopened(producer, NEAR)
    await s.markers(producer.of_epoch(-1), NEAR, commit=True)
    await s.markers(producer, NEAR, commit=True, coordinator_epoch=5)
    await s.markers(producer, NEAR, commit=True, coordinator_epoch=5)
    await s.markers(producer, NEAR, commit=False, coordinator_epoch=4)
    await s.markers(producer.of_epoch(2), NEAR, commit=False, coordinator_epoch=5)
    await s.produce(producer, "fenced")
    await s.markers(producer, NEAR, commit=False, coordinator_epoch=6)
    await s.producers()
    await s.read(committed=False)


async def administrators_marker(s: Script) -> None:
    """An administrator aborts a transaction of a partition (`kafka-transactions.sh abort`); its coordinator goes on."""
    producer = await s.opened(NEAR, FAR)
    await s.producers(NEAR)
    await s.markers(producer, NEAR, commit=False, coordinator_epoch=-1)
    await s.markers(producer, NEAR, commit=False)
    await s.read(NEAR, FAR)
    await s.producers(NEAR)
    await s.produce(producer, "behind")
    await s.end(producer, commit=True, wait=True)
    await s.read(NEAR, FAR)
    await s.log(producer)


async def markers_twice(s: Script) -> None:
    """A marker that is written twice ends nothing twice."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    await s.markers(producer, NEAR, commit=True)
    await s.markers(producer, NEAR, commit=False)
    await s.reopened(producer, NEAR)
    await s.read(committed=False)
    await s.producers()


async def described_producers(s: Script) -> None:
    """What a leader knows of producers: none, open, ended, of the next epoch."""
    await s.producers()
    producer = await s.opened()
    await s.producers()
    await s.end(producer, commit=True, wait=True)
    await s.producers()
    await s.begin_session(producer)
    await s.reopened(producer, NEAR)
    await s.producers(NEAR, FAR)
    await s.end(producer, commit=False, wait=True)
    await s.producers()


async def topic_deleted(s: Script) -> None:
    """A topic is deleted while a transaction has records in it; the transaction ends without its markers."""
    producer = await s.opened(NEAR)
    await s.create(s.topic + "-gone", near=s.leader(NEAR), far=s.leader(FAR))
    await s.add(producer, NEAR, topic=s.topic + "-gone")
    await s.delete_topic(s.topic + "-gone")
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await s.describe(producer)
    await s.read()
    await s.log(producer)


async def topic_deleted_while_prepared(s: Script) -> None:
    """A topic is deleted while a marker for it cannot be written."""
    producer = await s.opened(NEAR)
    await s.create(s.topic + "-gone", near=s.leader(NEAR), far=s.leader(FAR))
    await s.add(producer, FAR, topic=s.topic + "-gone")
    s.brokers.pause(s.leader(FAR))
    await s.end(producer, commit=False)
    await s.until_unmarked(producer, 1)
    await s.describe(producer)
    s.brokers.resume(s.leader(FAR))
    await s.delete_topic(s.topic + "-gone")
    await s.completed(producer)
    await s.read()
    await s.log(producer)


async def many_open(s: Script) -> None:
    """Twenty transactions are open in one partition, and end in another order."""
    producers = [await s.opened(suffix=f"-{number:02}") for number in range(20)]
    await s.read()
    for number in (3, 7, 0, 1, 2):
        await s.end(producers[number], commit=number % 2 == 0, wait=True)
        await s.offsets(LATEST, committed=True)
    await s.list("Ongoing")
    for number in sorted(set(range(20)) - {3, 7, 0, 1, 2}, reverse=True):
        await s.end(producers[number], commit=True, wait=True, quietly=True)
    await s.read(offset=20)


async def waiting_reader(s: Script) -> None:
    """A reader of committed records that waits is answered when a marker makes them stable."""
    producer = await s.opened()
    waiting = asyncio.create_task(s.waiting_read(NEAR, 0))
    await asyncio.sleep(0.5)
    s.say(f"answered while open: {waiting.done()}")
    await s.end(producer, commit=True, wait=True)
    await waiting


async def large_transaction(s: Script) -> None:
    """A transaction of many batches is served in parts."""
    producer = await s.session()
    await s.add(producer, NEAR)
    for number in range(8):
        await s.produce(producer, f"{number}" * 500, quietly=True)
    await s.end(producer, commit=False, wait=True)
    for offset in (0, 4, 8):
        await s.read(offset=offset, max_bytes=1200)


SITUATIONS: tuple[Situation, ...] = (
    outside,
    after_the_end,
    levels,
    aborted_ranges,
    interleaved,
    listed_offsets,
    sequences,
    sequences_of_the_next_epoch,
    zombie_records,
    without_transactional_id,
    plain_records_of_a_transactional_producer,
    records_after_a_time_out,
    deleted_records,
    stranger_markers,
    markers_by_epoch,
    administrators_marker,
    markers_twice,
    described_producers,
    topic_deleted,
    topic_deleted_while_prepared,
    many_open,
    waiting_reader,
    large_transaction,
)
