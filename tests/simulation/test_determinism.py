"""The same seed gives the same history, byte for byte: in any process, whatever ran before, by message or bytes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pytest

from harness.scenario.file import load_scenario
from harness.simulation.loop import LimitReached, run
from harness.simulation.schedule import simulate
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, SHUT_DOWN, scenario
from tests.simulation.storm import weather

SEEDS = range(6)
STORMS = range(3)
FAULTS = {
    "kill": (KILL_LEADER, {**EXPIRE_CONTROLLER, "at_s": 6.0}),
    "pause": (PAUSE_LEADER, {**KILL_LEADER, "at_s": 2.5, "duration_s": 5.0, "target": "1"}),
    "shutdown": ({**SHUT_DOWN, "target": "leader(orders,0)"}, {**EXPIRE_CONTROLLER, "at_s": 3.0}),
}


def digests(name: str, *, backwards: bool = False) -> list[str]:
    """Return the digests of all seeds in their order, whatever order they are simulated in."""
    digest: Callable[[int], str]
    if name == "every power":
        seeds, digest = STORMS, lambda seed: weather(seed).digest()
    elif name == "every power, through codecs":
        seeds, digest = STORMS[:2], lambda seed: weather(seed, through_codecs=True).digest()
    elif name == "transactions of a group":
        seeds, digest = range(2), lambda seed: simulate(load_scenario("tools/exactly-once-light.yaml"), seed).digest()
    else:
        seeds, digest = SEEDS, lambda seed: simulate(scenario(*FAULTS[name]), seed).digest()
    by_seed = {seed: digest(seed) for seed in (reversed(seeds) if backwards else seeds)}
    return [by_seed[seed] for seed in seeds]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "kill" else (pytest.mark.whole, pytest.mark.rotating(2)))
        for name in (*FAULTS, "every power", "every power, through codecs", "transactions of a group")
    ],
)
def test_a_seed_gives_the_same_bytes_whatever_the_process_and_whatever_ran_before(name: str) -> None:
    code = "from tests.simulation.test_determinism import digests; print(*digests({!r}, backwards={}))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code.format(name, backwards)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([".", "plugins"])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed, backwards in (("1", False), ("2", True))
    ]
    assert printed[0] == printed[1] == digests(name)
    assert len(set(printed[0])) == len(printed[0]), "every seed is another schedule"


@pytest.mark.parametrize("seed", range(3))
def test_messages_and_bytes_make_no_difference(seed: int) -> None:
    small = scenario(KILL_LEADER)
    by_message = simulate(small, seed, through_codecs=False)
    by_frame = simulate(small, seed, through_codecs=True)
    assert by_message.digest() == by_frame.digest()


def test_messages_and_bytes_make_no_difference_to_a_storm_either() -> None:
    assert weather(1, through_codecs=False).digest() == weather(1, through_codecs=True).digest()


def test_a_run_that_was_given_up_leaves_nothing_for_the_next_one() -> None:
    small = scenario(KILL_LEADER)
    before = simulate(small, 5).digest()

    async def never_ends() -> None:
        for _ in count():
            await asyncio.sleep(1)

    with pytest.raises(LimitReached):
        run(never_ends(), max_time_s=10)
    assert simulate(small, 5).digest() == before
