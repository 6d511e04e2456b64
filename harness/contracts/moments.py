"""Moments that faults wait for: a fault is injected a given time after a broker logs a state change.

If no broker logs it in time, the fault is injected anyway, so that the run is as useful as without it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.contracts.state_changes import StateChanges
from harness.errors import ClusterError
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A state change that any broker may log."""

    kind: str
    """As in the state-change log."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Required fields of the line, beside its kind."""
    meaning: str

    def is_at(self, event: Mapping[str, Any]) -> bool:
        """Return whether a line shows this moment."""
        return event["ev"] == self.kind and all(event.get(name) == value for name, value in self.fields.items())


MOMENTS: Mapping[str, Moment] = {
    "controller-elected": Moment(kind="controller_elected", meaning="a broker becomes the controller"),
    "leader-elected": Moment(kind="become_leader", meaning="a broker becomes the leader of a partition"),
    "coordinator-loads": Moment(
        kind="become_leader", fields={"topic": OFFSETS_TOPIC}, meaning="a coordinator begins to load its groups"
    ),
    "transactions-load": Moment(
        kind="become_leader",
        fields={"topic": TRANSACTIONS_TOPIC},
        meaning="a coordinator begins to load its transactions",
    ),
    "follower": Moment(kind="become_follower", meaning="a broker follows another leader"),
    "first-follow": Moment(
        kind="become_follower",
        fields={"previous_leader_epoch": -1},
        meaning="a broker carries out the first LeaderAndIsr for a replica since it has started, as follower",
    ),
    "isr-shrinks": Moment(
        kind="isr_propose", fields={"kind": "shrink"}, meaning="a leader is about to write a smaller ISR"
    ),
    "isr-expands": Moment(
        kind="isr_propose", fields={"kind": "expand"}, meaning="a leader is about to write a larger ISR"
    ),
    "new-replica": Moment(
        kind="replica_state",
        fields={"to_state": "NewReplica"},
        meaning="the controller makes a replica, of a new topic or for a reassignment",
    ),
    "deletion": Moment(
        kind="replica_state",
        fields={"to_state": "ReplicaDeletionStarted"},
        meaning="the controller asks for the deletion of a replica",
    ),
    "controller-deletes": Moment(
        kind="zk_write", fields={"op": "delete", "by": "controller"}, meaning="the controller deletes a znode"
    ),
    "reassignment": Moment(
        kind="controller_event",
        fields={"name": "ZkPartitionReassignment"},
        meaning="the controller has begun reassignments",
    ),
    "controlled-shutdown": Moment(
        kind="leave_request", meaning="a broker asks the controller to move its leaders away"
    ),
    "broker-started": Moment(kind="broker_start", meaning="a broker starts"),
    "stopped-broker-started": Moment(
        kind="broker_start", fields={"clean_marker": True}, meaning="a broker that stopped cleanly starts"
    ),
    "session-renewed": Moment(
        kind="zk_session", fields={"state": "reinit"}, meaning="a broker has a new session and registers again"
    ),
    "group-rebalances": Moment(
        kind="group_state", fields={"to_state": "PreparingRebalance"}, meaning="a group begins to rebalance"
    ),
    "transaction-decided": Moment(
        kind="txn_state",
        fields={"to_state": "PrepareCommit"},
        meaning="a coordinator has stored that a transaction commits, and sends its markers",
    ),
}


async def until_moment(
    logs: StateChanges, brokers: list[int], moment: Moment, *, within_s: float, offset_s: float
) -> bool:
    """Return a given time after a broker next logs a moment, or when the time-out is over.

    Returns whether it was seen.
    """
    clock = asyncio.get_running_loop().time
    end_s = clock() + within_s
    positions = {broker: await logs.end_of(broker) for broker in brokers}
    while True:
        for broker, position in positions.items():
            try:
                events, positions[broker] = await logs.after(broker, position, moment.kind)
            except ClusterError:
                continue  # its log is unreadable now
            if any(map(moment.is_at, events)):
                await asyncio.sleep(offset_s)
                return True
        if clock() >= end_s:
            return False
        await logs.grown(moment.kind, end_s - clock())
