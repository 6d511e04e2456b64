"""What an injection needs for itself, and whether two of them may be in force at the same time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one injection holds."""

    fault: str
    composes: bool
    """Whether its brokers may be under faults of other kinds meanwhile."""
    brokers: frozenset[int]
    """Empty for a fault of something else, of which there is one at a time."""

    def excludes(self, other: "Claim") -> bool:
        """Return whether the two cannot be in force together.

        A fault has its brokers to itself, unless it or the other one composes; two of a kind never share one.
        """
        if self.fault != other.fault and (self.composes or other.composes):
            return False
        if not self.brokers and not other.brokers:
            return self.fault == other.fault
        return bool(self.brokers & other.brokers)

    def __str__(self) -> str:
        plural = "s" if len(self.brokers) > 1 else ""
        return f"broker{plural} {', '.join(map(str, sorted(self.brokers)))}" if self.brokers else self.fault
