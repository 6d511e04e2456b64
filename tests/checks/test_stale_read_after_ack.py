import pytest

from tests.analysis.fact_rows import elected_uncleanly, sent, state
from tests.analysis.protocol_rows import ended_at, injected
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

SETTLED = state(0, leader=1, epoch=0, isr=[1, 2], time_ns=0)
TOLD = [SETTLED, sent("a", 4, complete_ns=1_000_000_000)]

CASES = {
    "the end is past it": Case(rows=[*TOLD, ended_at(5, at_s=9)], verdict=PASS),
    "the end is before it": Case(
        rows=[*TOLD, ended_at(4, at_s=9)], verdict=FAIL, offsets=[4], text="after a had been acknowledged at offset 4"
    ),
    "the end is past an earlier one, and before a later one": Case(
        rows=[*TOLD, sent("b", 6, complete_ns=2_000_000_000), ended_at(5, at_s=9)], verdict=FAIL, offsets=[5]
    ),
    "nobody knows when the partition changed": Case(
        rows=[TOLD[1], ended_at(4, at_s=2.000000001)], verdict=FAIL, offsets=[4]
    ),
    "the partition is just settling": Case(rows=[*TOLD, ended_at(4, at_s=2)], verdict=PASS),
    "it was acknowledged after the question": Case(
        rows=[SETTLED, sent("a", 4, complete_ns=10_000_000_000), ended_at(4, at_s=9)], verdict=PASS
    ),
    "the leader alone had acknowledged it": Case(
        rows=[SETTLED, sent("a", 4, complete_ns=1, acks=1), ended_at(4, at_s=9)], verdict=PASS
    ),
    "the partition has not settled": Case(
        rows=[*TOLD, state(1, leader=1, epoch=0, isr=[1], time_ns=8_000_000_000), ended_at(4, at_s=9)], verdict=PASS
    ),
    "a fault has only just been healed": Case(
        rows=[*TOLD, injected(healed_s=1), injected(healed_s=8), ended_at(4, at_s=9)], verdict=PASS
    ),
    "an unclean election between": Case(
        rows=[*TOLD, ended_at(4, at_s=9), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "no end was requested": Case(rows=TOLD, verdict=UNKNOWN, text="end_offsets"),
}

CASES |= without_each(CASES["the end is past it"], "sends", "end_offsets")

answers = answers_of("stale-read-after-ack", CASES)


@pytest.mark.parametrize("case", CASES)
def test_ends_that_consumers_are_told(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
