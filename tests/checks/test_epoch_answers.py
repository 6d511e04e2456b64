from typing import Any

from tests.analysis.fact_rows import Row, claimed, truncated
from tests.analysis.protocol_rows import answered
from tests.checks.answers import UNHEARD, UNREADABLE, Case, fails, passes, table_of, unknown

LEADS = claimed(1, 3, high_watermark=0, end=7)


def right(epoch: int, end: int, *, to: int, **other: Any) -> Case:
    return passes(LEADS, answered(epoch, end, to=to, **other))


def wrong(epoch: int, end: int, *, to: int, text: str = "", **other: Any) -> Case:
    return fails(LEADS, answered(epoch, end, to=to, **other), text=text, epochs=[3], facts=["epoch_answers"])


def acted(**other: Any) -> Row:
    """Broker 2, in epoch 3, cut its log to where it was answered that epoch 0 ends."""
    by_answer: dict[str, Any] = {"epoch": 3, "asked_epoch": 0, "answer_epoch": 0, "answer_end_offset": 4}
    return truncated(2, 9, 4, high_watermark=4, **(by_answer | other))


CASES = {
    "an old epoch ends where the next begins": right(0, 4, to=0),
    "one without records ends with the one before it": right(0, 4, to=1),
    "the last but one ends where the last begins": right(2, 7, to=2),
    "the newest ends with the log": right(3, 10, to=3),
    "one that is not known yet has no end": right(-1, -1, to=4),
    "the undefined epoch has none": right(-1, -1, to=-1),
    "one older than all ends where these begin": right(1, 4, to=1, leader_epochs=[[2, 4], [3, 7]]),
    "another epoch for one older than all": wrong(
        0, 4, to=1, leader_epochs=[[2, 4], [3, 7]], text="say epoch 1 and offset 4"
    ),
    "a log without epochs knows none": right(-1, -1, to=0, leader_epochs=[]),
    "another end": wrong(
        0, 5, to=0, text="broker 1 answered epoch 0 and offset 5, but its own epochs say epoch 0 and "
    ),
    "the end of another epoch": wrong(2, 4, to=0, text="say epoch 0 and offset 4"),
    "the log's end for an old epoch": wrong(2, 10, to=2, text="say epoch 2 and offset 7"),
    "an old end for the newest": wrong(3, 7, to=3, text="say epoch 3 and offset 10"),
    "an end for what it does not know": wrong(4, 10, to=4, text="say epoch -1 and offset -1"),
    "a refusal says nothing": right(-1, -1, to=0, error=74, leader_epoch=-1, log_end_offset=-1, leader_epochs=[]),
    "the replica that asks gives no epoch": right(0, 4, to=0, current_leader_epoch=-1),
    "the replica that asks is in an older epoch": wrong(
        0, 4, to=0, current_leader_epoch=2, text="the replica that asked was in epoch 2"
    ),
    "the replica that asks is in epoch 0": wrong(0, 4, to=0, current_leader_epoch=0, text="was in epoch 0"),
    "the replica that asks is in a later epoch": wrong(0, 4, to=0, current_leader_epoch=4),
    "a follower acts on its answer": passes(LEADS, answered(0, 4, to=0), acted()),
    "it acts without an answer": fails(
        LEADS,
        acted(),
        text="broker 2 cut orders-0 to 4 in epoch 3, and no leader answered epoch 0 and offset 4 for epoch 0",
        offsets=[4],
        facts=["truncations"],
    ),
    "it acts on the answer of an epoch before": fails(LEADS, answered(0, 4, to=0), acted(epoch=4)),
    "it acts on the answer to another question": fails(LEADS, answered(0, 4, to=1), acted()),
    "it acts on another epoch than was answered": fails(LEADS, answered(0, 4, to=0), acted(answer_epoch=1)),
    "it acts on another offset than was answered": fails(LEADS, answered(0, 4, to=0), acted(answer_end_offset=3)),
    "it acts on an answer of another broker": fails(LEADS, answered(0, 4, to=0, sender=3), acted()),
    "it acts on the answer about another partition": fails(LEADS, answered(0, 4, to=0), acted(partition=1)),
    "it acts on a refusal": fails(LEADS, answered(0, 4, to=0, error=74), acted(), text="no leader answered"),
    "it has no epochs and asks no leader": passes(LEADS, acted(asked_epoch=-1)),
    "a line of a broker is missing": unknown(LEADS, acted(), UNHEARD, text="missing lines"),
    "a line of a client cannot be read": fails(LEADS, acted(), UNREADABLE),
    "the logs are older": unknown(LEADS, answered(0, 4, to=0, leader_epochs=None), text="do not say leader_epochs"),
    "there was never a leader": unknown(text="leadership_claims"),
}

test_where_leaders_say_that_epochs_end = table_of("I30", CASES)
