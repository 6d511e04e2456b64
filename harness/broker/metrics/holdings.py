"""What does a broker hold, beside what it needs? Logged at intervals, so that leftovers show.

What is not ended with its cause (a fetcher without a replica, a channel to a broker that is gone, groups of a partition
that another broker leads) costs nothing at first, and in the end a broker its memory or its connections.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.broker.controller.controller import Controller
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.store import GroupStore
from harness.broker.metadata_cache import MetadataCache
from harness.broker.metrics.agreement import of_controller, of_fetchers, of_groups, of_replicas
from harness.broker.metrics.held_back import due, stuck_transactions, timers_left, timers_missing, unclaimed
from harness.broker.metrics.overdue import Overdue
from harness.broker.replicas.fetch_sessions import FetchSessions
from harness.broker.replicas.fetchers import Fetchers
from harness.broker.replicas.replicas import Replicas
from harness.broker.state_log import StateLog
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.events import NO_LEADER, Holdings
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

INTERVAL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """Writes what the parts of a broker hold to its log."""

    replicas: Replicas
    fetchers: Fetchers
    sessions: FetchSessions
    controller: Controller
    metadata: MetadataCache
    groups: GroupStore
    members: GroupMembers
    transactions: TransactionCoordinator
    overdue: Overdue
    state_log: StateLog

    async def write(self) -> None:
        """Write one line."""
        self.note()

    def note(self, at_rest: Sequence[str] = ()) -> None:
        """Write one line; `at_rest` are differences from what a restart would load."""
        partitions, own = self.replicas.all(), self.replicas.broker_id
        leads = [partition.key for partition in partitions if partition.leader == own]
        channels, live = self.controller.channels
        context = self.controller.settled_context
        self.state_log.emit(
            Holdings(
                fetchers=self.fetchers.leaders,
                followed=sorted({each.leader for each in partitions} - {own, NO_LEADER}),
                without_session=self.fetchers.without_session,
                session_slots=self.sessions.slots,
                channels=channels,
                live=live,
                unanswered=self.controller.unanswered,
                controller_idle=self.controller.is_idle,
                controller=self.controller.controller_id,
                known_brokers=[broker.broker_id for broker in self.metadata.alive_brokers()],
                group_partitions=self.groups.present,
                group_leads=sorted(partition for topic, partition in leads if topic == OFFSETS_TOPIC),
                transaction_partitions=self.transactions.shards.present,
                transaction_leads=sorted(partition for topic, partition in leads if topic == TRANSACTIONS_TOPIC),
                timers_missing=timers_missing(self.groups, self.members),
                timers_left=timers_left(self.groups, self.members),
                unclaimed=unclaimed(self.groups, self.members),
                due=[*due(self.replicas), *self.controller.forgotten],
                stuck_transactions=stuck_transactions(self.transactions),
                differences=[*self._differences(), *at_rest],
                controller_differences=[] if context is None else list(of_controller(context)),
                overdue=self.overdue.now(),
            )
        )

    def _differences(self) -> list[str]:
        """Return what is kept twice and differs; nothing where a disk fails meanwhile."""
        try:
            return [
                *of_groups(self.groups),
                *of_replicas(self.replicas),
                *of_fetchers(self.replicas, self.fetchers),
            ]
        except OSError:
            return []
