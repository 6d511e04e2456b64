"""What differs between the memory of each broker and what it would read anew, once a cluster is at rest."""

import asyncio

from harness.broker.zookeeper.znodes import MalformedZnode
from harness.events import ControllerElected, ControllerEvent
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.rest.of_controller import of_controller
from harness.simulation.rest.of_coordinators import of_groups, of_transactions
from harness.simulation.rest.of_followers import of_followers
from harness.simulation.rest.of_logs import of_logs
from harness.simulation.rest.of_zookeeper import of_configurations, of_metadata, of_replicas
from harness.simulation.rest.truth import Truth
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState

LOOK_EVERY_S = 1.0
AT_REST_S = 20.0
"""By then all know of an ISR change: leaders announce it within 7.5 s."""


async def note_differences(cluster: SimulatedCluster, notes: PhaseNotes) -> None:
    """Have each broker that runs write down what differs, when the load has ended and no fault is in force."""
    try:
        found = await differences_at_rest(cluster)
    except Exception as error:  # noqa: BLE001  what the schedule has shown before must not be lost
        notes.remark(f"brokers at rest could not be compared: {error!r}", forbids_pass=True)
        return
    for broker_id, differences in found.items():
        if differences:
            cluster[broker_id].note(differences)


async def differences_at_rest(cluster: SimulatedCluster) -> dict[int, list[str]]:
    """Return, for each broker that runs, what differs in every look while no client asks for anything."""
    clock = asyncio.get_running_loop().time
    end_s, lasting = clock() + AT_REST_S, _now(cluster)
    while any(lasting.values()) and clock() < end_s:
        await asyncio.sleep(LOOK_EVERY_S)
        now = _now(cluster)
        lasting = {key: [each for each in found if each in now.get(key, ())] for key, found in lasting.items()}
    return lasting


def _now(cluster: SimulatedCluster) -> dict[int, list[str]]:
    running = {key: each for key, each in cluster.brokers.items() if each.state is ProcessState.RUNNING}
    brokers = {key: each.broker for key, each in running.items() if each.broker is not None and each.broker.ledger}
    try:
        truth = Truth.of(cluster.ensemble)
    except MalformedZnode:  # a fault has left it
        return {}
    if _has_failed(cluster, truth.controller):
        return {}
    return {
        key: [
            *of_controller(broker, truth, brokers),
            *of_configurations(broker, truth),
            *of_replicas(broker, truth),
            *of_metadata(broker, truth),
            *of_followers(broker, truth, brokers),
            *of_groups(broker, truth),
            *of_transactions(broker, truth),
            *of_logs(broker, running[key].disks),
        ]
        for key, broker in brokers.items()
    }


def _has_failed(cluster: SimulatedCluster, controller: int) -> bool:
    """Return whether an event of the controller has failed since its election: it may have changed a part only."""
    for logged in reversed(cluster[controller].log.events if controller in cluster.brokers else ()):
        if isinstance(logged.event, ControllerElected):
            return False
        if isinstance(logged.event, ControllerEvent) and logged.event.outcome != "ok":
            return True
    return True
