import pytest

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import acknowledged, configured
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

ALONE = [acknowledged(4, high_watermark=5, isr_size=1), state(0, leader=1, epoch=0, isr=[1])]
TWO = [acknowledged(4, high_watermark=5), state(0, leader=1, epoch=0, isr=[1, 2])]

CASES = {
    "enough in sync, and committed": Case(rows=[acknowledged(4, high_watermark=5)], verdict=PASS),
    "too few in sync": Case(rows=ALONE, verdict=FAIL, text="with 1 in the ISR where 2 are needed"),
    "a topic with fewer replicas needs those": Case(
        rows=[acknowledged(4, high_watermark=5, isr_size=1), state(0, leader=1, epoch=0, isr=[1], assignment=[1])],
        verdict=PASS,
    ),
    "an internal topic has settings of its own": Case(
        rows=[
            acknowledged(4, high_watermark=5, isr_size=1, topic="__consumer_offsets"),
            state(0, leader=1, epoch=0, isr=[1], topic="__consumer_offsets"),
        ],
        verdict=PASS,
    ),
    "the topic itself asks for less than the scenario": Case(
        rows=[*ALONE, configured(min_insync_replicas=1)], verdict=PASS
    ),
    "the topic itself asks for more than the scenario": Case(
        rows=[*TWO, configured(min_insync_replicas=3)], verdict=FAIL, text="with 2 in the ISR where 3 are needed"
    ),
    "the topic once required less": Case(
        rows=[*TWO, configured(min_insync_replicas=2), configured(min_insync_replicas=3)], verdict=PASS
    ),
    "the topic asks for nothing itself any more": Case(
        rows=[*TWO, configured(min_insync_replicas=3), configured()], verdict=PASS
    ),
    "an internal topic that asks for something itself": Case(
        rows=[
            acknowledged(4, high_watermark=5, isr_size=1, topic="__consumer_offsets"),
            state(0, leader=1, epoch=0, isr=[1], topic="__consumer_offsets"),
            configured(min_insync_replicas=2, topic="__consumer_offsets"),
        ],
        verdict=FAIL,
    ),
    "two of its replicas went in a reassignment": Case(
        rows=[
            acknowledged(4, high_watermark=5, isr_size=1),
            state(0, leader=1, epoch=0, isr=[1]),
            state(1, leader=1, epoch=0, isr=[1], assignment=[1]),
        ],
        verdict=PASS,
    ),
    "without ZooKeeper's history one replica is enough": Case(
        rows=[acknowledged(4, high_watermark=5, isr_size=1)], verdict=PASS
    ),
    "not committed": Case(
        rows=[acknowledged(5, high_watermark=5)],
        verdict=FAIL,
        offsets=[5],
        text="offset 5 with the high watermark at 5",
    ),
    "not committed, and acked with another level than all": Case(
        rows=[acknowledged(5, high_watermark=5, acks=1)], verdict=PASS
    ),
    "nothing was acknowledged": Case(rows=[], verdict=UNKNOWN, text="acknowledgements"),
}

answers = answers_of("I19", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_is_acknowledged(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
