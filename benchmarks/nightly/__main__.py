"""Everything that is too long for every change, one step after the other, and a page with what came of each.

    python -m benchmarks.nightly [--scale 1] [--seed N] [--step NAME] [--out artifacts/nightly]

A step that fails ends none of the others. Ends 0 where every step passed or left doubts only, and 1 otherwise. The
page, `index.html`, is written anew after each step, so that a night that is cut off shows how far it came.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.console import Console

from benchmarks.nightly.steps import Step, steps

ROOT = Path(__file__).parents[2]
LONGEST_S = 6 * 3600
"""Of a step."""
LAST_LINES = 30


class Outcome(StrEnum):
    """What came of a step."""

    PASSED = "passed"
    DOUBTS = "doubts"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A step, and what came of it."""

    step: Step
    outcome: Outcome = Outcome.NOT_RUN
    why: str = ""
    seconds: float = 0
    last_lines: str = ""

    @property
    def duration(self) -> str:
        """How long it took, for people."""
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes} min {seconds:02} s" if minutes else f"{self.seconds:.1f} s"


def carried_out(step: Step, log: Path) -> Result:
    """Run a step and return what came of it; all that it says goes to its log."""
    began_s = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        command = subprocess.Popen(
            step.command, cwd=ROOT, env={**os.environ, **step.environment}, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            code = command.wait(LONGEST_S)
            why = f"exit code {code}"
        except subprocess.TimeoutExpired:
            command.terminate()
            code, why = command.wait(), f"ended after {LONGEST_S} s"
    passed = Outcome.PASSED if code == 0 else Outcome.DOUBTS if code in step.doubtful else Outcome.FAILED
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    seconds = time.monotonic() - began_s
    return Result(step=step, outcome=passed, why=why, seconds=seconds, last_lines="\n".join(lines))


def write_page(folder: Path, results: Sequence[Result], **about: str) -> Path:
    """Write what came of the steps so far, and return the page's path."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    page = folder / "index.html"
    rendered = environment.get_template("page.html.j2").render(results=results, about=about, outcome=worst(results))
    page.write_text(rendered, encoding="utf-8")
    return page


def worst(results: Sequence[Result]) -> Outcome:
    """Return what came of the night."""
    order = (Outcome.FAILED, Outcome.NOT_RUN, Outcome.DOUBTS, Outcome.PASSED)
    return next(outcome for outcome in order if outcome in {result.outcome for result in results})


def main() -> None:
    """Carry out the steps, write the page after each, and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = datetime.now(UTC).date()
    parser.add_argument("--scale", type=float, default=1.0, help="1 is a whole night")
    parser.add_argument("--seed", type=int, default=int(f"{today:%Y%m%d}"), help="by default the day")
    parser.add_argument("--step", action="append", help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "nightly")
    options = parser.parse_args()
    if not 0 < options.scale <= 1:
        parser.error("--scale is above 0 and at most 1")
    folder: Path = options.out.resolve()
    asked = steps(options.scale, options.seed, folder)
    unknown = set(options.step or ()) - {step.name for step in asked}
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in asked)}")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CHAOS_DAY", today.isoformat())
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    about = {"commit": commit, "seed": str(options.seed), "scale": f"{options.scale:g}", "day": today.isoformat()}
    results = [Result(step=step) for step in asked if not options.step or step.name in options.step]
    console = Console()
    for place, result in enumerate(results):
        results[place] = done = carried_out(result.step, folder / f"{result.step.name}.log")
        page = write_page(folder, results, **about)
        console.print(f"{done.outcome:>7}  {done.duration:>12}  {done.step.name}", highlight=False)
    console.print(f"page  {page}", highlight=False, soft_wrap=True)
    sys.exit(worst(results) is Outcome.FAILED)


if __name__ == "__main__":
    main()
