"""What a broker has counted of transactions, and what waits just now (Kafka's names in `harness.broker.metrics`)."""

from dataclasses import dataclass, field

from harness.broker.coordinator.statistics import LoadTimes
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.broker.transactions.verification import CoordinatorQuestions


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatistics:
    """One look."""

    loads: LoadTimes = field(default_factory=LoadTimes)
    markers_without_destination: int = 0
    """Markers that wait for a leader that is alive."""
    retried_stores: int = 0
    """Completions that could not be stored and wait to be tried again."""
    verification_failures: int = 0
    """Partitions that were not verified to be part of a transaction."""
    verifications: int = 0
    """Questions whether partitions are part of a transaction, that were answered."""
    verification_s: float = 0.0
    """How long those took altogether."""


def transaction_statistics(
    coordinator: TransactionCoordinator | None, questions: CoordinatorQuestions | None
) -> TransactionStatistics:
    """Return one look at a coordinator and at the questions to others, which a broker has once it has started."""
    if coordinator is None or questions is None:
        return TransactionStatistics()
    return TransactionStatistics(
        loads=coordinator.load_times,
        markers_without_destination=coordinator.markers.without_destination,
        retried_stores=coordinator.markers.retried_stores,
        verification_failures=questions.failures,
        verifications=questions.answered,
        verification_s=questions.waited_s,
    )
