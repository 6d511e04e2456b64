"""What a night consists of: each step a command of its own, its size by a scale."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.cluster.systems.system import system_named
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.scenario.suite import SuiteRun, load_suite
from harness.system.engine import Engine
from harness.verdict import ExitCode
from tools.peers import KAFKA_LIBS

HISTORIES = 2_000
GATE_HISTORIES = 100_000
"""Tiny ones, other ones each night."""
DAMAGES = 2_000
FEWEST_DAMAGES = 8
SCHEDULES = 10_000
INPUTS = 1_000_000
KILLS = 60
MUTANTS = 300
FEWEST_MUTANTS = 3
SOAK_S = 3_600
SHORTEST_SOAK_S = 20
FAULT_EVERY_S = 15
LONGEST_S = 6 * 3600.0
SHORTEST_LIMIT_S = 900.0
"""For the smallest steps, which take a few minutes where nothing else runs."""
SWEPT = (
    "mix",
    "storm-sweep",
    "tools/administration-light.yaml",
    "tools/groups-light.yaml",
    "tools/scripts-light.yaml",
    "tools/slow-scripts-light.yaml",
    "tools/restarted-scripts-light.yaml",
)
HISTORIES_TESTS = (
    "tests/analysis/test_generated_histories.py",
    "tests/histories",
    "tests/sweep/test_planted_bugs.py",
    "tests/integration/test_scenarios.py",
    "tests/experiment/test_damage.py",
    "tests/integration/test_tour.py",
)
"""Those that a night makes longer; a small one has no others."""
FEWEST_HISTORIES = 60
"""As many as it takes that each corruption finds one that it can be planted in."""
SCRIPTS = 20_000
FEWEST_SCRIPTS = 100
QUICK_SCRIPTS_A_SLOW_ONE = 40
QUICK_SCRIPTS_A_RESTARTED_ONE = 100
SIDE_BY_SIDE = ("transactions", "failing_transactions")
"""Scripts whose recorded answers of real Kafka are compared with those of tonight."""
PUBLISHED = "published-bugs"
"""The suite whose runs are a step each, whatever the scale."""
INCONCLUSIVE = frozenset({ExitCode.INCONCLUSIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, and what its end means."""

    name: str
    about: str
    """What it is, with its size, in a sentence."""
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    passing: int = 0
    """The exit code of a step that has passed."""
    doubtful: frozenset[int] = frozenset()
    """Exit codes that prove nothing and are no failure."""
    lacking: str = ""
    """Why it cannot be carried out here; empty if it can."""


def limit_s(scale: float) -> float:
    """Return when a step is ended, and has failed."""
    return max(SHORTEST_LIMIT_S, LONGEST_S * scale)


