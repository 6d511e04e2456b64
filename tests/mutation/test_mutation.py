"""The mutation run itself: what it changes, and that the tests of a check kill and spare what they should."""

import ast
from typing import TYPE_CHECKING

import pytest
from ruamel.yaml import YAML

from tests.mutation.__main__ import EQUIVALENT
from tests.mutation.mutants import mutants
from tests.mutation.run import Judge, modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GUARDS = {
    "where(rows.a < 1)": {"rows.a <= 1", "rows.a >= 1", "rows.a < 2"},
    "one & two": {"one | two", "one", "two"},
    "~one": {"one"},
    "one - two": {"one + two"},
    "rows.where(one & two)": {"rows", "rows.where(~(one & two))", "rows.where(one | two)", "rows.where(one)"},
    "rows.where('unclean')": {"rows", "rows.where('NOT (unclean)')"},
    "F.when(one, 1).when(two, 2)": {"F.when(one, 1)"},
    "rows.join(other, on=['run_id', 'topic'], how='left_anti')": {
        "rows.join(other, on=['run_id', 'topic'], how='left_semi')",
        "rows.join(other, on=['run_id'], how='left_anti')",
    },
    "F.min_by(one, two)": {"F.max_by(one, two)"},
    "rows.isNull()": {"rows.isNotNull()"},
    "F.coalesce('a', default)": {"F.coalesce('a')"},
    "one.unionByName(two)": {"one", "two"},
    "rows.groupBy('run_id', 'topic')": {"rows.groupBy('run_id')"},
    "in_order('run_id', by=('seq',))": {"in_order('run_id', by=(F.desc('seq'),))"},
    "in_turn('offset', 'value')": {"in_turn('offset')"},
    "in_turn(*place)": {"in_turn(place[0])"},
    "window.rowsBetween(first, -1)": {"window"},
    "Severity.VIOLATION.value": {"Severity.NOTE.value"},
}
TEXTS = (
    "finding(rows, message=F.format_string('%d', one + 1), evidence=F.array(one + 1))",
    "event('sends', one + 1)",
    "def f(number: int = one) -> int: ...",
    "name: str = 'I1'",
    "_LINE = ('broker', 'seq')\nevent('sends', *_LINE)",
)


def changed(source: str) -> set[str]:
    return {ast.unparse(mutant.made()) for mutant in mutants("m", source)}


@pytest.mark.parametrize("source", GUARDS)
def test_a_guard_is_negated_weakened_or_taken_out(source: str) -> None:
    wanted = {f"where({each})" if source.startswith("where(") else each for each in GUARDS[source]}
    assert wanted <= changed(source)


@pytest.mark.parametrize("source", TEXTS)
def test_texts_evidence_and_declarations_stay(source: str) -> None:
    assert changed(source) == set()


def test_what_decides_and_is_shown_too_is_a_guard() -> None:
    assert len(changed("_LINE = ('broker', 'seq')\nevent('sends', *_LINE)\nrows.select(*_LINE)")) == 2


def test_every_equivalent_mutant_is_one_that_is_made() -> None:
    known = modules()
    for name, reasons in YAML(typ="safe").load(EQUIVALENT).items():
        assert reasons.keys() <= {mutant.change for mutant in known[name].mutants()}, name


def test_what_a_check_needs_is_a_guard() -> None:
    assert len(changed("needs: ClassVar[tuple[str, ...]] = ('sends', 'polls')")) == 2


def test_what_a_check_assumes_is_a_guard() -> None:
    declared = "assumes: ClassVar[tuple[Assumption, ...]] = "
    assert changed(f"{declared}(WHOLE, *DUMPS)") == {f"{declared}(*DUMPS,)", f"{declared}(WHOLE,)"}
    assert f"{declared}()" in changed(f"{declared}(Assumption(broken=lambda rows: rows, reason='one'),)")


def test_a_mutant_says_where_it_is_and_what_it_changes() -> None:
    (first, *_) = mutants("m", "\nrows.where(one == two)")
    assert (first.line, first.change) == (2, "rows.where(one == two)  =>  rows")


@pytest.mark.spark
def test_the_tests_of_a_check_kill_its_mutants_and_spare_the_check(spark: "SparkSession") -> None:
    module = modules()["consumer_fetches"]
    judge = Judge(spark)
    assert judge.passes("consumer_fetches")
    assert [mutant.change for mutant in module.mutants()[::4] if judge.survives(module, mutant)] == []


@pytest.mark.spark
def test_a_mutant_of_what_checks_share_is_put_to_the_tests_of_those_who_use_it(spark: "SparkSession") -> None:
    module = modules()["poll_steps"]
    assert set(module.checks) == {"int_nonmonotonic_poll", "int_poll_skip", "nonmonotonic_poll", "poll_skip"}
    same = next(mutant for mutant in module.mutants() if "!=" not in mutant.change and "same" in mutant.change)
    assert not Judge(spark).survives(module, same)
