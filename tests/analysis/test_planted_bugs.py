"""Every planted bug is found by a sweep, by the check that it should be found by, and a sound broker by none.

The schedules are those of `chaos simulate SCENARIO --planted-bug NAME --seed 1 --schedules 3`; all are judged at once.
"""

from dataclasses import dataclass

import pytest

from harness.analysis.sweep import judge_candidates
from harness.broker.rules import PLANTED_BUGS
from harness.plan import make_plan
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.sweep import Candidate, ScheduleVerdict, found_in, schedule_seed

pytestmark = pytest.mark.spark

SEED, SCHEDULES = 1, 3
LIGHT = ("workloads.0.parameters.rate_per_s=40", "topics.0.config={min.insync.replicas: 1}", "planted_bugs=[]")
FORBIDDEN = (
    "workloads.0.parameters={rate_per_s: 40, producers: 1}",
    "topics.0.config={min.insync.replicas: 1}",
    "faults.0.parameters.lag_records=10",
    "duration_s=14",
)
"""The unclean election of the built-in scenario, where it is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    scenario: str
    sets: tuple[str, ...]
    finding: str


SWEEPS = {
    "acks-all-on-append": Sweep(scenario="acks-all-on-append", sets=LIGHT, finding="I10"),
    "high-watermark-without-isr": Sweep(scenario="acks-all-on-append", sets=LIGHT, finding="I10"),
    "reads-uncommitted": Sweep(scenario="acks-all-on-append", sets=LIGHT, finding="inconsistent-offsets"),
    "no-truncation-by-leader-epoch": Sweep(scenario="no-truncation", sets=(LIGHT[0], LIGHT[2]), finding="I9"),
    "unclean-ignores-config": Sweep(scenario="unclean-election", sets=FORBIDDEN, finding="I10"),
    "last-isr-member-dropped": Sweep(scenario="unclean-election", sets=FORBIDDEN, finding="I3"),
    "unclean-keeps-old-isr": Sweep(
        scenario="unclean-election",
        sets=(*FORBIDDEN, "topics.0.config={min.insync.replicas: 1, unclean.leader.election.enable: true}"),
        finding="I3",
    ),
}
WITHOUT_SWEEP = {
    "producer-state-lost": "simulated producers are not idempotent",
    "leads-on-without-disk": "no fault breaks a disk",
    "preferred-not-in-isr": "leads are balanced once, five seconds after a controller took over",
    "controller-never-resigns": "without its session it has no watches, so it does nothing",
    "bounced-brokers-ignored": "no fault restarts a broker faster than its session ends",
    "no-controller-epoch-check": "a replaced controller's requests are older than its successor's epoch only by luck",
    "no-broker-epoch": "no fault restarts a broker faster than its session ends",
    "truncate-to-high-watermark": "takes a kill while the high watermark lags behind",
    "truncation-in-one-round": "takes two quick changes of leader",
    "isr-join-without-epoch-start": "takes a change of leader and another failure at once",
    "isr-before-zookeeper": "takes a leader that is cut off from ZooKeeper only",
    "isr-write-without-version": "takes a leader that is cut off from ZooKeeper only",
    "high-watermark-ignores-joining": "costs availability, and no check asks about that",
    "no-leader-epoch-fence": "takes a leader that is cut off from ZooKeeper only",
    "no-fetch-session-epoch": "no follower asks twice in one session",
    "no-crc-recovery": "takes a torn write",
    "controller-writes-unfenced": "takes a controller that is paused in the middle of a write",
}
"""Planted bugs that no sweep here looks for yet, and what it would take."""


@pytest.fixture(scope="module")
def verdicts(spark, tmp_path_factory) -> dict[str, list[ScheduleVerdict]]:
    """The verdicts on every schedule, by planted bug; those on a sound broker by an empty name."""
    asked = [(bug, sweep, [bug]) for bug, sweep in SWEEPS.items()]
    asked += [("", SWEEPS["acks-all-on-append"], []), ("", SWEEPS["unclean-keeps-old-isr"], [])]
    candidates, names = [], []
    for name, sweep, bugs in asked:
        scenario = load_scenario(sweep.scenario, options("simulated", bugs, sweep.sets))
        for number in range(SCHEDULES):
            candidates.append(Candidate(scenario=scenario, plan=make_plan(scenario, schedule_seed(SEED, number))))
            names.append(name)
    found: dict[str, list[ScheduleVerdict]] = {}
    for name, verdict in zip(names, judge_candidates(spark, candidates, tmp_path_factory.mktemp("sweep")), strict=True):
        found.setdefault(name, []).append(verdict)
    return found


@pytest.mark.parametrize("bug", list(SWEEPS))
def test_a_planted_bug_is_found_by_its_check(bug: str, verdicts: dict[str, list[ScheduleVerdict]]) -> None:
    found = [found_in(verdict) for verdict in verdicts[bug]]
    first = next((number for number, each in enumerate(found, start=1) if SWEEPS[bug].finding in each), None)
    assert first is not None, f"found were {found}"
    print(f"{bug}: {SWEEPS[bug].finding} after {first} of {SCHEDULES} schedules")  # noqa: T201


def test_a_sound_broker_breaks_no_promise_under_the_same_schedules(verdicts: dict[str, list[ScheduleVerdict]]) -> None:
    systems = [verdict.system for verdict in verdicts[""]]
    assert "FAIL" not in systems
    assert "PASS" in systems


def test_every_bug_named_here_can_be_planted() -> None:
    assert {*SWEEPS, *WITHOUT_SWEEP} <= {bug.name for bug in PLANTED_BUGS}
