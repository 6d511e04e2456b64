"""What checks take for granted is tested once for all of them, and a broken one costs no other check its answer."""

from collections.abc import Callable
from typing import ClassVar

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.running import unknown_runs
from harness.contracts.checks import Assumption, Check, Settings, read_by
from tests.analysis.fact_rows import facts, read, sent

RUNS = ("a", "b")


class Assumer(Check):
    """A check that does nothing but assume."""

    name: ClassVar[str]
    title: ClassVar[str] = "assumer"
    promise: ClassVar[str] = "Nothing."
    needs: ClassVar[tuple[str, ...]] = ()
    assumes: ClassVar[tuple[Assumption, ...]]

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        raise NotImplementedError


def assumer(key: str, *assumed: Assumption) -> Check:
    class Named(Assumer):
        name: ClassVar[str] = key
        assumes: ClassVar[tuple[Assumption, ...]] = assumed

    return Named()


def of_b(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("run_id") == "b")


def broken_at_once(_: DataFrame) -> DataFrame:
    raise ZeroDivisionError("on purpose\nwith a second line")


def broken_when_it_runs(rows: DataFrame) -> DataFrame:
    return rows.where(F.raise_error(F.lit("only when it runs")).isNull())


def assumption(broken: Callable[..., DataFrame], *names: str, reason: str = "doubtful") -> Assumption:
    return Assumption(facts=names or ("sends",), broken=broken, reason=reason)


def unknown(spark: SparkSession, *checks: Check) -> dict[tuple[str, str], str]:
    """Return why two runs, of a send and a record each, cannot be judged."""
    rows = [(table, row | {"run_id": run_id}) for run_id in RUNS for table, row in (sent("v", 3), read("v", 4))]
    tables = facts(spark, *rows)
    return unknown_runs(checks, tables, {run_id: dict.fromkeys(tables, 1) for run_id in RUNS})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("breaks", "why"),
    [
        pytest.param(assumption(broken_at_once), "ZeroDivisionError: on purpose", id="at once"),
        pytest.param(assumption(broken_when_it_runs), "only when it runs", id="when it runs"),
        pytest.param(assumption(of_b, reason="of {nothing}"), "nothing", id="by a reason of what is not there"),
        pytest.param(assumption(of_b, "no_fact"), "KeyError: 'no_fact'", id="by a fact that is not there"),
        pytest.param(assumption(of_b, "sends", "polls"), "TypeError", id="by facts that it does not take"),
    ],
)
def test_an_assumption_that_breaks_costs_only_those_who_name_it(
    breaks: Assumption, why: str, spark: SparkSession
) -> None:
    sound = assumption(of_b)
    checks = [assumer("both", sound, breaks), assumer("sound", sound), assumer("none")]
    reasons = unknown(spark, *checks)
    assert set(reasons) == {("a", "both"), ("b", "both"), ("b", "sound")}
    assert reasons["b", "sound"] == "doubtful"
    assert all(reasons[run_id, "both"].startswith("the check broke: ") for run_id in RUNS)
    assert all(why in reasons[run_id, "both"] for run_id in RUNS)


@pytest.mark.spark
def test_what_several_checks_assume_is_tested_once(spark: SparkSession) -> None:
    tested = []

    def broken(rows: DataFrame) -> DataFrame:
        tested.append(rows)
        return of_b(rows)

    shared = assumption(broken, reason="value {value} at {offset}")
    reasons = unknown(spark, assumer("one", shared), assumer("other", shared))
    assert reasons == {("b", "one"): "value v at 3", ("b", "other"): "value v at 3"}
    assert len(tested) == 1


@pytest.mark.spark
def test_of_all_reasons_the_first_by_the_alphabet_is_told(spark: SparkSession) -> None:
    def of_both(sends: DataFrame, polls: DataFrame) -> DataFrame:
        return sends.select("run_id", "offset").unionByName(polls.select("run_id", "offset"))

    last, first = assumption(of_b, reason="z"), assumption(of_b, "polls", reason="{offset}")
    both = assumption(of_both, "sends", "polls", reason="{offset}")
    reasons = unknown(spark, assumer("one", last, first), assumer("other", both))
    assert reasons == {("b", "one"): "4", ("a", "other"): "3", ("b", "other"): "3"}


def test_the_facts_of_an_assumption_are_read_by_the_check() -> None:
    check = assumer("one", assumption(of_b, "polls", "evidence"), assumption(of_b, "topics"), assumption(of_b, "polls"))
    assert read_by(check) == ("polls", "topics")
