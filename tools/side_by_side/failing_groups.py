"""Situations in which a group's coordinator fails, request by request, with the answers of the other brokers.

`failing-groups-3.9.json` has what Kafka 3.9 answered, three brokers each time, to
`python -m tools.side_by_side.failing_groups`. A test plays the same to this project's brokers in virtual time.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Transport
from tools.peers import create_topic, running
from tools.side_by_side.brokers import Brokers, RealBrokers
from tools.side_by_side.group_script import TIMEOUT_S, TOPIC, Script

RECORDED = Path(__file__).with_name("failing-groups-3.9.json")
IDS = (0, 1, 2)


Situation = Callable[[Script, Brokers], Awaitable[None]]


async def killed_before_it_answers(s: Script, brokers: Brokers) -> None:
    """The coordinator dies when a follower has the assignment and no member was told of it: it counts."""
    await (await s.member())
    lost = (await s.find_coordinator()).node_id
    silent, survivor = (each for each in IDS if each != lost)
    brokers.pause(silent)
    before = await s.stored_bytes(*brokers.address(survivor))
    answer = asyncio.create_task(s.sync("m1", 1, {"m1": b"all"}, quietly=True))
    async with asyncio.timeout(TIMEOUT_S):
        while await s.stored_bytes(*brokers.address(survivor)) == before:  # noqa: ASYNC110  in another process
            await asyncio.sleep(0.1)
    s.say(f"answered: {answer.done()}")
    brokers.kill(lost)
    await asyncio.gather(answer, return_exceptions=True)
    s.looks_for_it(*brokers.address(survivor))
    await s.heartbeat("m1", 1)
    await s.sync("m1", 1)
    await s.commit(5, "m1", 1)
    await s.describe()


async def killed_before_it_writes(s: Script, brokers: Brokers) -> None:
    """The coordinator dies when all have joined a generation without an assignment yet: the one before counts."""
    await s.stable()
    await s.commit(5, "m1", 1)
    await s.join("m1")
    lost = (await s.find_coordinator()).node_id
    brokers.kill(lost)
    s.looks_for_it(*brokers.address((lost + 1) % len(IDS)))
    await s.heartbeat("m1", 2)
    await s.heartbeat("m1", 1)
    await s.sync("m1", 2, {"m1": b"new"})
    await s.sync("m1", 1)
    await s.committed()
    await s.join("m1")
    await s.sync("m1", 2, {"m1": b"new"})


async def offline(s: Script, brokers: Brokers) -> None:
    """No coordinator of the group is left: until its broker is back the others say that they do not coordinate it."""
    await s.stable()
    await s.commit(5, "m1", 1)
    lost = (await s.find_coordinator()).node_id
    left = brokers.address((lost + 1) % len(IDS))
    brokers.kill(lost)
    s.goes_on_at(*left)
    async with asyncio.timeout(TIMEOUT_S):
        while (await s.find_coordinator()).error_code == 0:  # noqa: ASYNC110  it happens in another process
            await asyncio.sleep(0.1)
    for version in (0, 3, 4):
        await s.find(version)
    await s.join()
    await s.sync("m1", 1)
    await s.heartbeat("m1", 1)
    await s.commit(6, "m1", 1)
    await s.committed()
    await s.describe()
    await s.list()
    await s.delete()
    await s.delete_offset()
    await s.leave(("m1", None))
    await brokers.start(lost)
    s.looks_for_it(*left)
    await s.heartbeat("m1", 1)
    await s.sync("m1", 1)
    await s.committed()


SITUATIONS: Mapping[Situation, int] = {killed_before_it_answers: 3, killed_before_it_writes: 3, offline: 1}
"""With the number of replicas that `__consumer_offsets` has."""


def properties(replicas: int) -> dict[str, str]:
    """Return what the brokers are told."""
    return {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(replicas),
    }


async def play(situation: Situation, transport: Transport, brokers: Brokers) -> list[str]:
    """Return what a cluster answers in a situation."""
    script = Script(transport, *brokers.address(0), group=situation.__name__)
    await situation(script, brokers)
    return script.transcript


def main() -> None:
    transcripts = {}
    for situation, replicas in SITUATIONS.items():
        with (
            tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
            running("kafka", Path(folder), properties=properties(replicas)) as peer,
        ):
            create_topic(peer, TOPIC, 1)
            transcripts[situation.__name__] = asyncio.run(play(situation, TcpTransport(), RealBrokers(peer)))
    RECORDED.write_text(json.dumps(transcripts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
