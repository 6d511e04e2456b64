"""What a check of your own is made of: the contract, and the two functions that make findings."""

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Severity, Subject

__all__ = ["Allowance", "Assumption", "Check", "Settings", "Severity", "Subject", "event", "finding"]
