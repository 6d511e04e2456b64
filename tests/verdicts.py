"""The verdicts by their bare names, for tables."""

from harness.verdict import FaultVerdict, SystemVerdict

PASS, FAIL, UNKNOWN = SystemVerdict.PASS, SystemVerdict.FAIL, SystemVerdict.UNKNOWN
NOT_JUDGED = SystemVerdict.NOT_JUDGED
CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE
