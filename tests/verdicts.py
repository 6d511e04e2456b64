"""The verdicts by their bare names, for tables."""

from harness.verdict import FaultVerdict, SystemVerdict

PASS, FAIL, UNKNOWN = SystemVerdict.PASS, SystemVerdict.FAIL, SystemVerdict.UNKNOWN
CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE
