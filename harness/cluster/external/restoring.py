"""Restores an existing cluster: paused brokers resume, stopped ones start, the run's topics are deleted.

`python -m harness.cluster.external.restoring guard ROOT` waits for SIGTERM, which the supervisor's end sends, and then
does all of it. `… resume ROOT BROKER SECONDS` lets one broker go on after that time, or at SIGTERM. Both are children
of the supervisor with time of grace, as those of `harness/cluster/containers/guard.py` are.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Iterable
from pathlib import Path

from harness.cluster.external.place import CUSTOM, TOUCHED, ExternalCluster, Notes, listens
from harness.errors import ClusterError, DeadlineError
from harness.kafka.brokers import listed_brokers
from harness.kafka.security.settings import security_of
from harness.system.waiting import until

GUARD, RESUME = "guard", "resume"
MARGIN_S = 60.0
"""For all steps that run no command and wait for nothing."""
START_TIMEOUT_S = 240.0
SESSION_TIMEOUT_S = 90.0
TOPICS_TIMEOUT_S = 60.0
PROBE_TIMEOUT_S = 5.0
ANSWERING_TIMEOUT_S = 30.0
"""For a broker that has just been registered."""


def grace_s(cluster: ExternalCluster) -> float:
    """Return how long undoing everything may take: each broker is resumed and started, twice, one after the other."""
    custom = sum(action.endswith(".heal") for action in cluster.commands)
    once_s = (2 + custom) * cluster.timeout_s + SESSION_TIMEOUT_S + START_TIMEOUT_S
    each_s = 2 * once_s + ANSWERING_TIMEOUT_S + 2 * PROBE_TIMEOUT_S
    return len(cluster.hosts) * each_s + TOPICS_TIMEOUT_S + MARGIN_S


async def restore(root: Path) -> list[str]:
    """Undo what the notes say, and remove the run's topics; return a sentence for each thing that is left.

    A command that timed out may have had its effect later, so every broker that was ever touched is checked again.
    """
    cluster, notes = ExternalCluster.load(root), Notes(root)
    left: list[str] = []
    await _each(left, [healed(cluster, notes, name, broker_id) for name, broker_id in notes.custom()])
    await _each(left, [resumed(cluster, notes, broker_id) for broker_id in notes.of("paused")])
    await _each(left, [started(cluster, notes, broker_id) for broker_id in notes.of("down")])
    await _each(left, [_put_right(cluster, notes, broker_id) for broker_id in notes.of(TOUCHED)])
    await _each(left, [_without_topics(cluster)])
    return left


async def _each(left: list[str], doings: Iterable[Awaitable[None]]) -> None:
    for doing in doings:
        try:
            await doing
        except Exception as error:  # noqa: BLE001  whatever it is, the others are undone
            left.append(str(error) or repr(error))


async def _put_right(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Make a touched broker answer, if it does not; one that is still noted could not be restored before."""
    address = cluster.direct(broker_id)
    if broker_id in {*notes.of("down"), *notes.of("paused")}:
        return
    if await refuses(address, PROBE_TIMEOUT_S):
        if not {"start", "bounce"}.isdisjoint(cluster.commands):
            notes.add("down", broker_id)
            await started(cluster, notes, broker_id)
        return
    what = f"an answer of broker {broker_id}"
    try:
        await until(
            lambda: answers(cluster, broker_id, PROBE_TIMEOUT_S), bool, what=what, timeout_s=ANSWERING_TIMEOUT_S
        )
    except DeadlineError:
        if "resume" in cluster.commands:
            notes.add("paused", broker_id)
            await resumed(cluster, notes, broker_id)


def paused(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Pause a broker that is noted; if the command outlasts the pause, resume it at once."""
    try:
        cluster.carry_out("pause", broker_id)
    finally:  # a command that was killed may have had its effect
        if broker_id not in notes.of("paused"):
            notes.add("paused", broker_id)
            cluster.carry_out("resume", broker_id)
            notes.remove("paused", broker_id)


async def healed(cluster: ExternalCluster, notes: Notes, name: str, broker_id: int) -> None:
    """Heal a fault of the cluster file."""
    await asyncio.to_thread(cluster.carry_out, f"{name}.heal", broker_id)
    notes.remove(CUSTOM + name, broker_id)


async def resumed(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Resume a paused broker."""
    await asyncio.to_thread(cluster.carry_out, "resume", broker_id)
    notes.remove("paused", broker_id)


async def started(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Start a broker, unless it runs, once its old registration is gone; before that it would exit at once.

    Without the command `start`, the platform that manages the broker starts it.
    """
    address = cluster.direct(broker_id)
    if await listens(address):  # it never went down, or another process has started it
        notes.remove("down", broker_id)
        return
    if "start" not in cluster.commands:
        what = f"start of broker {broker_id} by what manages it"
        await until(lambda: listens(address), bool, what=what, timeout_s=START_TIMEOUT_S)
        notes.remove("down", broker_id)
        return
    async with cluster.view() as view:
        what = f"end of broker {broker_id}'s old registration"
        gone = until(view.registrations, lambda seen: broker_id not in seen, what=what, timeout_s=SESSION_TIMEOUT_S)
        await gone
        await asyncio.to_thread(cluster.carry_out, "start", broker_id)
        what = f"broker {broker_id} registered"
        await until(view.registrations, lambda seen: broker_id in seen, what=what, timeout_s=START_TIMEOUT_S)
    notes.remove("down", broker_id)


async def refuses(address: str, timeout_s: float) -> bool:
    """Return whether no server listens at host:port; a paused one does not answer once its backlog is full."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, int(port))
    except TimeoutError:
        return False
    except OSError:
        return True
    writer.close()
    return False


async def answers(cluster: ExternalCluster, broker_id: int, timeout_s: float) -> bool:
    """Return whether a broker serves metadata."""
    host, _, port = cluster.direct(broker_id).rpartition(":")
    try:
        security = security_of(cluster.client)
        return bool(await listed_brokers(host, int(port), timeout_s=timeout_s, security=security))
    except ClusterError:
        return False


async def topics_of(cluster: ExternalCluster) -> list[str]:
    """Return the topics that are the run's, by how their names begin."""
    async with cluster.view() as view:
        return sorted(topic for topic in await view.topics() if topic.startswith(cluster.prefix))


async def _without_topics(cluster: ExternalCluster) -> None:
    assert cluster.prefix, "without a prefix every topic would be the run's"
    async with cluster.view() as view:

        async def left() -> list[str]:
            return [topic for topic in await view.topics() if topic.startswith(cluster.prefix)]

        for topic in await left():
            await view.delete_topic(topic)
        await until(left, lambda topics: not topics, what="the run's topics gone", timeout_s=TOPICS_TIMEOUT_S)


def main(arguments: list[str]) -> int:
    """Carry out one of the two commands and return the exit status."""
    from harness.cluster.containers.data_copy import containers_lock

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # where the supervisor could not
    command, root = arguments[0], Path(arguments[1])
    if command == RESUME:
        broker_id, seconds = int(arguments[2]), float(arguments[3])
        signal.sigtimedwait({signal.SIGTERM}, seconds)
        if broker_id in Notes(root).of("paused"):
            ExternalCluster.load(root).carry_out("resume", broker_id)
            Notes(root).remove("paused", broker_id)
        return 0
    signal.sigwait({signal.SIGTERM})
    with containers_lock(root, grace_s(ExternalCluster.load(root))):  # a reaper keeps the run meanwhile
        left = asyncio.run(restore(root))
    sys.stderr.writelines(f"{sentence}\n" for sentence in left)
    return bool(left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
