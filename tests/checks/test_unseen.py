from tests.analysis.fact_rows import elected_uncleanly, held, read, replica, sent, state
from tests.analysis.protocol_rows import superseded
from tests.checks.answers import (
    DELETING,
    NOT_UNIQUE,
    UNCLEAN,
    UNREADABLE,
    excused,
    fails,
    noted,
    passes,
    table_of,
    unknown,
)

LAST_READ = '"offset":0,"value":"z"'
"""Of the values at the last offset that was read, always the same one: a replay must say the same."""
LOGS = [state(0, leader=1, epoch=0, isr=[1]), replica(1, 2), held(1, "a", 0)]

CASES = {
    "it was read": passes(sent("a", 0), read("a", 0), *LOGS),
    "it is in the log, so it is late": noted(sent("a", 0), *LOGS, text="readers reached offset -1"),
    "it is in no log, so it is lost": fails(sent("b", 1), read("a", 0), *LOGS),
    "it is in no log, as a cleaner may have taken it": passes(sent("b", 1), read("a", 0), *LOGS, superseded(1)),
    "it is in the log, though a cleaner may take it": noted(sent("a", 0), *LOGS, superseded(0)),
    "it is in no log, as retention or a client may have deleted it": passes(
        sent("b", 1), read("a", 0), LOGS[0], replica(1, 2, log_start_offset=2), LOGS[2], settings=DELETING
    ),
    "another record is in its place": fails(sent("b", 0), *LOGS),
    "another record was read in its place, last of all": fails(sent("b", 0), read("a", 0), *LOGS),
    "two readers differ in the last record": fails(sent("b", 1), read("a", 0), read("z", 0), *LOGS, shown=LAST_READ),
    "they differ, and came in another order": fails(sent("b", 1), read("z", 0), read("a", 0), *LOGS, shown=LAST_READ),
    "value ids are not unique": unknown(sent("b", 1), *LOGS, NOT_UNIQUE),
    "the clients' history has holes": unknown(sent("b", 1), *LOGS, UNREADABLE),
    "only a replica outside the ISR has it": fails(sent("b", 1), *LOGS, held(2, "b", 1)),
    "acks=1 promises little": excused(sent("b", 1, acks=1), *LOGS),
    "an unclean election followed": excused(sent("b", 1), *LOGS, elected_uncleanly(2, 1), settings=UNCLEAN),
    "readers passed it: a lost write instead": passes(sent("b", 1), read("c", 2), *LOGS),
    "no logs to decide by": unknown(sent("b", 1), LOGS[0]),
    "the dump of an ISR member is missing": unknown(sent("b", 1), LOGS[0], LOGS[2]),
}

CASES |= CASES["it was read"].without_each("sends", "replica_records", "partition_states")
CASES |= CASES["it was read"].with_unknown_cleaners()

test_acknowledged_records_that_nobody_read = table_of("unseen", CASES)
