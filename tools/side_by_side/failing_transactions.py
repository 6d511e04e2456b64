"""Situations in which the coordinator of transactions dies: before, while and after it stores each state.

    python -m tools.side_by_side.failing_transactions [SITUATION ...] [--check]

`failing-transactions-3.9.json` has what three brokers of Kafka 3.9.1 answered. A test plays the same to this project's
brokers in virtual time.
"""

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import PeerError, Transport
from harness.values import TRANSACTIONS_TOPIC
from tools.peers import running
from tools.side_by_side.brokers import Brokers, RealBrokers
from tools.side_by_side.recording import record_or_check
from tools.side_by_side.transaction_cluster import NEAR, TRANSACTION, topic_named, until
from tools.side_by_side.transaction_script import Producer, Script

RECORDED = Path(__file__).with_name("failing-transactions-3.9.json")
BROKERS = 3
ALL, PAIR = 3, 2
"""Replicas of `__transaction_state`: with a pair one broker is left that has only records."""

Situation = Callable[[Script], Awaitable[None]]


def properties(replicas: int) -> dict[str, str]:
    """Return what the brokers are told."""
    return {
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }


async def replaced(s: Script) -> None:
    """Kill the coordinator, and find the next one."""
    s.brokers.kill(s.coordinator)
    s.coordinator = await s.found(s.topic, TRANSACTION)


async def until_stored(s: Script, before: int) -> None:
    """Wait until the broker that will be left has more of `__transaction_state` than before."""

    async def has_more() -> bool:
        return await stored_bytes(s) > before

    await until(has_more)


async def stored_bytes(s: Script) -> int:
    """Return how much the broker that will be left has of `__transaction_state`."""
    wanted = m.DescribeLogDirsRequest.DescribableLogDirTopic(topic=TRANSACTIONS_TOPIC, partitions=[0])
    answer = await s.ask(s.known, m.DescribeLogDirsRequest(topics=[wanted]), 1)
    return sum(each.partition_size for of in answer.results for topic in of.topics for each in topic.partitions)


async def killed_while(s: Script, request: Callable[[], Awaitable[object]]) -> None:
    """Have the coordinator die when one follower has its record, and another is too slow for an answer."""
    silent = next(each for each in range(BROKERS) if each not in (s.coordinator, s.known))
    s.brokers.pause(silent)
    before = await stored_bytes(s)
    answer = asyncio.ensure_future(request())
    await until_stored(s, before)
    s.say(f"answered: {answer.done()}")
    s.brokers.kill(s.coordinator)
    [failed] = await asyncio.gather(answer, return_exceptions=True)
    s.say("no answer" if isinstance(failed, PeerError) else f"answered {failed!r}")
    s.coordinator = await s.found(s.topic, TRANSACTION)
    s.brokers.resume(silent)


async def to_its_end(s: Script, producer: Producer) -> None:
    """Write a transaction with the next coordinator, commit it, and say everything that is stored."""
    await s.add(producer, NEAR)
    await s.produce(producer, "next")
    await s.end(producer, commit=True, wait=True)
    await s.read()
    await s.log(producer)


async def killed_while_it_stores_a_session(s: Script) -> None:
    """The coordinator dies when InitProducerId is stored by a follower, and not answered: the session counts."""
    producer = s.producer()
    await killed_while(s, lambda: s.init(producer))
    await s.describe(producer)
    await s.init(producer)
    await to_its_end(s, producer)


async def killed_while_it_adds_partitions(s: Script) -> None:
    """The coordinator dies when AddPartitionsToTxn is stored by a follower, and not answered: they are added."""
    producer = await s.session()
    await killed_while(s, lambda: s.add(producer, NEAR))
    await s.describe(producer)
    await to_its_end(s, producer)


async def killed_while_it_decides_to_commit(s: Script) -> None:
    """The coordinator dies when a commit is stored by a follower, and not answered: the next one carries it out."""
    producer = await s.opened()
    await killed_while(s, lambda: s.end(producer, commit=True))
    await s.completed(producer)
    await s.end(producer, commit=False)
    await s.end(producer, commit=True)
    await to_its_end(s, producer)


async def killed_while_it_decides_to_abort(s: Script) -> None:
    """The coordinator dies when an abort is stored by a follower, and not answered: the next one carries it out."""
    producer = await s.opened()
    await killed_while(s, lambda: s.end(producer, commit=False))
    await s.completed(producer)
    await s.end(producer, commit=True)
    await s.end(producer, commit=False)
    await to_its_end(s, producer)


async def killed_with_a_session(s: Script) -> None:
    """The coordinator dies after a session has begun."""
    producer = await s.session()
    await replaced(s)
    await s.describe(producer)
    await s.init(producer.of_epoch(0), known=(producer.producer_id, producer.epoch + 1))
    await to_its_end(s, producer)


async def killed_with_a_session_continued(s: Script) -> None:
    """The coordinator dies after a session was continued; its successor does not know the epoch before (KIP-360)."""
    producer = await s.session()
    first = (producer.producer_id, producer.epoch)
    await s.init(producer, known=first)
    await replaced(s)
    await s.init(producer, known=first)
    await s.init(producer, known=(producer.producer_id, producer.epoch))
    await to_its_end(s, producer)


