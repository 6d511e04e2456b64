"""The same seed gives the same history, byte for byte: twice in one process, and in processes that hash otherwise."""

import os
import subprocess
import sys

import pytest

from harness.simulation.schedule import simulate
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, scenario

SEEDS = range(12)
FAULTS = {
    "kill": (KILL_LEADER, {**EXPIRE_CONTROLLER, "at_s": 6.0}),
    "pause": (PAUSE_LEADER, {**KILL_LEADER, "at_s": 2.5, "duration_s": 5.0, "target": "1"}),
}


def digests(name: str) -> list[str]:
    return [simulate(scenario(*FAULTS[name]), seed).digest() for seed in SEEDS]


@pytest.mark.parametrize("name", FAULTS)
def test_a_seed_gives_the_same_bytes_whatever_the_process(name: str) -> None:
    code = f"from tests.simulation.test_determinism import digests; print(*digests({name!r}))"
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([".", "plugins"])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1] == digests(name)
    assert len(set(told[0])) == len(SEEDS), "every seed is another schedule"


@pytest.mark.parametrize("seed", range(3))
def test_messages_and_bytes_make_no_difference(seed: int) -> None:
    small = scenario(KILL_LEADER)
    by_message = simulate(small, seed, through_codecs=False)
    by_frame = simulate(small, seed, through_codecs=True)
    assert by_message.digest() == by_frame.digest()
