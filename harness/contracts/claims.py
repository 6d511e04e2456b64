"""The exclusive claims of an injection, and which of them may be in force at the same time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.contracts.faults import Fault
from harness.contracts.targets import CLIENTS, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of one injection."""

    fault: str
    may_overlap: bool
    """Whether its brokers may be under faults of other kinds meanwhile."""
    brokers: frozenset[int]
    """Empty for a fault of something else: a client, or a singleton."""
    member: str = ""
    """The client that a fault of clients claims."""
    resources: frozenset[str] = frozenset()
    """Other resources that no other fault may touch meanwhile, whatever `may_overlap` says."""
    conflicts_with: frozenset[str] = frozenset()
    """Kinds of which none may be in force meanwhile, on any target."""
    beside: int | None = None
    """Number of others that may be in force meanwhile; None for any."""

    def excludes(self, other: "Claim") -> bool:
        """Return whether the two cannot be in force together.

        A fault has its brokers for itself, unless one of the two may overlap; two of a kind never share a broker.
        Other resources are never shared.
        """
        if self.resources & other.resources or other.fault in self.conflicts_with or self.fault in other.conflicts_with:
            return True
        if self.fault != other.fault and (self.may_overlap or other.may_overlap):
            return False
        if not self.brokers and not other.brokers:
            return self.member == other.member if self.member and other.member else self.fault == other.fault
        return bool(self.brokers & other.brokers)

    def __str__(self) -> str:
        plural = "s" if len(self.brokers) > 1 else ""
        if not self.brokers:
            return self.member or ", ".join(sorted(self.resources)) or self.fault
        return f"broker{plural} {', '.join(map(str, sorted(self.brokers)))}"


def claim_of(
    plugin: Fault, target: Target, brokers: Iterable[int], parameters: Mapping[str, Any], beside: int | None = None
) -> Claim:
    """Return the claim of an injection on these brokers; raises ValidationError for invalid parameters."""
    own = plugin.Parameters.model_validate(parameters)
    return Claim(
        fault=plugin.name,
        may_overlap=plugin.may_overlap,
        brokers=frozenset(brokers),
        member=target.described if target.role in CLIENTS else "",
        resources=plugin.resources(own),
        conflicts_with=plugin.conflicts_with(own),
        beside=beside,
    )


def in_the_way(claim: Claim, held: Mapping[int, Claim]) -> dict[int, Claim]:
    """Return those of the held claims, by injection, that exclude another one.

    The limit `beside` does not apply to faults with instants of a schedule.
    """
    crowded = claim.beside is not None and any(
        each.beside is not None and len(held) > each.beside for each in (claim, *held.values())
    )
    return {number: other for number, other in held.items() if crowded or claim.excludes(other)}