async def killed_while_open(s: Script) -> None:
    """The coordinator dies while a transaction is open."""
    producer = await s.opened()
    await replaced(s)
    await s.describe(producer)
    await s.produce(producer, "more")
    await to_its_end(s, producer)


async def killed_while_open_and_begun_anew(s: Script) -> None:
    """The coordinator dies while a transaction is open, and the producer begins anew."""
    producer = await s.opened()
    await replaced(s)
    await s.init(producer)
    await s.completed(producer)
    await s.init(producer)
    await to_its_end(s, producer)


async def killed_after_the_end(s: Script) -> None:
    """The coordinator dies after a transaction is complete; a late EndTxn is answered as before."""
    producer = await s.opened()
    await s.end(producer, commit=True, wait=True)
    await replaced(s)
    await s.end(producer, commit=True)
    await s.end(producer, commit=False)
    await s.describe(producer)
    await to_its_end(s, producer)


async def killed_before_the_markers(s: Script) -> None:
    """The coordinator dies when its decision is stored and no marker is written: the next one writes them."""
    for_records = s.leader(NEAR)
    producer = await s.opened()
    s.brokers.pause(for_records)
    await s.end(producer, commit=True)
    await replaced(s)
    await s.describe(producer)
    await s.end(producer, commit=True)
    await s.end(producer, commit=False)
    await s.add(producer, NEAR)
    await s.init(producer)
    s.brokers.resume(for_records)
    await s.completed(producer)
    await s.until_led()
    await s.read()
    await to_its_end(s, producer)


async def killed_before_the_markers_of_an_abort(s: Script) -> None:
    """The coordinator dies when a time-out has decided to abort and no marker is written."""
    for_records = s.leader(NEAR)
    producer = await s.opened(timeout_ms=1000)
    s.brokers.pause(for_records)
    await s.until_state(producer, "PrepareAbort")
    await replaced(s)
    await s.describe(producer)
    s.brokers.resume(for_records)
    await s.completed(producer)
    await s.until_led()
    await s.end(producer, commit=True)
    await s.read()
    await s.log(producer)


async def offline(s: Script) -> None:
    """No broker is left that has the transaction: the others say so until one is back."""
    producer = await s.opened()
    having = await replicas(s)
    left = next(each for each in range(BROKERS) if each not in having)
    for each in having:
        s.brokers.kill(each)
    s.known = s.coordinator = left
    request = m.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[s.topic])

    async def is_refused() -> bool:
        return bool((await s.ask(left, request, 4)).coordinators[0].error_code)

    await until(is_refused)
    await s.fields(left, request, 4)
    await s.init(producer.of_epoch(0))
    await s.add(producer, NEAR)
    await s.end(producer, commit=True)
    await s.describe(producer)
    await s.list()
    for each in having:
        await s.brokers.start(each)
    s.coordinator = await s.found(s.topic, TRANSACTION)
    await to_its_end(s, producer)


SITUATIONS: Mapping[Situation, int] = {
    killed_while_it_stores_a_session: ALL,
    killed_while_it_adds_partitions: ALL,
    killed_while_it_decides_to_commit: ALL,
    killed_while_it_decides_to_abort: ALL,
    killed_with_a_session: PAIR,
    killed_with_a_session_continued: PAIR,
    killed_while_open: PAIR,
    killed_while_open_and_begun_anew: PAIR,
    killed_after_the_end: PAIR,
    killed_before_the_markers: PAIR,
    killed_before_the_markers_of_an_abort: PAIR,
    offline: PAIR,
}
"""With the number of replicas that `__transaction_state` has."""


async def replicas(s: Script) -> list[int]:
    """Return the brokers that have `__transaction_state`."""
    answer = await s.ask(s.known, m.MetadataRequest(topics=[topic_named(TRANSACTIONS_TOPIC)]), 8)
    return [int(each) for each in answer.topics[0].partitions[0].replica_nodes]


async def play(situation: Situation, transport: Transport, brokers: Brokers) -> list[str]:
    """Return what a cluster answers and stores in a situation; the records are at a broker that is never killed.

    How many elections a failover takes is chance, so a successor's epoch is not told.
    """
    script = Script(transport, brokers, topic=situation.__name__.replace("_", "-"))
    script.coordinator = await script.found(script.topic, TRANSACTION)
    await script.begin_session(Producer("first"))
    others = [each for each in range(BROKERS) if each != script.coordinator]
    having = await replicas(script)
    script.known = next((each for each in others if each not in having), others[0])
    await script.create(script.topic, near=script.known, far=script.known)
    if SITUATIONS[situation] == PAIR:
        script.known = next(each for each in others if each in having)
    await situation(script)
    return [re.sub(r"(?<=by coordinator epoch )[1-9]\d*", "of a successor", line) for line in script.transcript]


def asked_of_kafka(situation: Situation) -> list[str]:
    """Return what Kafka answers in a situation, on a cluster of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
        running("kafka", Path(folder), brokers=BROKERS, properties=properties(SITUATIONS[situation])) as peer,
    ):
        return asyncio.run(play(situation, TcpTransport(), RealBrokers(peer)))


def main() -> int:
    """Play situations to real Kafka, and keep or compare what it says."""
    return record_or_check(
        RECORDED, list(SITUATIONS), lambda chosen: {each.__name__: asked_of_kafka(each) for each in chosen}
    )


if __name__ == "__main__":
    raise SystemExit(main())
