"""Waits until a simulated cluster is quiescent, so that what its disks hold can be compared.

The coordinator of a transaction that a client has left open aborts it at its time-out, which may come as the schedule
ends.
"""

from contextlib import suppress

from harness.errors import DeadlineError
from harness.simulation.cluster import SimulatedCluster
from harness.system.process_state import ProcessState
from harness.system.waiting import until

POLL_S = 0.5


async def caught_up(cluster: SimulatedCluster, patience_s: float) -> None:
    """Return once every member of an ISR has the log of its leader, or after `patience_s`."""

    async def is_behind() -> bool:
        return _is_behind(cluster)

    with suppress(DeadlineError):
        await until(is_behind, lambda behind: not behind, what="replicas", timeout_s=patience_s, every_s=POLL_S)


def _is_behind(cluster: SimulatedCluster) -> bool:
    """Return whether a member of an ISR that runs lacks records of its leader."""
    running = {key: each.broker for key, each in cluster.brokers.items() if each.state is ProcessState.RUNNING}
    logs = {
        broker_id: {partition.key: partition for partition in broker.replicas.replicas.all()}
        for broker_id, broker in running.items()
        if broker is not None and broker.ledger
    }
    return any(
        (follower := logs.get(each, {}).get(key)) is not None
        and follower.log.log_end_offset < leader.log.log_end_offset
        for held in logs.values()
        for key, leader in held.items()
        if leader.is_leader
        for each in leader.isr
    )
