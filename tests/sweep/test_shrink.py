"""One schedule made small: the finding that it must have, and the scenario file that it becomes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import ScenarioError
from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.sweep.reductions import settled
from harness.sweep.shrink import Shrunk, shrink
from harness.sweep.sweep import Candidate, ScheduleVerdict
from harness.verdict import ExitCode
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, scenario
from tests.sweep.fake_judge import FakeJudge, Rule, kinds, pause_breaks_two

SEED = 5
ANY = {**KILL_LEADER, "target": "one"}
STORM = scenario(
    ANY, {**PAUSE_LEADER, "at_s": 2.5}, EXPIRE_CONTROLLER, duration_s=20.0, planted_bugs=["acks-all-on-append"]
)


def shrunk(judge: FakeJudge, finding: str | None = None) -> Shrunk:
    return shrink(Candidate(scenario=STORM, plan=make_plan(STORM, SEED)), judge, Silent(), finding=finding)


@pytest.mark.parametrize(
    ("finding", "left"),
    [
        pytest.param(None, ["pause"], id="the first finding, unless one is named"),
        pytest.param("I9", ["pause"], id="the named one"),
        pytest.param("I10", ["kill", "pause"], id="the named one, which takes more"),
    ],
)
def test_it_shrinks_as_long_as_the_same_is_found(finding: str | None, left: list[str]) -> None:
    small = shrunk(FakeJudge(pause_breaks_two), finding)
    assert sorted(kinds(small.scenario)) == left
    assert small.finding == (finding or "I9")
    assert small.exit_code is ExitCode.VIOLATED


def test_rounds_ask_the_check_in_question_and_the_end_asks_all() -> None:
    judge = FakeJudge(pause_breaks_two)
    shrunk(judge, "I10")
    assert [each.checks for each in judge.judged[:2]] == [[], []]
    assert {tuple(each.checks) for each in judge.judged[2:-1]} == {("I10",)}
    assert judge.judged[-1].checks == []


@pytest.mark.parametrize(
    ("rule", "finding", "message"),
    [
        pytest.param(lambda _: [], None, "seed 5 does not fail: the system verdict is PASS", id="nothing is found"),
        pytest.param(lambda _: ["I9"], "I1", "found were I9 log-matching, not I1", id="something else is found"),
        pytest.param(
            lambda candidate: ["I9"] if candidate == STORM else [],
            None,
            "I9 is not found when the draws of the seed are written out",
            id="its plan spelled out holds",
        ),
    ],
)
def test_what_does_not_fail_is_refused(rule: Rule, finding: str | None, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        shrunk(FakeJudge(rule), finding)


def test_the_small_one_is_a_scenario_file_that_says_how_to_replay_it(tmp_path: Path) -> None:
    small = shrunk(FakeJudge(pause_breaks_two), "I10")
    path = tmp_path / "deep" / "small.yaml"
    small.write(path)
    assert load_scenario(str(path)) == small.scenario
    assert (small.scenario.name, small.scenario.driver) == ("small-i10", "simulated")
    assert small.scenario.planted_bugs == STORM.planted_bugs
    text = path.read_text(encoding="utf-8")
    assert "I10 was found in small under seed 5." in text
    assert f"# chaos run {path} --driver simulated --seed {small.seed}\n" in text
    assert "recovery_timeout_s" not in text, "defaults are left out"


def test_interrupted_it_is_kept_and_claims_nothing(tmp_path: Path) -> None:
    judge = FakeJudge(pause_breaks_two)

    def interrupted(candidates: Sequence[Candidate]) -> list[ScheduleVerdict]:
        if any(each.scenario.duration_s < STORM.duration_s for each in candidates):
            raise KeyboardInterrupt
        return judge(candidates)

    small = shrink(Candidate(scenario=STORM, plan=make_plan(STORM, SEED)), interrupted, Silent())
    assert kinds(small.scenario) == ["pause"]
    assert (small.verdict, small.exit_code) == (None, ExitCode.INCONCLUSIVE)
    small.write(tmp_path / "small.yaml")
    assert "it was interrupted" in (tmp_path / "small.yaml").read_text(encoding="utf-8")


def test_spelled_out_a_scenario_has_the_same_plan_but_for_the_words() -> None:
    plan = make_plan(STORM, SEED)
    again = make_plan(settled(STORM, plan), SEED)
    assert [(each.at_s, each.fault, each.brokers) for each in again.faults] == [
        (each.at_s, each.fault, each.brokers) for each in plan.faults
    ]
    assert again.clients == plan.clients
    assert all(fault.jitter_s == 0 and str(fault.target) != "one" for fault in settled(STORM, plan).faults)


def test_a_fault_on_a_broker_that_is_held_already_is_left_out() -> None:
    twice = scenario(
        {**KILL_LEADER, "target": "one", "jitter_s": 0.0},
        *({**PAUSE_LEADER, "target": "one", "at_s": 2.0, "jitter_s": 0.0, "duration_s": 1.0} for _ in range(4)),
    )
    plan = make_plan(twice, SEED)
    killed = plan.faults[0].brokers
    assert killed in [fault.brokers for fault in plan.faults[1:]], "one of four pauses hits the broker that is dead"
    left = settled(twice, plan).faults
    assert str(left[0].target) == str(killed[0])
    assert str(killed[0]) not in [str(fault.target) for fault in left[1:]]
    assert all(str(fault.target).isdecimal() for fault in left)
