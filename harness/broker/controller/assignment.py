"""The brokers of a partition, and those that a running reassignment adds and removes (KIP-455). Pure.

After Kafka's `ReplicaAssignment`. During a reassignment, `replicas` is the target followed by the ones to remove.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The assignment of one partition."""

    replicas: tuple[int, ...]
    """All brokers of the partition, in order; the first is the preferred leader."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is running."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Return the replicas before the running reassignment, which a cancellation restores."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas after it."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    def reassigned_to(self, target: tuple[int, ...]) -> "Assignment":
        """Return the assignment on the way to `target`, from the origin of a running reassignment."""
        replicas = tuple(dict.fromkeys((*target, *self.origin)))
        return Assignment(
            replicas=replicas,
            adding=tuple(replica for replica in replicas if replica not in self.origin),
            removing=tuple(replica for replica in self.origin if replica not in target),
        )

    def without(self, replica: int) -> "Assignment":
        """Return the assignment without one replica."""
        return Assignment(
            replicas=tuple(other for other in self.replicas if other != replica),
            adding=tuple(other for other in self.adding if other != replica),
            removing=tuple(other for other in self.removing if other != replica),
        )
