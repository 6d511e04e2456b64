"""Reasons that excuse anomalies of several checks."""

from dataclasses import replace

from harness.contracts.checks import Allowance

WEAK_ACKS = Allowance(reason="without acks=all nothing is promised after the leader fails", acks=frozenset({0, 1}))
UNCLEAN_ELECTION = Allowance(
    reason="an unclean election loses what the new leader does not have", unclean_election=True
)
POWER_LOSS = Allowance(reason="a power loss takes what was not flushed to disk, damage what is there", power_loss=True)
LOSSES = (UNCLEAN_ELECTION, POWER_LOSS)
"""Allowances of every anomaly that a permitted loss of committed records causes."""
LOSSES_OF_OFFSETS = (UNCLEAN_ELECTION, replace(POWER_LOSS, anywhere=True))
"""The same for a group's offsets, which are lost with the partition of the offsets topic that holds them."""
