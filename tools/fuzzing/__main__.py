"""How many damaged requests does a broker take a second, and which of them break it?

    python -m tools.fuzzing [--inputs 1000000] [--seed 1]

An input is a stream of up to three damaged requests, in a connection that ends, is cut or reset. Each life of the
broker takes a number of them and ends, so that what is left behind, beside what a request stores, would add up. Every
fault is printed once, with the bytes that caused it first, and makes the command end with 1.
"""

import argparse
import gc
import random
import resource
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from harness.simulation.loop import run
from tools.fuzzing.frames import Frames
from tools.fuzzing.target import Fault, FuzzedBroker

INPUTS_A_LIFE = 1_000
"""Few enough that most of them meet topics, which some of them delete."""
FRAMES = 300
PROGRESS = 20_000
MOST_VIRTUAL_S = 10.0**8
MOST_EVENTS = 10**9
ENDLESS_S = 10.0
"""Of processor time, for one input."""
MOST_MEMORY_BYTES = 3 * 10**9
RESET_SHARE = 0.03


class Endless(KeyboardInterrupt):
    """One input takes for ever; a KeyboardInterrupt, which no loop and no task catches."""


def _endless(_signal: int, _frame: FrameType | None) -> None:
    raise Endless


@dataclass(slots=True)
class Life:
    """One broker from its start to its end."""

    seed: int
    inputs: int
    answered: int = 0
    faults: list[Fault] = field(default_factory=list)
    _latest: bytes = b""

    def live(self) -> None:
        """Feed it all its inputs, or as many as it survives."""
        try:
            run(self._live(), max_time_s=MOST_VIRTUAL_S, max_events=MOST_EVENTS)
        except Endless:
            self.faults.append(Fault(kind="hang", what=f"busy for {ENDLESS_S:g} s", stream=self._latest))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    async def _live(self) -> None:
        rng = random.Random(self.seed)
        async with FuzzedBroker.running(self.seed) as target:
            self.faults = target.faults
            frames = Frames(rng, (target.broker_epoch,), target.producer_ids)
            pool = [frames.valid() for _ in range(min(FRAMES, self.inputs))]
            for _ in range(self.inputs):
                count = rng.choice((1, 1, 1, 2, 3))
                damaged = [frames.damaged(rng.choice(pool), rng.choice(pool)) for _ in range(count)]
                self._latest = frames.stream(damaged)
                signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS_S)
                await target.feed(self._latest, reset=rng.random() < RESET_SHARE)
        self.answered = target.answered


def resident_mb() -> float:
    """Return how much memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzzing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _endless)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    console = Console()
    began_s = time.process_time()
    done = answered = 0
    after_lives: list[float] = []
    kinds: Counter[str] = Counter()
    while done < options.inputs:
        inputs = min(INPUTS_A_LIFE, options.inputs - done)
        life = Life(options.seed * 1_000_000 + done, inputs)
        life.live()
        done, answered = done + inputs, answered + life.answered
        for fault in life.faults:
            kinds[fault.kind] += 1
            kinds[fault.what] += 1
            if kinds[fault.what] == 1:
                console.print(f"{fault.kind}: {fault.what}\n  {fault.stream.hex()}", soft_wrap=True, markup=False)
        gc.collect()
        after_lives.append(resident_mb())
        if done % PROGRESS == 0:
            console.print(f"{done:,} inputs, {time.process_time() - began_s:,.0f} s, {after_lives[-1]:.0f} MB")
    took_s = time.process_time() - began_s
    table = Table(title=f"{done:,} inputs on one core")
    for name in (
        "inputs/s",
        "answered",
        "crashes",
        "hangs",
        "leaks",
        "ends",
        "MB after the first life",
        "after the last",
    ):
        table.add_column(name, justify="right")
    counts = [f"{kinds[kind]:,}" for kind in ("crash", "hang", "leak", "end")]
    table.add_row(
        f"{done / took_s:,.0f}", f"{answered / done:.0%}", *counts, f"{after_lives[0]:.0f}", f"{after_lives[-1]:.0f}"
    )
    console.print(table)
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()
