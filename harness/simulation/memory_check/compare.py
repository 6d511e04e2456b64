"""What differs between the memory of each broker and what it would load after a restart, in a cluster at rest.

At rest means that the load has ended and no fault is in force.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.broker.server import Broker
from harness.broker.zookeeper.znodes import MalformedZnode
from harness.events import ControllerElected, ControllerEvent
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.memory_check.caches import of_configurations, of_metadata, of_producer_ids, of_replicas
from harness.simulation.memory_check.controller import of_controller
from harness.simulation.memory_check.coordinators import of_groups, of_transactions
from harness.simulation.memory_check.followers import of_followers
from harness.simulation.memory_check.logs import of_logs
from harness.simulation.memory_check.znodes import Znodes
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState

Differences = Mapping[tuple[int, str], Sequence[str]]
"""What each comparison found on each broker."""

LOOK_EVERY_S = 1.0
AT_REST_S = 20.0
"""Long enough for an ISR change, which leaders announce within 7.5 s."""


async def note_differences(cluster: SimulatedCluster, notes: PhaseNotes) -> None:
    """Compare a cluster at rest; each broker that runs writes its differences to its log."""
    try:
        found = await differences_at_rest(cluster)
    except Exception as error:  # noqa: BLE001  what the schedule has shown before must not be lost
        notes.remark(f"brokers at rest could not be compared: {error!r}", forbids_pass=True)
        return
    for broker_id, differences in found.items():
        if differences:
            cluster[broker_id].note(differences)


async def differences_at_rest(cluster: SimulatedCluster) -> dict[int, list[str]]:
    """Return what differs on each broker in every look of `AT_REST_S`."""
    clock = asyncio.get_running_loop().time
    end_s, lasting = clock() + AT_REST_S, _now(cluster)
    while (lasting is None or any(lasting.values())) and clock() < end_s:
        await asyncio.sleep(LOOK_EVERY_S)
        if lasting is None:
            lasting = _now(cluster)
        elif (now := _now(cluster, lasting)) is not None:
            lasting = {key: [each for each in found if each in now.get(key, ())] for key, found in lasting.items()}
    differences: dict[int, list[str]] = {}
    for (broker_id, _), found in (lasting or {}).items():
        differences.setdefault(broker_id, []).extend(found)
    return differences


def _now(cluster: SimulatedCluster, before: Differences | None = None) -> Differences | None:
    """Return what differs at present; None while the controller has events to handle.

    `before`: the answer of the look before, so that only what differed then is compared again.
    """
    running = {key: each for key, each in cluster.brokers.items() if each.state is ProcessState.RUNNING}
    brokers = {key: each.broker for key, each in running.items() if each.broker is not None and each.broker.ledger}
    try:
        znodes = Znodes.of(cluster.ensemble)
    except MalformedZnode:  # a fault has left it
        return {}
    if _has_failed(cluster, znodes.controller):
        return {}
    if _is_busy(brokers.get(znodes.controller)):
        return None
    comparisons: dict[str, Callable[[int, Broker], Iterable[str]]] = {
        "controller": lambda _, broker: of_controller(broker, znodes, brokers),
        "configurations": lambda _, broker: of_configurations(broker, znodes),
        "producer ids": lambda _, broker: of_producer_ids(broker, brokers),
        "replicas": lambda _, broker: of_replicas(broker, znodes),
        "metadata": lambda _, broker: of_metadata(broker, znodes),
        "followers": lambda _, broker: of_followers(broker, znodes, brokers),
        "groups": lambda _, broker: of_groups(broker, znodes),
        "transactions": lambda _, broker: of_transactions(broker, znodes),
        "logs": lambda key, broker: of_logs(broker, running[key].disks),
    }
    return {
        (key, name): list(compared(key, broker))
        for key, broker in brokers.items()
        for name, compared in comparisons.items()
        if before is None or before.get((key, name))
    }


def _is_busy(controller: Broker | None) -> bool:
    """Return whether a controller has events to handle: with a slow ZooKeeper its queue may take a minute."""
    return controller is not None and controller.controller.is_active and not controller.controller.is_idle


def _has_failed(cluster: SimulatedCluster, controller: int) -> bool:
    """Return whether the controller has failed to handle an event since its election: its view may be half changed."""
    for logged in reversed(cluster[controller].log.events if controller in cluster.brokers else ()):
        if isinstance(logged.event, ControllerElected):
            return False
        if isinstance(logged.event, ControllerEvent) and logged.event.outcome != "ok":
            return True
    return True
