from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from harness.contracts import registry
from harness.contracts.checks import Settings
from tests.analysis.fact_rows import Row, facts
from tests.analysis.protocol_rows import S, injected, led_quorum, with_log
from tests.checks.answers import STRICT, Case, fails, passes, table_of

SETTINGS = replace(STRICT, quorum_resigns_ms=5_000)
TELLS = with_log(1)


def quorum(*rows: Row, until_s: float, next_s: float = 10, resigned: bool = True) -> list[Row]:
    """Broker 1 leads in epoch 3 until `until_s`; broker 2 leads in epoch 5 from `next_s` on."""
    first = led_quorum(1, 3, time_ns=S, led_until_ns=round(until_s * S), resigned=resigned)
    return [TELLS, first, led_quorum(2, 5, time_ns=round(next_s * S), led_until_ns=99 * S), *rows]


def in_time(*rows: Row, until_s: float, next_s: float = 10) -> Case:
    return passes(*quorum(*rows, until_s=until_s, next_s=next_s), settings=SETTINGS)


def late(*rows: Row, until_s: float, next_s: float = 10, text: str = "") -> Case:
    rows = (*quorum(*rows, until_s=until_s, next_s=next_s),)
    return fails(*rows, settings=SETTINGS, text=text, facts=["quorum_terms", "quorum_terms"])


CASES = {
    "there is no quorum": passes(TELLS, settings=SETTINGS),
    "none was replaced": passes(TELLS, led_quorum(1, 3, led_until_ns=99 * S), settings=SETTINGS),
    "it resigns before": in_time(until_s=8),
    "it resigns at the last moment": in_time(until_s=35),
    "it resigns a little later": late(
        until_s=35.000000001,
        text="broker 1 led in epoch 3 for 25.0 s after broker 2 had become leader in epoch 5, of 25.0 s",
    ),
    "it resigns later": late(until_s=35.5, text="for 25.5 s after broker 2"),
    "its process ends later": fails(*quorum(until_s=35.5, resigned=False), settings=SETTINGS, text="for 25.5 s"),
    "another one leads in the same epoch": passes(
        TELLS,
        led_quorum(1, 3, time_ns=0, led_until_ns=99 * S),
        led_quorum(3, 3, time_ns=9 * S, led_until_ns=99 * S),
        settings=SETTINGS,
    ),
    "the first that replaces it counts": fails(
        TELLS,
        led_quorum(1, 3, time_ns=0, led_until_ns=36 * S),
        led_quorum(2, 5, time_ns=10 * S, led_until_ns=20 * S),
        led_quorum(3, 7, time_ns=20 * S, led_until_ns=30 * S),
        settings=SETTINGS,
        text="for 26.0 s after broker 2",
    ),
    "it is elected again itself": passes(
        TELLS,
        led_quorum(1, 3, led_until_ns=99 * S),
        led_quorum(1, 5, seq=9, time_ns=10 * S, led_until_ns=99 * S),
        settings=SETTINGS,
    ),
    "another one led before": in_time(led_quorum(3, 1, time_ns=0, led_until_ns=S), until_s=8),
    "instants contradict epochs": in_time(until_s=35.5, next_s=1),
    "instants hardly agree with epochs": late(until_s=35.5, next_s=1.5),
    "the time-outs are longer": passes(*quorum(until_s=35.5), settings=replace(SETTINGS, quorum_resigns_ms=6_000)),
    "the time-outs are not known": passes(*quorum(until_s=35.5), settings=STRICT),
    **{
        f"in force is {fault}": late(injected(fault=fault, targets=["1"], intended_ns=9 * S, healed_s=60), until_s=60)
        for fault in ("delay", "drop-packets", "intercept", "isolate", "partition", "reset-connections", "kill")
    },
    "it is paused": in_time(injected(fault="pause", targets=["1"], intended_ns=9 * S, healed_s=60), until_s=60),
    "its clock was set": in_time(injected(fault="clock", targets=["1"], intended_ns=S, healed_s=7), until_s=60),
    "the clock of the next one was set": in_time(
        injected(fault="clock", targets=["2"], intended_ns=S, healed_s=7), until_s=60
    ),
    "the clock of another one was set": late(
        injected(fault="clock", targets=["3"], intended_ns=S, healed_s=7), until_s=60
    ),
    "it was paused before": late(injected(fault="pause", targets=["1"], intended_ns=S, healed_s=7), until_s=60),
    "a pause ended just before": in_time(injected(fault="pause", targets=["1"], intended_ns=S, healed_s=8), until_s=60),
    "it is paused when it should have resigned": late(
        injected(fault="pause", targets=["1"], intended_ns=36 * S, healed_s=60), until_s=60
    ),
}

CASES |= CASES["it resigns before"].without_each("broker_logs")

test_who_leads_a_quorum_for_too_long = table_of("quorum-leader-resigns", CASES)


@pytest.mark.spark
def test_leaders_are_judged_that_resigned_or_led_for_too_long(spark: SparkSession) -> None:
    rows = [
        *quorum(until_s=8),
        injected(fault="clock", targets=["4"], healed_s=1),
        led_quorum(4, 7, time_ns=20 * S, led_until_ns=30 * S),
        led_quorum(5, 8, time_ns=21 * S, led_until_ns=30 * S, resigned=False),
        led_quorum(6, 9, time_ns=22 * S, led_until_ns=99 * S, resigned=False),
        led_quorum(7, 10, time_ns=23 * S, led_until_ns=99 * S),
    ]
    subject = registry.check("quorum-leader-resigns").about
    assert subject is not None

    def pieces(settings: Settings) -> list[str]:
        made = facts(spark, *rows)
        found = subject.pieces(settings, *(made[name] for name in subject.facts)).collect()
        assert {(row["number"], row["unseen"]) for row in found} <= {(1, 0)}
        return sorted(row["place"] for row in found)

    assert pieces(STRICT) == []
    assert pieces(SETTINGS) == ["broker 1", "broker 2", "broker 6"]
