"""How often something happens a second is what a `Rate` of Kafka 3.9 says of the same (its jars were asked)."""

import pytest

from harness.broker.coordinator.statistics import Meter

Marks = tuple[tuple[int, int], ...]
"""Each an instant in ms, and how often."""


@pytest.mark.parametrize(
    ("marks", "now_ms", "per_s"),
    [
        pytest.param((), 90_000, 0.0, id="nothing ever happened"),
        pytest.param(((0, 10),), 0, 0.3333, id="at once, as if the sample before had been empty"),
        pytest.param(((0, 10),), 10_000, 0.25, id="ten seconds later"),
        pytest.param(((0, 10),), 30_000, 0.3333, id="when the sample is full"),
        pytest.param(((0, 10),), 59_999, 0.1667, id="just before it is forgotten"),
        pytest.param(((0, 10),), 60_000, 0.0, id="forgotten"),
        pytest.param(((0, 10), (20_000, 20)), 60_000, 0.5, id="a sample lives as long as its last event"),
        pytest.param(((0, 10), (20_000, 20)), 80_000, 0.0, id="and no longer"),
        pytest.param(((0, 10), (30_000, 20)), 75_000, 0.4444, id="the older of two samples is forgotten first"),
        pytest.param(((0, 10), (29_999, 20), (30_000, 5)), 30_000, 1.1667, id="the newest sample has just begun"),
        pytest.param(((0, 10), (30_000, 20), (60_000, 40)), 60_000, 2.0, id="a third sample replaces the first"),
        pytest.param(((0, 10), (100_000, 20)), 120_000, 0.4, id="after a long silence"),
    ],
)
def test_a_rate_is_that_of_kafka(marks: Marks, now_ms: int, per_s: float) -> None:
    meter = Meter()
    for at_ms, count in marks:
        meter.mark(count, at_ms)
    assert meter.per_s(now_ms) == pytest.approx(per_s, abs=5e-5)
    assert meter.count == sum(count for _, count in marks)
