"""Every protocol guard of the broker, by name, right by default; a planted bug is one of them overridden.

A guard is consulted at exactly one place in the code, which this module's docstrings name.
"""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRules:
    """The guards. True is what Kafka does."""

    acks_all_waits_for_isr: bool = True
    """acks=all is answered only when the high watermark has passed the records (`DelayedProduce`)."""
    truncate_by_leader_epoch: bool = True
    """A new follower drops what the leader's epoch history does not contain before it fetches (KIP-101, KIP-279)."""
    producer_state_outlives_restart: bool = True
    """After a restart or a truncation what producers wrote is read from the log again (`Log`, KIP-98)."""
    disk_failure_takes_replicas_offline: bool = True
    """A broker whose disk refuses something gives up its replicas and says so (`DirectoryFailures`, KIP-112)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """One mistake that can be built into the broker on purpose."""

    name: str
    rule: str
    """The field of `ProtocolRules` that it turns off."""
    origin: str
    effect: str


PLANTED_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        name="acks-all-on-append",
        rule="acks_all_waits_for_isr",
        origin="answers acks=all after the local write, before the ISR has the record",
        effect="acknowledged records are lost when the leader dies",
    ),
    PlantedBug(
        name="no-truncation-by-leader-epoch",
        rule="truncate_by_leader_epoch",
        origin="a follower starts to fetch from its own log end, never asking where its epoch ended (before KIP-101)",
        effect="replicas diverge: the same offset holds different records",
    ),
    PlantedBug(
        name="producer-state-lost",
        rule="producer_state_outlives_restart",
        origin="a broker that restarts or truncates forgets which batches of idempotent producers its log holds",
        effect="a retry after a failover writes the same records once more",
    ),
    PlantedBug(
        name="leads-on-without-disk",
        rule="disk_failure_takes_replicas_offline",
        origin="a leader whose disk is full or broken answers errors and keeps the lead (before KIP-112 it died)",
        effect="partitions cannot be written although other replicas could lead them",
    ),
)


def rules_with(planted_bugs: list[str]) -> ProtocolRules:
    """Return the rules with the named bugs planted.

    Raises:
        ValueError: a name is unknown; the message lists the known ones.
    """
    by_name = {bug.name: bug.rule for bug in PLANTED_BUGS}
    unknown = sorted(set(planted_bugs) - by_name.keys())
    if unknown:
        raise ValueError(f"unknown planted bug {', '.join(unknown)}; known: {', '.join(sorted(by_name))}")
    rules = ProtocolRules()
    assert all(getattr(rules, field.name) for field in fields(rules)), "every guard must be right by default"
    return replace(rules, **{by_name[name]: False for name in planted_bugs})
