"""What has outlived its time-out in a broker: a request, a transaction, a follower's place in the ISR?

A time-out that depends on the wall clock may pass at once when that is set forward, and what ends it runs at intervals.
So it counts only if it has been over for a while on the broker's monotonic clock.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.broker.transactions.metadata import TransactionState
from harness.values import TopicPartition

MARGIN_S = 5.0
PAUSED_S = 6.0
"""After so long without a look the broker was paused, or its machine was: what is over then has yet to be noticed."""


@dataclass(slots=True, kw_only=True)
class Overdue:
    """Notes since when a time-out is over."""

    replicas: Replicas
    transactions: TransactionCoordinator
    wall_ms: Callable[[], int]
    abort_every_s: float
    """How often a coordinator looks for transactions that have timed out."""
    _since: dict[str, float] = field(default_factory=dict)
    _to_reach: dict[tuple[TopicPartition, int, int, int], tuple[int, float]] = field(default_factory=dict)
    """For each follower in a version of an ISR: the offset that it has yet to reach, and since when."""
    _refused: int = 0
    """ISR changes that had failed by the last look."""
    _looked_s: float = 0.0

    def now(self) -> list[str]:
        """Return what should have ended long ago."""
        at_s = now_s()
        if at_s - self._looked_s > PAUSED_S:
            self._since.clear()
            self._to_reach.clear()
        self._looked_s = at_s
        limits = dict((*self._over(), *self._behind(at_s)))
        self._since = {what: self._since.get(what, at_s) for what in limits}
        return sorted(what for what, since_s in self._since.items() if at_s - since_s > limits[what])

    def _behind(self, at_s: float) -> Iterator[tuple[str, float]]:
        """Yield the members of an ISR that have lagged too long; each change of it, also a failed one, begins anew.

        A follower may lag for `replica.lag.time.max.ms`, and leaders look for laggards twice in that time.
        """
        limit_s = 1.5 * self.replicas.lag_s + MARGIN_S
        refused, self._refused = self._refused, self.replicas.counters.failed_isr_updates
        before, self._to_reach = self._to_reach if refused == self._refused else {}, {}
        for each in self.replicas.all():
            if not each.is_leader or each.proposed_isr:
                continue
            for member in set(each.isr) & each.followers.keys():
                key, end = (each.key, each.leader_epoch, each.zk_version, member), each.log.log_end_offset
                offset, since_s = before.get(key, (end, at_s))
                if each.followers[member].log_end_offset >= offset:
                    offset, since_s = end, at_s
                self._to_reach[key] = offset, since_s
                if at_s - since_s > limit_s:
                    yield f"{each.key[0]}-{each.key[1]} in the ISR: broker {member}", 0.0

    def _over(self) -> Iterator[tuple[str, float]]:
        """Yield what has timed out, and within how many seconds it is to end."""
        at_s = now_s()
        for name, purgatory in (
            ("produce", self.replicas.appends),
            ("fetch", self.replicas.fetches),
            ("delete", self.replicas.deletions),
        ):
            if any(deadline_s + MARGIN_S < at_s for deadline_s in purgatory.deadlines_s):
                yield f"{name} requests", MARGIN_S
        at_ms = self.wall_ms()
        for each in self.transactions.transactions():
            known = each.metadata
            # An abort that could not be stored is tried again: without a quorum as long as that lasts.
            if (
                known.state is TransactionState.ONGOING
                and not each.fence_failed
                and known.started_ms + known.timeout_ms < at_ms
            ):
                yield f"transaction {each.transactional_id}", 2 * self.abort_every_s + MARGIN_S
