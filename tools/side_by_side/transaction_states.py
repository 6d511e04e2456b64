"""Situations of one transactional id at its coordinator: sessions, partitions, the end, time-outs."""

import asyncio
from collections.abc import Awaitable, Callable

from harness.broker.wire import messages as m
from harness.broker.wire.transport import PeerError
from tools.side_by_side.transaction_cluster import CONCURRENT, FAR, NEAR, until
from tools.side_by_side.transaction_script import Producer, Script

Situation = Callable[[Script], Awaitable[None]]
SHORT_MS = 1_000
LAST_TIMEOUT_MS = 900_000
LONGEST_ID = 32_767
"""Characters of the longest string in Kafka's classic types."""


async def first_session(s: Script) -> None:
    """A transactional id is used for the first time."""
    producer = s.producer()
    await s.describe(producer)
    await s.init(producer)
    await s.describe(producer)
    await s.list()
    await s.log(producer)


async def next_session(s: Script) -> None:
    """A new session of an id without an open transaction raises the epoch."""
    producer = await s.session()
    await s.init(producer, timeout_ms=5_000)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=True, wait=True)
    await s.init(producer)
    await s.describe(producer)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=False, wait=True)
    await s.init(producer)
    await s.log(producer)


async def session_while_open(s: Script) -> None:
    """A new session of an id with an open transaction aborts that first."""
    producer = await s.opened()
    old = producer.of_epoch(0)
    await s.init(producer)
    await s.completed(producer)
    await s.init(producer)
    await s.describe(producer)
    await s.end(old, commit=True)
    await s.read()
    await s.log(producer)


async def session_continued(s: Script) -> None:
    """A producer that names its id and epoch gets the next epoch (KIP-360)."""
    producer = await s.session()
    first = (producer.producer_id, producer.epoch)
    await s.init(producer, known=first)
    await s.init(producer, known=first)
    await s.init(producer, known=(producer.producer_id, producer.epoch))
    await s.init(producer, known=first)
    await s.log(producer)


async def session_continued_while_open(s: Script) -> None:
    """A producer that names its id and epoch while its transaction is open has it aborted."""
    producer = await s.opened()
    known = (producer.producer_id, producer.epoch)
    await s.init(producer, known=known)
    await s.completed(producer)
    await s.init(producer, known=known)
    await s.init(producer, known=(known[0], known[1] + 1))
    await s.log(producer)


async def session_of_others(s: Script) -> None:
    """A producer that names another id or an epoch that is not its own is fenced, in the words of each version."""
    producer = await s.session()
    await s.begin_session(producer)
    await s.begin_session(producer)
    own = (producer.producer_id, producer.epoch)
    other = await s.session("-other")
    for version in (3, 4, 5):
        await s.init(producer.of_epoch(0), known=(other.producer_id, own[1]), version=version)
        await s.init(producer.of_epoch(0), known=(own[0], own[1] - 2), version=version)
        await s.init(producer.of_epoch(0), known=(own[0], own[1] + 1), version=version)
    await s.describe(producer, other)


async def session_of_nothing_known(s: Script) -> None:
    """A producer that names an id and an epoch of a transactional id that the coordinator does not know."""
    producer = s.producer()
    stranger = await s.session("-stranger")
    await s.init(producer, known=(stranger.producer_id, 5))
    await s.describe(producer)
    await s.init(producer)
    await s.log(producer)


async def half_named_sessions(s: Script) -> None:
    """An id without an epoch, and an epoch without an id."""
    producer = await s.session()
    for known in ((producer.producer_id, -1), (-1, 0), (-1, -2), (-2, -1)):
        await s.init(producer.of_epoch(0), known=known)


async def refused_timeouts(s: Script) -> None:
    """Time-outs of a transaction that the coordinator refuses, and the longest that it takes."""
    for timeout_ms in (0, -1, LAST_TIMEOUT_MS + 1):
        await s.init(s.producer(), timeout_ms=timeout_ms)
    await s.init(s.producer(), timeout_ms=LAST_TIMEOUT_MS)
    await s.init(s.producer(), timeout_ms=1)


