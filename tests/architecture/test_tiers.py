"""The two tiers of the tests, the commit's sample, and what is kept of how long tests took."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.system.engine import ENGINE_VARIABLE
from tests import sampling
from tests.conftest import pytest_collection_modifyitems, pytest_ignore_collect
from tests.durations import lines
from tests.shared import ROOT, SPARK, _group_of

PARTS = list(range(20))
DRAWN = "tests/analysis/test_coverage.py"


class Item:
    """A collected test with some marks and fixtures."""

    def __init__(
        self,
        marks: Sequence[str],
        fixtures: Sequence[str],
        module: str = "tests/analysis/engine/test_jvm.py",
        name: str = "test_it",
        **turns: str | bool,
    ) -> None:
        self.nodeid = f"{module}::{name}"
        self.marks = list(marks)
        self.fixturenames = fixtures
        self.turns = turns

    def get_closest_marker(self, name: str) -> SimpleNamespace | None:
        return next((SimpleNamespace(args=(3,), kwargs=self.turns) for mark in self.marks if mark == name), None)

    def iter_markers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=mark) for mark in self.marks]

    def add_marker(self, mark: str) -> None:
        self.marks.append(mark)


def collected(*items: Item, tier: str, named: Sequence[str] = ("tests",)) -> list[Item]:
    """Return those that are run of a tier, or by names."""
    config = SimpleNamespace(
        args=named,
        option=SimpleNamespace(markexpr=tier),
        hook=SimpleNamespace(pytest_deselected=lambda items: None),
    )
    left = list(items)
    pytest_collection_modifyitems(cast("pytest.Config", config), cast("list[pytest.Item]", left))
    return left


@pytest.mark.parametrize(
    ("marks", "fixtures", "tier"),
    [
        pytest.param([], ["tmp_path"], "fast", id="a test that needs nothing"),
        pytest.param(["spark"], ["spark"], "fast", id="one that judges"),
        pytest.param([], ["apache_spark"], "slow", id="one that judges by Apache Spark alone"),
        pytest.param(["cluster"], [], "slow", id="one that starts real processes"),
        pytest.param(["cluster", "smoke"], [], "fast", id="the one whole run"),
        pytest.param(["spark", "whole"], [], "slow", id="one of many whole histories"),
        pytest.param([], ["airflow"], "slow", id="one whose fixture starts Airflow"),
        pytest.param([], ["docker_images"], "slow", id="one whose fixture needs an engine"),
    ],
)
def test_every_test_is_in_one_tier(marks: Sequence[str], fixtures: Sequence[str], tier: str) -> None:
    item = Item(marks, fixtures, module="tests/analysis/test_plans.py")
    collected(item, tier="")
    assert {"fast", "slow"} & set(item.marks) == {tier}


@pytest.mark.parametrize(
    ("marks", "module"),
    [
        pytest.param([], "tests/analysis/test_plans.py", id="a test without the mark"),
        pytest.param(["spark"], "tests/system/test_pids.py", id="a module whose text does not say so"),
    ],
)
def test_a_test_that_judges_is_marked(marks: Sequence[str], module: str) -> None:
    with pytest.raises(pytest.UsageError, match="uses the Spark session"):
        collected(Item(marks, ["spark"], module), tier="")


@pytest.mark.parametrize(
    ("engine", "module", "shares"),
    [
        pytest.param("sail", "tests/analysis/test_judge.py", False, id="Sail is started for each module"),
        pytest.param("spark", "tests/analysis/test_judge.py", True, id="Apache Spark is shared where it judges all"),
        pytest.param("spark", "tests/system/test_pids.py", False, id="other modules share nothing"),
        pytest.param("sail", "tests/sweep/test_jobs.py", True, id="sweeps share Apache Spark"),
        pytest.param("sail", "tests/analysis/engine/test_jvm.py", True, id="and so does a test that takes the fixture"),
        pytest.param("sail", DRAWN, True, id="and a module that the commit draws"),
    ],
)
def test_modules_share_apache_spark(engine: str, module: str, shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, engine)
    monkeypatch.setattr("tests.shared.again_by_spark", lambda: frozenset({ROOT / DRAWN}))
    assert (_group_of.__wrapped__(module) == SPARK) is shares


@pytest.mark.parametrize(
    ("tier", "module", "ignored"),
    [
        pytest.param(
            "slow",
            "tests/checks/test_service.py",
            True,
            id="the slow tier leaves out a module without slow tests",
        ),
        pytest.param("slow", "tests/analysis/engine/test_jvm.py", None, id="a module with a mark is looked at"),
        pytest.param("slow", "tests/cluster/containers/test_driver.py", None, id="one with a fixture too"),
        pytest.param("slow", "tests/dags/conftest.py", None, id="what is no module of tests as well"),
        pytest.param("fast", "tests/checks/test_service.py", None, id="the fast tier looks at every module"),
    ],
)
def test_a_worker_of_the_slow_tier_imports_what_may_belong_to_it(tier: str, module: str, ignored: bool | None) -> None:
    config = SimpleNamespace(option=SimpleNamespace(markexpr=tier))
    assert pytest_ignore_collect(ROOT / module, cast("pytest.Config", config)) is ignored


def test_a_slow_test_in_a_module_that_does_not_say_so_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="is slow"):
        collected(Item(["whole"], [], module="tests/checks/test_service.py"), tier="fast")


def test_a_commit_has_its_sample_and_another_commit_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ALL", False)
    samples = []
    for commit in ("f058d1f9", "46ae797d", "f058d1f9"):
        monkeypatch.setattr(sampling, "DRAW", commit)
        samples.append(sampling.sampled(PARTS, 4))
    assert samples[0] == samples[2] != samples[1]
    assert all(sorted(sample) == sample and len(sample) == 4 for sample in samples)


def test_a_checkout_draws_by_its_commit_and_a_tree_without_one_by_its_content(tmp_path: Path) -> None:
    module = tmp_path / "tests/test_it.py"
    module.parent.mkdir()
    module.write_text("one")
    drawn = [sampling.drawn_by(tmp_path), sampling.drawn_by(tmp_path)]
    module.write_text("two")
    drawn.append(sampling.drawn_by(tmp_path))
    for command in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    drawn.append(sampling.drawn_by(tmp_path))
    module.write_text("three")
    drawn.append(sampling.drawn_by(tmp_path))
    assert (drawn[0], drawn[3]) == (drawn[1], drawn[4])
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    ("tier", "marks", "named", "number"),
    [
        pytest.param("slow", ["jvm"], "tests", 3, id="a whole tier has the commit's"),
        pytest.param("fast", [], "tests", 3, id="and so has the other one"),
        pytest.param("fast", ["jvm"], "tests", 9, id="which leaves out nothing of the first"),
        pytest.param("", ["jvm"], "tests/analysis", 9, id="a named module is run whole"),
        pytest.param(
            "slow", ["jvm"], "tests/analysis/engine/test_jvm.py::test_1", 9, id="named tests of a tier are run"
        ),
    ],
)
def test_of_those_that_take_turns_the_commit_draws_some(
    tier: str, marks: list[str], named: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ALL", False)
    marked = [Item([*marks, "rotating"], [], name=f"test_{number}") for number in range(9)]
    unmarked = Item(marks, [], name="test_another")
    left = collected(*marked, unmarked, tier=tier, named=[named])
    assert (unmarked in left, len(left)) == (True, number + 1)


def test_tests_of_several_modules_may_take_turns_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ALL", False)
    modules = sorted(ROOT.glob("tests/integration/test_*.py"))[:9]
    marked = [Item(["jvm", "rotating"], [], module=str(module.relative_to(ROOT)), of="long") for module in modules]
    assert len(collected(*marked, tier="slow")) == 3


def test_tests_that_share_what_is_dear_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ALL", False)
    modules = [str(module.relative_to(ROOT)) for module in sorted(ROOT.glob("tests/integration/test_*.py"))[:9]]
    marked = [
        Item(["jvm", "rotating"], [], module=module, name=name, of="dear", together=True)
        for module in modules
        for name in ("test_it", "test_that")
    ]
    left = [item.nodeid.partition("::")[0] for item in collected(*marked, tier="slow")]
    assert {module: left.count(module) for module in left} == dict.fromkeys(left, 2)
    assert len(left) == 2 * 3


def test_whoever_asks_for_all_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ALL", True)
    assert sampling.sampled(PARTS, 4) == PARTS


def test_durations_are_summed_by_test_and_folder() -> None:
    def report(nodeid: str, when: str, duration: float) -> pytest.TestReport:
        return pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, when, duration=duration)  # type: ignore[arg-type]

    slow, quick = "tests/a/test_x.py::test_slow", "tests/b/test_y.py::test_quick"
    durations = list(lines([report(slow, "setup", 2), report(slow, "call", 3), report(quick, "call", 1), object()]))
    assert durations == [
        "2 tests, 6 s of all workers together",
        "     5.0 s      1 tests  tests/a",
        "     1.0 s      1 tests  tests/b",
        "the 50 slowest",
        f"     5.0 s  {slow}",
        f"     1.0 s  {quick}",
    ]
