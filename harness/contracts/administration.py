"""Requests of administrators to a broker, or to the cluster's metadata through its view.

With ZooKeeper they are znodes, as tools wrote them, and survive a change of controller.
"""

import json
from typing import TYPE_CHECKING

from harness.cluster.capabilities import CanAsk
from harness.contracts.faults import Effect, FaultContext, mismatch
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import NO_BROKER, TopicPartition
from harness.verdict import FaultVerdict
from harness.zookeeper.view import PartitionView

if TYPE_CHECKING:
    from harness.broker.wire.transport import Message

ELECTIONS = "/admin/preferred_replica_election"
EMPTY_ELECTION = b'{"version":1,"partitions":[]}'
"""For `ELECTIONS`: requests no election; the active controller deletes it."""
ASK_TIMEOUT_S = 10.0


async def ask_for_election(context: FaultContext, partition: TopicPartition, *, timeout_s: float) -> None:
    """Request through ZooKeeper that the preferred replica leads, after earlier requests are done.

    Raises:
        DeadlineError: an earlier request does not finish.
    """
    election = {"version": 1, "partitions": [{"topic": partition[0], "partition": partition[1]}]}
    data = json.dumps(election, separators=(",", ":")).encode()
    await until(
        lambda: context.zookeeper.create(ELECTIONS, data),
        bool,
        what="the end of the election that was asked for before",
        timeout_s=timeout_s,
    )


async def ask_for_replicas(
    context: FaultContext,
    partition: TopicPartition,
    replicas: list[int],
    *,
    timeout_s: float,
) -> None:
    """Ask for a reassignment; the same replicas in another order only change the preferred leader.

    Raises:
        DeadlineError: an earlier request does not finish.
    """
    await until(
        lambda: context.view.reassign(*partition, replicas),
        bool,
        what="the end of the reassignment that was asked for before",
        timeout_s=timeout_s,
    )


async def replicas_are(
    context: FaultContext,
    partition: TopicPartition,
    replicas: list[int],
    *,
    timeout_s: float,
) -> None:
    """Wait until a partition has exactly these replicas, none being added or removed; raises DeadlineError."""

    async def assignment() -> tuple[int, ...]:
        return (await partition_now(context, partition)).assignment

    await until(
        assignment,
        lambda seen: seen == tuple(replicas),
        what=f"{named(partition)} on {replicas}",
        timeout_s=timeout_s,
    )


async def partition_now(context: FaultContext, partition: TopicPartition) -> PartitionView:
    """Return a partition's state, with replicas being added or removed; raises ClusterError if it does not exist."""
    for seen in await context.view.partitions():
        if (seen.topic, seen.partition) == partition:
            return seen
    raise ClusterError(f"there is no partition {named(partition)}")


def named(partition: TopicPartition) -> str:
    """Return a partition's name."""
    return f"{partition[0]}-{partition[1]}"


async def late(context: FaultContext, brokers: tuple[int, ...] | list[int], error: DeadlineError) -> Effect:
    """Return the effect of a request that was not done in time: none, if a broker that it needs is away."""
    missing = sorted(set(brokers) - set(await context.view.registrations()))
    if missing:
        return Effect(verdict=FaultVerdict.INCONCLUSIVE, detail=f"{error}; not registered: {missing}")
    return mismatch(str(error))


async def acting_controller(context: FaultContext, *, timeout_s: float) -> None:
    """Wait until a live broker is controller and has handled the request; raises DeadlineError."""

    async def acts() -> bool:
        controller = (await context.view.controller()).broker_id
        return controller in await context.view.registrations() and not await context.zookeeper.exists(ELECTIONS)

    await until(acts, bool, what="a controller that acts", timeout_s=timeout_s)


async def ask(context: FaultContext, broker_id: int, request: "Message", version: int) -> "Message":
    """Return a broker's response to a request; raises ClusterError without one."""
    from harness.broker.wire.transport import PeerError

    assert isinstance(context.driver, CanAsk)
    connection = await context.driver.connect(broker_id, timeout_s=ASK_TIMEOUT_S)
    try:
        return await connection.request(request, version, timeout_s=ASK_TIMEOUT_S)
    except PeerError as error:
        raise ClusterError(str(error)) from error
    finally:
        connection.close()


async def ask_controller(context: FaultContext, request: "Message", version: int) -> "Message":
    """Return the controller's response to a request; raises ClusterError without a controller or a response."""
    controller = (await context.view.controller()).broker_id
    if controller == NO_BROKER:
        raise ClusterError("there is no controller to ask")
    return await ask(context, controller, request, version)