async def no_transactional_id(s: Script) -> None:
    """An empty transactional id, in each request that has one."""
    nothing = Producer("", 1, 0)
    await s.init(nothing)
    await s.add(nothing, NEAR)
    await s.end(nothing, commit=True)
    await s.describe(nothing)
    await s.add_batched((nothing, [NEAR], True))
    await s.add_batched((nothing, [NEAR], False))
    request = m.AddOffsetsToTxnRequest(transactional_id="", producer_id=1, producer_epoch=0, group_id=s.topic)
    await s.fields(s.coordinator, request, 3)


async def unknown_id(s: Script) -> None:
    """Requests about a transactional id that the coordinator does not know."""
    nothing = Producer(s.topic + "-nothing", 1, 0)
    await s.add(nothing, NEAR)
    await s.end(nothing, commit=False)
    await s.describe(nothing)
    await s.add_batched((nothing, [NEAR], True))
    await s.add_batched((nothing, [NEAR], False))
    await s.produce(nothing, "a")


async def partitions(s: Script) -> None:
    """Partitions are added one by one, again, and together; each record of the coordinator has all of them."""
    producer = await s.session()
    await s.add(producer, NEAR)
    await s.add(producer, NEAR)
    await s.add(producer, 1)
    await s.add(producer, NEAR, 1)
    await s.add(producer, NEAR, FAR)
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await s.log(producer)
    await s.read(NEAR, 1, FAR)


async def no_partitions(s: Script) -> None:
    """A request that adds nothing."""
    producer = await s.session()
    await s.add(producer)
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await s.log(producer)


async def unknown_partitions(s: Script) -> None:
    """Partitions that do not exist, or are internal, keep all others out."""
    producer = await s.session()
    await s.add(producer, NEAR, 9)
    await s.add(producer, NEAR, topic="no-such-topic")
    await s.add(producer, NEAR, topic="__consumer_offsets")
    await s.add(producer, NEAR, topic="__transaction_state")
    await s.add(producer, NEAR, topic="")
    await s.add_batched((producer, [NEAR, 9], False))
    await s.add_batched((producer, [NEAR, 9], True))
    await s.describe(producer)


async def fenced_by_epoch(s: Script) -> None:
    """Each request of an older and of a newer epoch, in the words of each version."""
    producer = await s.session()
    await s.begin_session(producer)
    for other in (producer.of_epoch(-1), producer.of_epoch(1)):
        for version in (0, 1, 2, 3):
            await s.add(other, NEAR, version=version)
            await s.end(other, commit=True, version=version)
        await s.add_batched((other, [NEAR], False))
        await s.add_batched((other, [NEAR], True))
    await s.describe(producer)


async def fenced_by_epoch_while_open(s: Script) -> None:
    """An older and a newer epoch change nothing about a transaction that is open."""
    producer = await s.session()
    await s.begin_session(producer)
    await s.reopened(producer, NEAR)
    for other in (producer.of_epoch(-1), producer.of_epoch(1)):
        await s.add(other, 1)
        await s.end(other, commit=True)
        await s.end(other, commit=False)
        await s.add_batched((other, [NEAR], True))
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await s.log(producer)


async def fenced_by_id(s: Script) -> None:
    """Each request with the producer id of another producer."""
    producer = await s.opened()
    other = await s.session("-other")
    wrong = Producer(producer.transactional_id, other.producer_id, producer.epoch)
    for version in (1, 3):
        await s.add(wrong, NEAR, version=version)
        await s.end(wrong, commit=True, version=version)
    await s.add_batched((wrong, [NEAR], True))
    await s.produce(wrong, "a")
    await s.describe(producer, other)


