from tests.analysis.fact_rows import elected_uncleanly, held, read, sent
from tests.checks.answers import NOT_IDEMPOTENT, NOT_UNIQUE, UNCLEAN, excused, fails, passes, table_of, unknown

TWICE = [sent("a", 0), read("a", 0), read("a", 4)]

CASES = {
    "two readers, one place": passes(sent("a", 0), read("a", 0), read("a", 0, process="c1")),
    "two offsets": fails(*TWICE, text="a was read at orders-0 offset 0 and orders-0 offset 4"),
    "two offsets, of which the lower one is its place": fails(
        sent("a", 0), read("a", 4, leader_epoch=1), read("a", 0, leader_epoch=2), offsets=[0], epochs=[2]
    ),
    "two offsets, and the higher one was read last": fails(
        sent("a", 0), read("a", 0, leader_epoch=2), read("a", 4, leader_epoch=1), offsets=[0], epochs=[2]
    ),
    "each place is of another epoch of its producer": passes(
        *TWICE, held(1, "a", 0, producer_id=7, producer_epoch=0), held(1, "a", 4, producer_id=7, producer_epoch=1)
    ),
    "both places are of one epoch": fails(
        *TWICE, held(1, "a", 0, producer_id=7, producer_epoch=1), held(1, "a", 4, producer_id=7, producer_epoch=1)
    ),
    "the epoch of one place is not known": fails(*TWICE, held(1, "a", 4, producer_id=7, producer_epoch=1)),
    "one place is of a producer without epochs": fails(
        *TWICE, held(1, "a", 0, producer_id=-1, producer_epoch=-1), held(1, "a", 4, producer_id=7, producer_epoch=1)
    ),
    "two partitions": fails(sent("a", 0), read("a", 0), read("a", 0, partition=1)),
    "a retry without idempotence": excused(*TWICE, settings=NOT_IDEMPOTENT),
    "an unclean election between": excused(*TWICE, elected_uncleanly(2, 1), settings=UNCLEAN),
    "an unclean election, after which it was written again": excused(
        *TWICE[:2], read("a", 4, leader_epoch=1), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "an unclean election, after which it was written again below where it was": excused(
        sent("a", 0), read("a", 4), read("a", 0, leader_epoch=1), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "nothing was read": unknown(sent("a", 0)),
    "it was sent twice": unknown(*TWICE, NOT_UNIQUE),
}

CASES |= CASES["two readers, one place"].without_each("sends", "polls")

test_values_and_the_places_where_they_were_read = table_of("duplicate", CASES)
