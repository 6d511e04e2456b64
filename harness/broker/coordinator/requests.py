"""Requests of members, and the limits that all groups share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.broker.configs.config_types import INT_MAX
from harness.broker.coordinator.group import Protocols
from harness.values import value_class


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """The properties that all groups share, by default Kafka's."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT_MAX


@value_class(frozen=True, slots=True, kw_only=True)
class Join:
    """One JoinGroup."""

    member_id: str
    """Empty for a new member."""
    instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    must_know_its_id: bool = False
    """Whether a new member first gets an id, to rejoin with it (KIP-394)."""
    may_skip_assignment: bool = False
    """Whether a returning leader may learn that its group has an assignment."""

    def names(self) -> list[str]:
        """Return the protocols' names."""
        return [name for name, _ in self.protocols]


@value_class(frozen=True, slots=True, kw_only=True)
class Sync:
    """One SyncGroup."""

    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)
