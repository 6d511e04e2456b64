"""Everything that is too long for every change, one step after the other, and a page with what came of each.

    python -m tools.nightly [--scale 1] [--seed N] [--step NAME | --page | --list] [--out artifacts/nightly]

A step that fails ends none of the others. One whose release of Kafka is missing is not run, and says so. Ends 0 where
every other step passed or left doubts only, and 1 otherwise. Each step leaves its log and its result, and the page
`index.html` is written anew, from all results of this night in the folder: a night that is cut off shows how far it
came, and steps may be run by as many calls. CHAOS_DAY names another day than today.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tools.nightly.results import Outcome, Result, path_of, result_of, worst, write_page
from tools.nightly.steps import LONGEST_S, Step, limit_s, steps

ROOT = Path(__file__).parents[2]
LAST_LINES = 30
LAST_BYTES = 64_000
LOOK_EVERY_S = 1.0
SAY_EVERY_S = 60.0
"""Where there is no terminal, whose line is written anew with each look."""
GRACE_S = 30.0
"""For a step to clean up, when it is asked to end; it is asked twice."""


def carried_out(
    step: Step,
    log: Path,
    most_s: float = LONGEST_S,
    meanwhile: Callable[[float, str], None] = lambda seconds, line: None,
    now_s: Callable[[], float] = time.monotonic,
) -> Result:
    """Run a step and return what came of it; all that it says goes to its log.

    Args:
        step: Which.
        log: File for what it says.
        most_s: When it is ended, and has failed.
        meanwhile: Is told, again and again, for how many seconds it runs, and what it said last.
        now_s: The clock.
    """
    began_s = now_s()
    with log.open("w", encoding="utf-8") as file:
        environment = {**os.environ, **step.environment}
        command = subprocess.Popen(
            step.command,
            cwd=ROOT,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a terminal's Ctrl-C comes once, from here: the second one forbids to clean up
        )
        try:
            while command.poll() is None and (seconds := now_s() - began_s) < most_s:
                meanwhile(seconds, last_lines(log, 1))
                _wait(command, min(LOOK_EVERY_S, most_s - seconds))
        finally:
            in_time = _ended(command)
    code = command.returncode
    outcome = Outcome.PASSED if code == step.passing else Outcome.DOUBTS if code in step.doubtful else Outcome.FAILED
    return Result(
        step=step,
        outcome=outcome if in_time else Outcome.FAILED,
        why=f"exit code {code}" if in_time else f"ended after {most_s:.0f} s",
        seconds=now_s() - began_s,
        last_lines=last_lines(log, LAST_LINES),
    )


def _ended(command: "subprocess.Popen[bytes]") -> bool:
    """End a command where it still runs, first as Ctrl-C does, twice; return whether it had ended by itself."""
    if command.poll() is not None:
        return True
    for _ in range(2):
        command.send_signal(signal.SIGINT)
        _wait(command, GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)  # whatever it left
    command.wait()
    return False


def _wait(command: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def last_lines(log: Path, number: int) -> str:
    """Return the end of a log."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        return "\n".join(file.read().decode(errors="replace").rstrip().splitlines()[-number:])


def shown(console: Console, step: Step, log: Path, most_s: float) -> Result:
    """Run a step, if it can be, and say that it runs, since when, what it says meanwhile, and what came of it."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    said_s = 0.0

    def meanwhile(seconds: float, line: str) -> None:
        nonlocal said_s
        text = f"{step.name}, {int(seconds) // 60} min {int(seconds) % 60:02} s so far: {line}"
        if console.is_terminal:
            status.update(Text(text[: console.width - len("⠋  ")]))
        elif seconds - said_s >= SAY_EVERY_S:
            said_s = seconds
            say(text)

    if step.lacking:
        say(f"{step.name} {Outcome.NOT_HERE}: {step.lacking}")
        return Result(step=step, outcome=Outcome.NOT_HERE, why=step.lacking)
    say(f"{step.name} runs since {datetime.now().astimezone():%H:%M:%S %Z}: {step.about} {log}")
    with console.status(step.name) as status:
        result = carried_out(step, log, most_s, meanwhile)
    if result.outcome is Outcome.FAILED or not console.is_terminal:
        say(result.last_lines)
    say(f"{step.name} {result.outcome}, {result.why}, {result.duration}")
    return result


def options_of(day: date) -> argparse.Namespace:
    """Return what the command line asks for; `chosen` are the steps to carry out, of `steps`, by name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is a whole night")
    parser.add_argument("--seed", type=int, default=int(f"{day:%Y%m%d}"), help="by default the day")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "nightly")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--step", action="append", help="only this one; repeatable")
    what.add_argument("--page", action="store_true", help="no step: write the page from what others left")
    what.add_argument("--list", action="store_true", help="no step: print their names")
    options = parser.parse_args()
    if not 0 < options.scale <= 1:
        parser.error("--scale is above 0 and at most 1")
    options.out = options.out.resolve()
    options.steps = {step.name: step for step in steps(options.scale, options.seed, options.out)}
    options.chosen = [] if options.page else options.step or list(options.steps)
    unknown = set(options.chosen) - set(options.steps)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(options.steps)}")
    return options


def main() -> None:
    """Carry out the steps, write the page after each, and say what came of them."""
    day = date.fromisoformat(os.environ.setdefault("CHAOS_DAY", datetime.now(UTC).date().isoformat()))
    options = options_of(day)
    if options.list:
        print(*options.steps, sep="\n")
        return
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: in the background a shell lets it be ignored
        signal.signal(number, signal.default_int_handler)
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    night = {"commit": commit, "seed": str(options.seed), "scale": f"{options.scale:g}", "day": day.isoformat()}
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    for name in options.chosen:
        path_of(options.steps[name], folder).unlink(missing_ok=True)
    for name in options.chosen:
        shown(console, options.steps[name], folder / f"{name}.log", limit_s(options.scale)).save(folder, night)
        write_page(folder, [result_of(step, folder, night) for step in options.steps.values()], night)
    results = [result_of(step, folder, night) for step in options.steps.values()]
    for result in results if options.page else ():
        console.print(f"{result.outcome:>7}  {result.duration:>12}  {result.step.name}", highlight=False)
    console.print(f"page  {write_page(folder, results, night)}", highlight=False, soft_wrap=True)
    outcome = worst(result for result in results if not options.chosen or result.step.name in options.chosen)
    sys.exit(outcome in (Outcome.FAILED, Outcome.NOT_RUN))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; `--page` shows how far it came")
