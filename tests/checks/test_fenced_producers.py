from tests.analysis.fact_rows import replica
from tests.analysis.transaction_rows import WHOLE, ended, one, wrote
from tests.checks.answers import fails, passes, table_of

LOGS = [*WHOLE, *one()]
CASES = {
    "the epoch of a producer grows": passes(*LOGS, wrote(0), ended(1, producer_epoch=1), wrote(2, producer_epoch=2)),
    "a producer keeps its epoch": passes(*LOGS, wrote(0), wrote(1), ended(2)),
    "a batch of an older epoch follows a marker": fails(
        *LOGS,
        wrote(0),
        ended(1, producer_epoch=1),
        wrote(2),
        text="has a batch of epoch 0 of producer 7 at offset 2, after a marker of epoch 1 at offset 1",
        offsets=[2],
    ),
    "a marker of an older epoch follows a batch": fails(
        *LOGS, wrote(0, producer_epoch=1), ended(1), text="has a marker of epoch 0"
    ),
    "another producer has an older epoch": passes(*LOGS, wrote(0, producer_epoch=1), wrote(1, producer_id=8)),
    "another partition has an older epoch": passes(*LOGS, wrote(0, producer_epoch=1), wrote(1, partition=1)),
    "a replica with a shorter log has it": passes(*LOGS, replica(2, 200), wrote(0, producer_epoch=1), wrote(1)),
}
CASES |= CASES["the epoch of a producer grows"].without_each("replicas")

test_what_is_appended_after_a_fence = table_of("fenced-producers", CASES)
