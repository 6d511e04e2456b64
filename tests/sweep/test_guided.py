"""A guided search: what it tries depends on its seed and on what was reached, and every schedule can be carried out."""

import random
from collections import Counter
from pathlib import Path

import pytest

from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.scenario.model import Scenario
from harness.scenario.source import options
from harness.sweep import jobs, rounds
from harness.sweep.guided import BLIND_SHARE, Guide, rounds_of
from harness.sweep.reductions import legal
from harness.sweep.sweep import Candidate, Sweep, failed


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("tools/mix-light.yaml", options("simulated", [], []))


def taught(scenario: Scenario, seed: int = 1) -> tuple[Guide, list[Candidate]]:
    """Return a guide after a round in which each schedule reached one feature of its own and a common one."""
    guide = Guide(scenario=scenario, seed=seed)
    candidates = guide.next_round(4)
    guide.learn(candidates, [{"common": 1.0, f"own {number}": 2.0} for number in range(4)])
    return guide, candidates


def keys(candidates: list[Candidate]) -> list[tuple[str, int]]:
    return [(each.scenario.model_dump_json(), each.plan.seed) for each in candidates]


def test_the_same_seed_and_features_give_the_same_rounds_and_another_seed_gives_others(scenario: Scenario) -> None:
    first, again, other = (keys(taught(scenario, seed)[0].next_round(12)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_schedule_would_be_accepted_as_a_file_and_its_plan_is_the_one_of_its_seed(scenario: Scenario) -> None:
    guide, _ = taught(scenario)
    tried = guide.next_round(24)
    assert all(legal(each.scenario.model_dump(mode="json")) == each.scenario for each in tried)
    assert all(each.scenario.mix is None for each in tried)


def test_a_quarter_stays_blind(scenario: Scenario) -> None:
    blind = keys(Guide(scenario=scenario, seed=1).next_round(8))
    guide, first = taught(scenario)
    guided = keys(guide.next_round(4 * BLIND_SHARE))
    assert keys(first) == blind[:4], "nothing is known in the first round"
    assert len([each for each in guided if each in blind]) == 4


def test_the_corpus_keeps_the_smallest_schedule_that_shows_a_feature(scenario: Scenario) -> None:
    guide, candidates = taught(scenario)
    smallest = candidates[0].scenario.model_copy(update={"faults": []})
    new = guide.learn([Candidate(scenario=smallest, plan=candidates[0].plan)], [{"common": 1.0, "new": 1.0}])
    assert new == 1
    assert guide.corpus["common"].candidate.scenario == smallest
    assert guide.corpus["own 1"].candidate == candidates[1]


def choices_of(guide: Guide, tries: int = 2000) -> Counter[str]:
    rng = random.Random(1)
    return Counter(guide._choice(rng) for _ in range(tries))


def test_a_class_with_few_features_is_chosen_as_often_as_one_with_many(scenario: Scenario) -> None:
    guide = Guide(scenario=scenario, seed=1)
    reached = {"deletion: waits": 1.0, **{f"partition: {number}": 1.0 for number in range(99)}}
    guide.learn(guide.next_round(2), [reached, reached])
    assert 800 < choices_of(guide)["deletion: waits"] < 1200


def test_a_class_of_which_nearly_all_is_new_in_each_schedule_is_seldom_chosen(scenario: Scenario) -> None:
    guide = Guide(scenario=scenario, seed=1)
    reached = [{"deletion: waits": 1.0, **{f"step: {n} of {each}": 1.0 for n in range(99)}} for each in range(2)]
    guide.learn(guide.next_round(2), reached)
    assert choices_of(guide)["deletion: waits"] > 1900


def test_what_few_have_shown_and_what_was_seldom_chosen_has_the_best_odds(scenario: Scenario) -> None:
    guide = Guide(scenario=scenario, seed=1)
    candidates = guide.next_round(4)
    guide.learn(candidates, [{"group: common": 1.0}] * 3 + [{"group: common": 1.0, "group: rare": 1.0}])
    before = choices_of(guide)
    assert 3 < before["group: rare"] / before["group: common"] < 5
    guide.chosen["group: rare"] = 7
    after = choices_of(guide)
    assert 0.4 < after["group: rare"] / after["group: common"] < 0.6
    guide.learn(candidates[:1], [{"group: new": 1.0}])
    assert choices_of(guide)["group: new"] > 1200


def test_a_choice_is_counted_when_a_schedule_comes_of_it(scenario: Scenario) -> None:
    guide, _ = taught(scenario)
    tried = guide.next_round(2 * BLIND_SHARE)
    assert guide.chosen.total() == len(tried) - len(tried) // BLIND_SHARE


def test_most_of_what_is_tried_has_the_draws_of_its_parent(scenario: Scenario) -> None:
    guide, first = taught(scenario)
    tried = [each.scenario for number, each in enumerate(guide.next_round(40)) if number % BLIND_SHARE]
    drawn = [(each.scenario.cluster, each.scenario.topics, each.scenario.workloads) for each in first]
    assert sum((each.cluster, each.topics, each.workloads) in drawn for each in tried) > 20


def test_rounds_have_all_schedules() -> None:
    assert list(rounds_of(20, 8)) == [8, 8, 4]
    assert list(rounds_of(8, 8)) == [8]
    assert list(rounds_of(70, 8)) == [8, 8, 8, 8, 8, 10, 12, 8]


def test_a_round_is_made_of_what_the_one_before_reached_and_each_finding_has_its_scenario(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Telling(Silent):
        def __init__(self) -> None:
            self.messages: list[str] = []

        def message(self, text: str) -> None:
            self.messages.append(text)

        def done(self, what: str, schedules: int, of: int, violated: int = 0) -> None:
            pass

    written: list[tuple[int, int]] = []
    monkeypatch.setattr(rounds, "ROUND", 3)
    monkeypatch.setattr(
        jobs, "simulate_candidates", lambda spark, some, path, progress, first: written.append((first, len(some)))
    )
    monkeypatch.setattr(jobs, "features_in", lambda path, numbers: [{f"of {path.stem}": 1.0} for _ in numbers])
    monkeypatch.setattr(
        jobs,
        "judge_histories",
        lambda spark, path, some, root, progress: [
            failed(number=number, seed=each.plan.seed, run_id="", error="Stuck") for number, each in enumerate(some)
        ],
    )
    sweep = Sweep(scenario=scenario, seed=1, schedules=5, root=tmp_path)
    telling = Telling()
    made = rounds.search(None, sweep, telling)  # type: ignore[arg-type]
    assert (written, len(made)) == ([(0, 3), (3, 2)], 5)
    assert telling.messages == ["round 1: 1 new feature, 1 in all", "round 2: 1 new feature, 2 in all"]
    summary = rounds.judge_rounds(None, sweep, made, telling, simulated_s=1.0)  # type: ignore[arg-type]
    (doubt,) = summary.doubts
    assert doubt.schedules == 5
    path = tmp_path / "found" / "schedule-000000.yaml"
    assert doubt.replay == f"chaos run {path} --driver simulated --seed {made[0].plan.seed}"
    assert load_scenario(str(path), options(None, [], [])).faults == made[0].scenario.faults
    assert len(sweep.verdicts.read_text().splitlines()) == 5
