"""What makes a cluster of somebody else's what it was: paused brokers go on, stopped ones start, our topics go.

`python -m harness.cluster.external.restoring guard ROOT` waits for SIGTERM, which the supervisor's end sends, and then
does all of it. `… resume ROOT BROKER SECONDS` lets one broker go on after that time, or at SIGTERM. Both are children
of the supervisor with time of grace, as those of `harness/cluster/containers/guard.py` are.
"""

import asyncio
import signal
import sys
from pathlib import Path

from harness.cluster.external.place import ExternalCluster, Notes, listens
from harness.system.waiting import until

GUARD, RESUME = "guard", "resume"
GRACE_S = 120.0
"""For commands and for the end of dead brokers' sessions."""
START_TIMEOUT_S = 240.0
SESSION_TIMEOUT_S = 90.0
TOPICS_TIMEOUT_S = 60.0


async def restore(root: Path) -> list[str]:
    """Undo what the notes say, and remove the run's topics; return a sentence for each thing that is left."""
    cluster, notes = ExternalCluster.load(root), Notes(root)
    left = []
    for doing in (
        *(resumed(cluster, notes, broker_id) for broker_id in notes.of("paused")),
        *(started(cluster, notes, broker_id) for broker_id in notes.of("down")),
        _without_topics(cluster),
    ):
        try:
            await doing
        except Exception as error:  # noqa: BLE001  whatever it is, the others are undone
            left.append(str(error) or repr(error))
    return left


def paused(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Pause a broker that is noted; when the command took so long that the pause is over, let it go on at once."""
    try:
        cluster.carry_out("pause", broker_id)
    finally:  # also one that was killed may have been heard
        if broker_id not in notes.of("paused"):
            notes.add("paused", broker_id)
            cluster.carry_out("resume", broker_id)
            notes.remove("paused", broker_id)


async def resumed(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Let a paused broker go on."""
    await asyncio.to_thread(cluster.carry_out, "resume", broker_id)
    notes.remove("paused", broker_id)


async def started(cluster: ExternalCluster, notes: Notes, broker_id: int) -> None:
    """Start a broker, unless it runs, when its old registration is gone; while that exists, it would end at once."""
    from harness.zookeeper.kazoo_view import KazooView

    if await listens(cluster.addresses[broker_id]):  # it never went down, or somebody else has started it
        notes.remove("down", broker_id)
        return
    async with KazooView(cluster.zookeeper_connect) as view:
        what = f"end of broker {broker_id}'s old registration"
        gone = until(view.registrations, lambda seen: broker_id not in seen, what=what, timeout_s=SESSION_TIMEOUT_S)
        await gone
        await asyncio.to_thread(cluster.carry_out, "start", broker_id)
        what = f"broker {broker_id} registered"
        await until(view.registrations, lambda seen: broker_id in seen, what=what, timeout_s=START_TIMEOUT_S)
    notes.remove("down", broker_id)


async def topics_of(cluster: ExternalCluster) -> list[str]:
    """Return the topics that are the run's, by how their names begin."""
    from harness.zookeeper.kazoo_view import KazooView

    async with KazooView(cluster.zookeeper_connect) as view:
        return sorted(topic for topic in await view.topics() if topic.startswith(cluster.prefix))


async def _without_topics(cluster: ExternalCluster) -> None:
    from harness.zookeeper.kazoo_view import KazooView

    assert cluster.prefix, "without a prefix every topic would be the run's"
    async with KazooView(cluster.zookeeper_connect) as view:

        async def left() -> list[str]:
            return [topic for topic in await view.topics() if topic.startswith(cluster.prefix)]

        for topic in await left():
            await view.create(f"/admin/delete_topics/{topic}", b"")
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
    with containers_lock(root, GRACE_S):  # a reaper keeps the run meanwhile
        left = asyncio.run(restore(root))
    sys.stderr.writelines(f"{sentence}\n" for sentence in left)
    return bool(left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
