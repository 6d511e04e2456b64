"""Do this project's broker and real Kafka 3.9.1 answer random scripts of client calls alike?

    python -m tools.differential [--scripts 20000] [--slow 500] [--restarts 180] [--seed 1] [--record | --keep]

Each script is played to both over sockets, and the answers are compared (`answers` says what is left out). A script
whose answers differ is played again, shrunk unless the broker is restarted in it, and printed once for each kind of
difference. The exit status is 1 when there is a difference that docs/explanation/differences-from-kafka.md does not
list, else 0. Kafka's jars are needed (`make kafka-libs`).
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from harness.client_rules.scripts.comparing import Difference, difference
from harness.client_rules.scripts.player import CLOSED, NO_ANSWER, Answers
from harness.client_rules.scripts.recorded import Kind as RecordedKind
from harness.client_rules.scripts.recorded import Recorded
from harness.client_rules.scripts.script import AWAIT, BEGIN, RESTART, Script, Step
from harness.client_rules.scripts.target import Target
from tools.differential.draws import Versions
from tools.differential.generator import FEWEST, restarting_script_of_seed, script_of_seed, slow_script_of_seed
from tools.differential.intended import reason
from tools.differential.kept import asked_again, kept, properties_of, write, write_for_load
from tools.differential.shrinking import shrunk
from tools.differential.targets import OFTEN, SELDOM, Rounds, both, common_versions

WORKERS, SLOW_WORKERS, RESTART_WORKERS = 12, 48, 100
REPEATS = 2
"""A difference counts if it is there again so many times."""
PROGRESS = 500


@dataclass(slots=True)
class Session:
    """All plays to two brokers, and what came of them."""

    console: Console
    ours: Target = field(init=False)
    theirs: Target = field(init=False)
    rounds: Rounds = field(default_factory=Rounds)
    took_s: float = 0.0
    plays: int = 0
    scripts: int = 0
    calls: int = 0
    unsteady: list[str] = field(default_factory=list)
    """Signatures of differences that were not there again."""
    kinds: Counter[str] = field(default_factory=Counter)
    documented: Counter[str] = field(default_factory=Counter)
    found: dict[str, Script] = field(default_factory=dict)
    """The smallest script by signature."""

    async def difference_in(self, script: Script) -> Difference | None:
        """Play a script to both brokers, and return the first difference."""
        ours, theirs = await self._both(script)
        return difference(script, ours, theirs, self._intended)

    async def _both(self, script: Script) -> tuple[Answers, Answers]:
        self.plays += 1
        prefix = f"d{self.plays}-"
        async with self.rounds if _restarts(script) else nullcontext():
            return await asyncio.gather(self.ours.play(script, prefix), self.theirs.play(script, prefix))

    def _intended(self, step: Step, places: Sequence[str]) -> str:
        why = reason(step, places)
        if why:
            self.documented[why] += 1
        return why

    async def compare(self, script: Script) -> None:
        """Play a script, and look into a difference."""
        self.scripts += 1
        self.calls += len(script)
        first = await self.difference_in(script)
        if first is None:
            return
        signature = first.signature
        if signature in self.kinds:
            self.kinds[signature] += 1
            return

        async def shows(candidate: Script) -> bool:
            seen = await self.difference_in(candidate)
            return seen is not None and seen.signature == signature

        for _ in range(REPEATS):
            if not await shows(script):
                self.unsteady.append(signature)
                return
        self.kinds[signature] += 1
        if self.kinds[signature] == 1:
            cut = script[: first.at + 1]
            self.found[signature] = cut if _restarts(script) else await shrunk(cut, shows)
            self.console.print(
                f"{signature}\n  {lines(self.found[signature])}", markup=False, highlight=False, soft_wrap=True
            )


@dataclass(slots=True)
class Keeping(Session):
    """Plays whose answers are kept, as far as both brokers answer alike."""

    kind: RecordedKind = RecordedKind.QUICK
    seed: int = 0
    kept: list[Recorded] = field(default_factory=list)

    async def compare(self, script: Script) -> None:
        """Play a script, and keep it up to the first difference; one that is answered late is kept whole or not."""
        self.scripts += 1
        if _misleads(script):
            return
        about = f"{self.kind} script {self.scripts} of seed {self.seed}"
        ours, theirs = await self._both(script)
        end = _alike(script, ours, theirs)
        if self.kind is RecordedKind.RESTARTS:
            again, expected = await self._both(script)
            answered = (at for at, answer in enumerate(theirs) if answer in (CLOSED, NO_ANSWER))
            end = min(end, _alike(script, again, expected), _alike(script, expected, theirs), *answered)
            if RESTART in theirs[:end]:
                self.kept.append(Recorded(about=about, script=script[:end], answers=theirs[:end]))
        elif end == len(theirs):
            self.kept.append(Recorded(about=about, script=script, answers=theirs))
        elif end >= FEWEST and all(step.how not in (BEGIN, AWAIT) for step in script[:end]):
            self.kept.append(Recorded(about=about, script=script[:end], answers=theirs[:end]))


def _restarts(script: Script) -> bool:
    return any(step.how == RESTART for step in script)


def _misleads(script: Script) -> bool:
    """Whether a run with the script would be judged by what no coordinator and no consumer does."""
    markers = _restarts(script) and any(step.api == "WriteTxnMarkers" for step in script)
    return markers or any('"committed_offset": -2' in json.dumps(step.fields) for step in script)


def _alike(script: Script, ours: Answers, theirs: Answers) -> int:
    """Return how many answers are alike before the first that differs."""
    first = difference(script, ours, theirs)
    return len(theirs) if first is None else first.at


def lines(script: Script) -> str:
    """Return a script as lines of JSON."""
    return "\n  ".join(json.dumps(step.as_json(), ensure_ascii=False) for step in script)


async def play_all(session: Session, scripts: Iterator[Script], workers: int) -> None:
    """Play scripts, some at a time."""

    async def work() -> None:
        for script in scripts:
            await session.compare(script)
            if session.scripts % PROGRESS == 0:
                session.console.print(f"{session.scripts:,} scripts, {len(session.kinds)} kinds of differences")

    await asyncio.gather(*(work() for _ in range(workers)))


@dataclass(frozen=True, slots=True)
class Kind:
    """Scripts of one kind, and the brokers that they are played to."""

    make: Callable[[int, int, Versions], Script]
    properties: Mapping[str, str]
    workers: int


QUICK = Kind(script_of_seed, SELDOM, WORKERS)
SLOW = Kind(slow_script_of_seed, OFTEN, SLOW_WORKERS)
RESTARTED = Kind(restarting_script_of_seed, SELDOM, RESTART_WORKERS)


def played(session: Session, kind: Kind, seed: int, numbers: range) -> None:
    """Play scripts of one kind to two new brokers."""
    if not numbers:
        return

    async def play(ours: Target, theirs: Target) -> None:
        session.ours, session.theirs = ours, theirs
        versions: Versions = common_versions(await ours.versions(), await theirs.versions())
        await asyncio.gather(ours.warm_up(), theirs.warm_up())
        began_s = time.monotonic()
        await play_all(session, (kind.make(seed, each, versions) for each in numbers), kind.workers)
        session.took_s += time.monotonic() - began_s

    with (
        tempfile.TemporaryDirectory(prefix="chaos-differential-") as folder,
        both(Path(folder), kind.properties) as (ours, theirs),
    ):
        asyncio.run(play(ours, theirs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=int, default=20_000)
    parser.add_argument("--slow", type=int, default=500, help="scripts that wait for retention, cleaner or expiry")
    parser.add_argument("--restarts", type=int, default=180, help="scripts in which the broker is restarted")
    parser.add_argument("--first", type=int, default=0, help="the number of the first script of the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="ask Kafka the scripts of kept-3.9.json again, and end")
    parser.add_argument("--keep", action="store_true", help="record the scripts for the workload play-scripts, and end")
    options = parser.parse_args()
    console = Console()
    if options.record:
        with tempfile.TemporaryDirectory() as folder, both(Path(folder), SELDOM) as (_, kafka):
            write(asyncio.run(asked_again(kept(), kafka)))
        return
    if options.keep:
        for kind, of_kind, count in (
            (RecordedKind.QUICK, QUICK, options.scripts),
            (RecordedKind.SLOW, SLOW, options.slow),
            (RecordedKind.RESTARTS, RESTARTED, options.restarts),
        ):
            keeping = Keeping(console, kind=kind, seed=options.seed)
            played(
                keeping,
                replace(of_kind, properties=properties_of(kind)),
                options.seed,
                range(options.first, options.first + count),
            )
            if count:
                write_for_load(sorted(keeping.kept, key=lambda each: each.about), kind)
            console.print(f"{len(keeping.kept):,} of {count:,} {kind} scripts are kept")
        return
    session = Session(console)
    played(session, QUICK, options.seed, range(options.first, options.first + options.scripts))
    played(session, SLOW, options.seed, range(options.first, options.first + options.slow))
    played(session, RESTARTED, options.seed, range(options.first, options.first + options.restarts))
    for why, count in session.documented.most_common():
        console.print(f"{count:,} answers: {why}", highlight=False, soft_wrap=True)
    for signature, count in session.kinds.most_common():
        console.print(f"{count:,} scripts: {signature}", markup=False, highlight=False, soft_wrap=True)
    for signature in session.unsteady:
        console.print(f"not there again: {signature}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{session.scripts:,} scripts of {session.calls:,} calls in {session.took_s:,.0f} s; "
        f"{len(session.kinds)} kinds of differences that are not documented, {len(session.unsteady)} not there again",
        highlight=False,
    )
    raise SystemExit(bool(session.kinds))


if __name__ == "__main__":
    main()
