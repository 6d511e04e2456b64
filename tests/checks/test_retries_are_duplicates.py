from tests.analysis.protocol_rows import appended, refused_retry
from tests.checks.answers import UNHEARD, UNREADABLE, fails, passes, table_of, unknown

WROTE = appended(1, 0, 9, acks_all=1)

CASES = {
    "nothing was refused that is in the log": passes(WROTE),
    "it had the batch when it took the lead": fails(
        WROTE,
        refused_retry(9),
        text="the batch of producer 7 that begins with number 4, which it has at offset 9 with 0 behind it",
        offsets=[9],
        epochs=[3],
    ),
    "the batch was cut off before it took the lead": passes(WROTE, refused_retry(10)),
    "its last record was": passes(WROTE, refused_retry(9, last_offset=10)),
    "it has written the batch since it leads": fails(WROTE, refused_retry(10, written_since=True), offsets=[10]),
    "the start of its lead is unknown": passes(WROTE, refused_retry(9, leader_end_offset=None, written_since=None)),
    "something else was written over it": passes(WROTE, refused_retry(9, overwritten=True)),
    "retention has taken it": passes(WROTE, refused_retry(8, log_start_offset=9)),
    "the log begins with it": fails(WROTE, refused_retry(9, log_start_offset=9)),
    "it is the fifth from the end": fails(WROTE, refused_retry(5, later_batches=4)),
    "it is the sixth from the end": passes(WROTE, refused_retry(4, later_batches=5)),
    "the producer has a later epoch": passes(WROTE, refused_retry(9, later_epoch=True)),
    "a line of a broker is missing": unknown(WROTE, refused_retry(9), UNHEARD, text="missing lines"),
    "a line of a client cannot be read": fails(WROTE, refused_retry(9), UNREADABLE),
    "the logs are older": unknown(appended(1, 0, 9), text="do not say batch_refused"),
    "a follower has no acks": passes(WROTE, appended(2, 0, 9)),
    "nothing was written": unknown(text="appends"),
}

test_what_becomes_of_retries = table_of("I28", CASES)
