from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from harness.contracts import registry
from harness.contracts.checks import Settings
from tests.analysis.fact_rows import Row, facts
from tests.analysis.protocol_rows import S, injected, led_quorum, topic
from tests.checks.answers import STRICT, Case, fails, passes, table_of

SETTINGS = replace(STRICT, quorum_fetch_timeout_ms=2_000)


def quorum(*rows: Row, until_s: float, next_s: float = 10) -> list[Row]:
    """Broker 1 leads in epoch 3 until `until_s`; broker 2 leads in epoch 5 from `next_s` on."""
    first = led_quorum(1, 3, time_ns=0, led_until_ns=round(until_s * S))
    return [topic(present=True), first, led_quorum(2, 5, time_ns=int(next_s * S), led_until_ns=99 * S), *rows]


def in_time(*rows: Row, **when: float) -> Case:
    return passes(*quorum(*rows, **when), settings=SETTINGS)


def late(*rows: Row, text: str = "", **when: float) -> Case:
    return fails(*quorum(*rows, **when), settings=SETTINGS, text=text, facts=["quorum_terms", "quorum_terms"])


CASES = {
    "there is no quorum": passes(topic(present=True), settings=SETTINGS),
    "none was replaced": passes(topic(present=True), led_quorum(1, 3, led_until_ns=99 * S), settings=SETTINGS),
    "it resigns before": in_time(until_s=8),
    "it resigns at the last moment": in_time(until_s=33),
    "it resigns a little later": late(
        until_s=33.000000001,
        text="broker 1 led in epoch 3 for 23.0 s after broker 2 had become leader in epoch 5, of 23.0 s",
    ),
    "it resigns later": late(until_s=33.5, text="for 23.5 s after broker 2"),
    "another one leads in the same epoch": passes(
        topic(present=True),
        led_quorum(1, 3, time_ns=0, led_until_ns=99 * S),
        led_quorum(3, 3, time_ns=9 * S, led_until_ns=99 * S),
        settings=SETTINGS,
    ),
    "the first that replaces it counts": fails(
        topic(present=True),
        led_quorum(1, 3, time_ns=0, led_until_ns=34 * S),
        led_quorum(2, 5, time_ns=10 * S, led_until_ns=20 * S),
        led_quorum(3, 7, time_ns=20 * S, led_until_ns=30 * S),
        settings=SETTINGS,
        text="for 24.0 s after broker 2",
    ),
    "it is elected again itself": passes(
        topic(present=True),
        led_quorum(1, 3, led_until_ns=99 * S),
        led_quorum(1, 5, seq=9, time_ns=10 * S, led_until_ns=99 * S),
        settings=SETTINGS,
    ),
    "another one led before": in_time(led_quorum(3, 1, time_ns=0, led_until_ns=S), until_s=8),
    "the time-out is longer": passes(*quorum(until_s=33.5), settings=replace(SETTINGS, quorum_fetch_timeout_ms=3_000)),
    "the time-out is not known": passes(*quorum(until_s=33.5), settings=STRICT),
    **{
        f"in force is {fault}": late(injected(fault=fault, targets=["1"], intended_ns=9 * S, healed_s=60), until_s=60)
        for fault in ("delay", "drop-packets", "intercept", "isolate", "partition", "reset-connections", "kill")
    },
    "it is paused": in_time(injected(fault="pause", targets=["1"], intended_ns=9 * S, healed_s=60), until_s=60),
    "its clock was set": in_time(injected(fault="clock", targets=["1"], intended_ns=S, healed_s=7), until_s=60),
    "the clock of another one was set": late(
        injected(fault="clock", targets=["2"], intended_ns=S, healed_s=7), until_s=60
    ),
    "it was paused before": late(injected(fault="pause", targets=["1"], intended_ns=S, healed_s=7), until_s=60),
    "a pause ended just before": in_time(injected(fault="pause", targets=["1"], intended_ns=S, healed_s=8), until_s=60),
    "it is paused when it should have resigned": late(
        injected(fault="pause", targets=["1"], intended_ns=34 * S, healed_s=60), until_s=60
    ),
}

CASES |= CASES["it resigns before"].without_each("topics")

test_who_leads_a_quorum_for_too_long = table_of("quorum-leader-resigns", CASES)


@pytest.mark.spark
def test_leaders_are_judged_whose_time_is_known(spark: SparkSession) -> None:
    rows = [*quorum(until_s=8), injected(fault="clock", targets=["4"], healed_s=1)]
    rows += [
        led_quorum(4, 7, time_ns=20 * S, led_until_ns=30 * S),
        led_quorum(5, 9, time_ns=30 * S, led_until_ns=40 * S),
    ]
    subject = registry.check("quorum-leader-resigns").about
    assert subject is not None

    def pieces(settings: Settings) -> list[str]:
        made = facts(spark, *rows)
        found = subject.pieces(settings, *(made[name] for name in subject.facts)).collect()
        assert {(row["number"], row["unseen"]) for row in found} <= {(1, 0)}
        return sorted(row["place"] for row in found)

    assert pieces(STRICT) == []
    assert pieces(replace(STRICT, quorum_fetch_timeout_ms=1)) == ["broker 1", "broker 2"]