async def committed(s: Script) -> None:
    """A transaction is committed, and a second EndTxn repeats or contradicts it."""
    producer = await s.opened(NEAR, FAR)
    await s.end(producer, commit=True, wait=True)
    await s.end(producer, commit=True)
    await s.end(producer, commit=False)
    await s.describe(producer)
    await s.log(producer)
    await s.read(NEAR, FAR)


async def aborted(s: Script) -> None:
    """A transaction is aborted, and a second EndTxn repeats or contradicts it."""
    producer = await s.opened(NEAR, FAR)
    await s.end(producer, commit=False, wait=True)
    await s.end(producer, commit=False)
    await s.end(producer, commit=True)
    await s.describe(producer)
    await s.log(producer)
    await s.read(NEAR, FAR)


async def ended_before_it_began(s: Script) -> None:
    """EndTxn of an id whose session has had no transaction yet."""
    producer = await s.session()
    await s.end(producer, commit=True)
    await s.end(producer, commit=False)
    await s.end(producer, commit=False, version=1)
    await s.describe(producer)
    await s.log(producer)


async def ended_late(s: Script) -> None:
    """A second EndTxn comes when the next transaction has begun, and ends that one (KAFKA-17754)."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=True, wait=True)
    await s.produce(producer, "too late")
    await s.end(producer, commit=False)
    await s.read()
    await s.log(producer)


async def ended_late_with_another_outcome(s: Script) -> None:
    """An EndTxn that commits comes when the next transaction has begun; its abort then comes too late."""
    producer = await s.opened()
    await s.end(producer, commit=False, wait=True)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=True, wait=True)
    await s.end(producer, commit=False)
    await s.read()
    await s.log(producer)


async def without_records(s: Script) -> None:
    """A transaction that has partitions and no records gets its markers."""
    producer = await s.session()
    for commit in (True, False):
        await s.add(producer, NEAR, FAR)
        await s.end(producer, commit=commit, wait=True)
    await s.read(NEAR, FAR)
    await s.producers(NEAR, FAR)
    await s.log(producer)


async def one_after_another(s: Script) -> None:
    """Transactions of one session, committed and aborted by turns."""
    producer = await s.session()
    for number in range(6):
        await s.reopened(producer, NEAR, FAR)
        await s.end(producer, commit=number % 2 == 0, wait=True)
    await s.read(NEAR, FAR)
    await s.producers(NEAR)
    await s.log(producer)


async def prepared(s: Script) -> None:
    """While a marker cannot be written the decision stands, and every other request has to wait."""
    for commit in (True, False):
        producer = await s.opened(NEAR, FAR, suffix=f"-{commit}")
        s.brokers.pause(s.leader(FAR))
        await s.end(producer, commit=commit)
        await s.until_unmarked(producer, 1)
        await s.describe(producer)
        await s.list("PrepareCommit", "PrepareAbort")
        await s.end(producer, commit=commit)
        await s.end(producer, commit=not commit)
        await s.add(producer, NEAR)
        await s.add(producer, 1)
        await s.add_batched((producer, [NEAR], True))
        await s.init(producer)
        await s.init(producer, known=(producer.producer_id, producer.epoch))
        await s.init(producer, known=(producer.producer_id, producer.epoch + 1))
        await s.add(producer.of_epoch(1), NEAR)
        await s.end(producer.of_epoch(-1), commit=commit)
        await s.produce(producer, "too late")
        s.brokers.resume(s.leader(FAR))
        await s.completed(producer)
        await s.log(producer)
    await s.read(FAR)


async def partly_marked(s: Script) -> None:
    """The markers of one broker are written, those of another one not yet."""
    producer = await s.opened(NEAR, FAR)
    s.brokers.pause(s.leader(FAR))
    await s.end(producer, commit=True)
    await s.until_unmarked(producer, 1)
    await s.read(NEAR)
    await s.describe(producer)
    s.brokers.resume(s.leader(FAR))
    await s.completed(producer)
    await s.read(FAR)
    await s.log(producer)


async def added_while_marked(s: Script) -> None:
    """The next transaction begins once the markers are written, and not before."""
    producer = await s.opened(FAR)
    s.brokers.pause(s.leader(FAR))
    await s.end(producer, commit=True)
    await s.add(producer, FAR)
    s.brokers.resume(s.leader(FAR))
    await s.completed(producer)
    await s.add(producer, FAR)
    await s.produce(producer, "next", partition=FAR)
    await s.end(producer, commit=True, wait=True)
    await s.read(FAR)
    await s.log(producer)


async def timed_out(s: Script) -> None:
    """A transaction that is open for too long is aborted, and its epoch raised."""
    producer = await s.opened(NEAR, FAR, timeout_ms=SHORT_MS)
    await s.until_state(producer, "CompleteAbort")
    await s.describe(producer)
    await s.add(producer, NEAR)
    await s.end(producer, commit=True)
    await s.end(producer, commit=True, version=1)
    await s.produce(producer, "too late")
    await s.read(NEAR, FAR)
    await s.producers(NEAR)
    await s.init(producer, known=(producer.producer_id, producer.epoch))
    await s.log(producer)


async def timed_out_and_begun_anew(s: Script) -> None:
    """A session that names nothing follows a time-out."""
    producer = await s.opened(timeout_ms=SHORT_MS)
    await s.until_state(producer, "CompleteAbort")
    await s.init(producer, timeout_ms=SHORT_MS)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=True, wait=True)
    await s.read()
    await s.log(producer)


async def timed_out_while_prepared(s: Script) -> None:
    """A decision that waits for its markers does not time out."""
    producer = await s.opened(NEAR, FAR, timeout_ms=SHORT_MS)
    s.brokers.pause(s.leader(FAR))
    await s.end(producer, commit=True)
    await s.until_unmarked(producer, 1)
    await asyncio.sleep(2 * SHORT_MS / 1000)
    await s.describe(producer)
    s.brokers.resume(s.leader(FAR))
    await s.completed(producer)
    await s.describe(producer)
    await s.log(producer)


async def idle(s: Script) -> None:
    """A session without an open transaction does not time out."""
    producer = await s.session(timeout_ms=SHORT_MS)
    await asyncio.sleep(2 * SHORT_MS / 1000)
    await s.describe(producer)
    await s.reopened(producer, NEAR)
    await s.end(producer, commit=True, wait=True)
    await asyncio.sleep(2 * SHORT_MS / 1000)
    await s.describe(producer)
    await s.log(producer)


async def expired(s: Script) -> None:
    """An id that is not used for long is forgotten; one with an open transaction is not."""
    unused, used = await s.session("-unused"), await s.opened(suffix="-used")
    still_open = await s.opened(suffix="-open")
    await s.end(used, commit=True, wait=True)

    async def are_forgotten() -> bool:
        request = m.DescribeTransactionsRequest(transactional_ids=[unused.transactional_id, used.transactional_id])
        known = (await s.ask(s.coordinator, request, 0)).transaction_states
        return not any(each.transaction_state for each in known)

    await until(are_forgotten)
    await s.describe(unused, used, still_open)
    await s.add(used, NEAR)
    await s.end(used, commit=True)
    await s.init(used.of_epoch(0), known=(used.producer_id, used.epoch))
    await s.init(unused)
    await s.log(unused, used, still_open)


async def two_producers(s: Script) -> None:
    """Two producers with one transactional id: the second fences the first, whatever that tries."""
    first = await s.opened()
    second = Producer(first.transactional_id)
    if await s.init(second) == CONCURRENT:
        await s.completed(first)
        await s.init(second)
    await s.add(first, NEAR)
    await s.produce(first, "zombie")
    await s.end(first, commit=True)
    await s.reopened(second, NEAR)
    await s.produce(first, "zombie")
    await s.end(first, commit=True)
    await s.end(first, commit=False)
    await s.init(first, known=(first.producer_id, first.epoch))
    await s.completed(second)
    await s.end(second, commit=True, wait=True)
    await s.read()
    await s.log(second)


async def two_producers_by_turns(s: Script) -> None:
    """Two producers with one transactional id that begin anew by turns."""
    one, other = s.producer(), s.producer()
    for producer in (one, other, one, other):
        if await s.init(producer) == CONCURRENT:
            await s.completed(producer)
            await s.init(producer)
        await s.add(producer, NEAR)
    await s.end(one, commit=True)
    await s.end(other, commit=True, wait=True)
    await s.read()
    await s.log(one)


async def listed(s: Script) -> None:
    """Transactions are listed by state, producer id and age."""
    empty, ongoing = await s.session("-empty"), await s.opened(suffix="-ongoing")
    complete = await s.opened(suffix="-complete")
    await s.end(complete, commit=True, wait=True)
    for states in ((), ("Ongoing",), ("Empty", "CompleteCommit"), ("Dead",), ("ongoing", "Odd", "Odd")):
        await s.list(*states)
    await s.list(ids=[ongoing.producer_id])
    await s.list("Empty", ids=[ongoing.producer_id])
    await s.list(ids=[10**9])
    await s.list(longer_than_ms=0)
    await s.list(longer_than_ms=60_000)
    await s.list(version=0)
    await s.describe(empty, ongoing, complete, s.producer("-unknown"))


async def verified(s: Script) -> None:
    """A broker asks whether partitions are part of a transaction (KIP-890)."""
    producer = await s.session()
    await s.add_batched((producer, [NEAR], True))
    await s.add(producer, NEAR)
    for version in (4, 5):
        await s.add_batched((producer, [NEAR], True), version=version)
        await s.add_batched((producer, [NEAR, 1], True), version=version)
    other = await s.opened(FAR, suffix="-other")
    await s.add_batched((producer, [NEAR], True), (other, [NEAR, FAR], True))
    await s.add_batched((producer, [1], False), (other, [NEAR], False))
    await s.describe(producer, other)
    await s.end(producer, commit=True, wait=True)
    await s.add_batched((producer, [NEAR], True))


async def long_ids(s: Script) -> None:
    """Transactional ids of up to 32 KB."""
    longest = s.producer("x" * (LONGEST_ID - len(s.topic)))
    await s.init(longest)
    await s.add(longest, NEAR)
    await s.produce(longest, "a")
    await s.end(longest, commit=True, wait=True)
    await s.log(longest)
    await s.read()


async def longer_ids(s: Script) -> None:
    """A transactional id that is too long to be stored."""
    producer = s.producer("x" * LONGEST_ID)
    for _ in range(2):
        try:
            await s.init(producer)
        except PeerError:
            s.say("init: no answer")
    await s.init(s.producer())


async def odd_ids(s: Script) -> None:
    """Transactional ids with spaces, other scripts, and nothing but dots."""
    for suffix in (" with space", "-Ωμέγα", "/../", "\n"):
        producer = await s.opened(suffix=suffix)
        await s.end(producer, commit=True, wait=True)
        await s.describe(producer)
        await s.log(producer)


SITUATIONS: tuple[Situation, ...] = (
    first_session,
    next_session,
    session_while_open,
    session_continued,
    session_continued_while_open,
    session_of_others,
    session_of_nothing_known,
    half_named_sessions,
    refused_timeouts,
    no_transactional_id,
    unknown_id,
    partitions,
    no_partitions,
    unknown_partitions,
    fenced_by_epoch,
    fenced_by_epoch_while_open,
    fenced_by_id,
    committed,
    aborted,
    ended_before_it_began,
    ended_late,
    ended_late_with_another_outcome,
    without_records,
    one_after_another,
    prepared,
    partly_marked,
    added_while_marked,
    timed_out,
    timed_out_and_begun_anew,
    timed_out_while_prepared,
    idle,
    expired,
    two_producers,
    two_producers_by_turns,
    listed,
    verified,
    long_ids,
    longer_ids,
    odd_ids,
)
