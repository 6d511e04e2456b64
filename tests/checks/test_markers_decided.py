from tests.analysis.fact_rows import Row, replica
from tests.analysis.transaction_rows import WHOLE, became, ended, one, wrote, wrote_marker
from tests.checks.answers import Case, fails, passes, table_of


def decided(*rows: Row) -> Case:
    return passes(*WHOLE, *rows)


def undecided(*rows: Row, text: str) -> Case:
    return fails(*WHOLE, *rows, text=text)


CASES = {
    "a marker follows its decision": decided(*one(1), wrote(0), ended(1), wrote_marker(1, 5)),
    "a marker comes twice": decided(*one(1), wrote(0), ended(1), ended(2, coordinator_epoch=1)),
    "no decision is there": undecided(became("Ongoing", 1, "orders-0"), wrote(0), ended(1), text="no Prepare record"),
    "the decision was another one": undecided(*one(1, commits=False), wrote(0), ended(1), text="ends in commit"),
    "the decision was of another producer": undecided(
        *one(1, producer_id=8), wrote(0), ended(1), text="no Prepare record"
    ),
    "the decision was in another epoch": undecided(*one(1), wrote(0), ended(1, producer_epoch=1), text="epoch 1 ends"),
    "a leader wrote the marker before": undecided(
        *one(1), wrote(0), ended(1), wrote_marker(1, 1), text="its Prepare record was stored later"
    ),
    "a leader wrote the marker in the instant of its decision": decided(
        *one(1), wrote(0), ended(1), wrote_marker(1, 2)
    ),
    "a deposed leader had written the marker of an earlier decision there": decided(
        *(*one(1), *one(4), wrote(0), ended(1), wrote(2), ended(3)),
        *(wrote_marker(3, 3), wrote_marker(1, 3, leader_epoch=1), wrote_marker(3, 6, leader_epoch=1)),
    ),
    "a later coordinator read the decision in the log": decided(
        *one(1), wrote(0), ended(1, coordinator_epoch=1), wrote_marker(1, 1, coordinator_epoch=1)
    ),
    "the second marker comes before the second decision": undecided(
        *one(1),
        *one(4),
        wrote(0),
        ended(1),
        wrote(2),
        ended(3),
        wrote_marker(1, 3),
        wrote_marker(3, 4),
        text="marker at offset 3",
    ),
    "a decision was loaded, and no line says when it was stored": decided(
        became("Ongoing", 1, "orders-0"),
        became("PrepareCommit", 2, "orders-0", told_ns=None),
        wrote(0),
        ended(1),
        wrote_marker(1, 1),
    ),
    "the log of the coordinator has a gap": decided(became("Ongoing", 1, "orders-0", whole=False), wrote(0), ended(1)),
    "the cleaner has taken the decision before": decided(
        *(became("Ongoing", 4, "orders-0", whole=False), became("PrepareCommit", 5, "orders-0")),
        *(wrote(0), ended(1), wrote(2), ended(3), wrote_marker(1, 3), wrote_marker(3, 6)),
    ),
    "another replica has come further": decided(*one(1), replica(2, 200), wrote(0), ended(1, commits=False)),
}
CASES |= CASES["a marker follows its decision"].without_each("replicas")

test_which_decision_a_marker_tells_of = table_of("markers-decided", CASES)