def steps(scale: float, seed: int, folder: Path) -> list[Step]:
    """Return the steps of a night.

    Args:
        scale: 1 for a whole night; less makes each step smaller.
        seed: Of whatever draws.
        folder: Where steps leave what they make.
    """

    def scaled(whole: int, least: int = 1) -> int:
        return max(least, round(whole * scale))

    python = (sys.executable, "-m")
    chaos = (*python, "harness")
    histories, inputs, every = scaled(HISTORIES, FEWEST_HISTORIES), scaled(INPUTS), max(1, round(1 / scale))
    broker_mutants = scaled(MUTANTS, FEWEST_MUTANTS)
    damages, kills = scaled(DAMAGES, FEWEST_DAMAGES), scaled(KILLS)
    scripts = scaled(SCRIPTS, FEWEST_SCRIPTS)
    schedules, soak_s = scaled(SCHEDULES), scaled(SOAK_S, SHORTEST_SOAK_S)
    is_whole = scale >= 1
    sample, tests = ("all", ("-m", "slow and not published")) if is_whole else ("of the commit", HISTORIES_TESTS)
    faults = max(1, soak_s // FAULT_EVERY_S)
    return [
        Step(
            name="tests",
            about=f"Whatever takes turns ({sample}), {histories:,} generated histories, {damages:,} damaged runs.",
            command=(*python, "pytest", *tests, f"--junitxml={folder / 'tests.xml'}"),
            environment={
                "CHAOS_SAMPLE": sample,
                "CHAOS_ENGINE": Engine.SPARK,
                "CHAOS_HISTORIES": str(histories),
                "CHAOS_DAMAGES": str(damages),
                "CHAOS_GATE_HISTORIES": str(scaled(GATE_HISTORIES)),
                "CHAOS_GATE_FIRST": str(seed * GATE_HISTORIES),
            },
        ),
        Step(
            name="mutation",
            about="Every mutant of every check." if every == 1 else f"One of {every:,} mutants of all checks.",
            command=(*python, "tests.mutation", "--every", str(every)),
        ),
        Step(
            name="broker-mutants",
            about=f"{broker_mutants:,} mutants of the broker, put to the standing battery.",
            command=(
                *(*python, "tools.broker_mutants", "--sample", str(broker_mutants), "--seed", str(seed)),
                *("--out", str(folder / "broker-mutants.jsonl")),
            ),
        ),
        *(published_bug(run, seed, folder) for run in load_suite(PUBLISHED).runs),
        *(
            Step(
                name=f"sweep-{Path(scenario).stem}",
                about=f"{schedules:,} schedules of {scenario}, judged by all checks.",
                command=(
                    *(*chaos, "simulate", scenario, "--schedules", str(schedules), "--seed", str(seed)),
                    *("--out", str(folder / "sweeps")),
                ),
                doubtful=INCONCLUSIVE,
            )
            for scenario in SWEPT
        ),
        Step(
            name="soak",
            about=f"A real cluster under load for {soak_s:,} s; faults: {faults}.",
            command=(
                *(*chaos, "run", "mix", "--seed", str(seed), "--runs", str(folder / "runs")),
                *("--set", f"duration_s={soak_s}", "--set", f"mix.count={faults}"),
            ),
            doubtful=INCONCLUSIVE,
        ),
        Step(
            name="kills",
            about=f"{kills:,} experiments killed at any instant of any phase: nothing is left, and none passes.",
            command=(*python, "tools.kills", "--kills", str(kills), "--seed", str(seed)),
        ),
        Step(
            name="kills-one-by-one",
            about=f"{kills:,} runs whose phases are called one by one; a process of each is killed: none accuses.",
            command=(*python, "tools.kills", "--one-by-one", "--kills", str(kills), "--seed", str(seed)),
        ),
        Step(
            name="fuzzing",
            about=f"{inputs:,} damaged requests.",
            command=(*python, "tools.fuzzing", "--inputs", str(inputs), "--seed", str(seed)),
        ),
        *(side_by_side(name) for name in SIDE_BY_SIDE),
        Step(
            name="differential",
            about=f"{scripts:,} random scripts of client calls: this broker answers them as Kafka 3.9 does.",
            command=(
                *(*python, "tools.differential", "--scripts", str(scripts), "--seed", str(seed)),
                *("--slow", str(max(1, scripts // QUICK_SCRIPTS_A_SLOW_ONE))),
                *("--restarts", str(max(1, scripts // QUICK_SCRIPTS_A_RESTARTED_ONE))),
            ),
            lacking=_lacking_jars(),
        ),
        Step(
            name="determinism",
            about="The last commit beside itself: the same plans, histories and verdicts.",
            command=(*python, "tools.same_behaviour", "HEAD", "HEAD", *(() if is_whole else ("--quick",))),
        ),
    ]


def side_by_side(name: str) -> Step:
    """Return a script that asks real Kafka again, and compares its answers with the recorded ones."""
    return Step(
        name=f"side-by-side-{name.replace('_', '-')}",
        about=f"Kafka 3.9 answers the situations of {name} as it is recorded.",
        command=(sys.executable, "-m", f"tools.side_by_side.{name}", "--check"),
        lacking=_lacking_jars(),
    )


def _lacking_jars() -> str:
    has_jars = any(KAFKA_LIBS.glob("kafka_2.13-*.jar"))
    return "" if has_jars else f"no jars of Kafka 3.9 in {KAFKA_LIBS}: run `make kafka-libs`"


def published_bug(run: SuiteRun, seed: int, folder: Path) -> Step:
    """Return a run of a suite as a step: it passes if it comes to what the suite expects."""
    scenario = load_scenario(run.scenario, options(run.driver, run.planted_bugs, run.set))
    is_violated = run.expect == "violated"
    sets = [part for each in run.set for part in ("--set", each)]
    bugs = [part for bug in run.planted_bugs for part in ("--planted-bug", bug)]
    own_seed = seed if run.seed is None else run.seed
    return Step(
        name=f"{run.scenario}-{scenario.system.replace(':', '-')}",
        about=f"{run.scenario} on {scenario.system} {'is found to break a promise' if is_violated else 'holds'}.",
        command=(
            *(sys.executable, "-m", "harness", "run", run.scenario, "--driver", scenario.driver, *sets, *bugs),
            *("--seed", str(own_seed), "--runs", str(folder / "runs")),
        ),
        passing=ExitCode.VIOLATED if is_violated else ExitCode.HELD,
        doubtful=INCONCLUSIVE,
        lacking=system_named(scenario.system).lacks(),
    )
