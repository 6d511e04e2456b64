"""Which anomalies are expected under which settings: a table that checks apply and the report prints."""

from dataclasses import dataclass

ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One reason why an anomaly is lawful; every condition that is set must hold."""

    anomaly: str
    """Name of the check that finds it."""
    reason: str
    """The reason in a sentence, as the report prints it."""
    acks: frozenset[int] | None = None
    """The record was sent with one of these acks levels."""
    unclean_election: bool = False
    """An unclean election that the configuration allowed took place on the partition after the fact at stake."""
    power_loss: bool = False
    """A broker's power was cut: what it had not flushed is gone, of its partitions and from before."""
    without_idempotence: bool = False
    """The producers are not idempotent."""


_WEAK_ACKS = "acks below all promises nothing once the leader fails"
_UNCLEAN = "an unclean election gives up what the new leader does not have"
_LOSSES = (
    "lost-write",
    "unseen",
    "inconsistent-offsets",
    "offset-regression",
    "stale-read-after-ack",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "poll-skip",
    "nonmonotonic-poll",
    "I6",
    "I10",
    "I11",
    "I16",
)
"""What an agreed loss of committed records shows as."""
POWER = "a power loss takes what was not flushed to disk"
ANYWHERE = frozenset({"I16", "offset-regression"})
"""Anomalies of a group's offsets, which are lost with the offsets topic's partition and not with their own."""

ALLOWANCES: tuple[Allowance, ...] = (
    *(
        Allowance(anomaly=anomaly, reason=_WEAK_ACKS, acks=frozenset({0, 1}))
        for anomaly in ("lost-write", "unseen", "nonmonotonic-send")
    ),
    *(Allowance(anomaly=anomaly, reason=_UNCLEAN, unclean_election=True) for anomaly in (*_LOSSES, "duplicate")),
    *(Allowance(anomaly=anomaly, reason=POWER, power_loss=True) for anomaly in _LOSSES),
    Allowance(
        anomaly="I4",
        reason="unclean election was allowed there (KIP-106), or an administrator asked for it (KIP-460)",
        unclean_election=True,
    ),
    Allowance(
        anomaly="duplicate",
        reason="a send that is retried without idempotence may be written twice",
        without_idempotence=True,
    ),
    Allowance(
        anomaly="int-nonmonotonic-send",
        reason="with several requests in flight and without idempotence a retry may be overtaken",
        without_idempotence=True,
    ),
)
