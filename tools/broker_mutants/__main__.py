"""How much of the broker do sweeps reach, and which mistakes in it do they find? Mutants of it are put to the battery.

    python -m tools.broker_mutants --sample 300 --seed N [--first 0] [--schedules 20] [--enough N] [--out FILE]
    python -m tools.broker_mutants --mistakes tools/broker_mutants/mistakes.jsonl

Each mutant is one mistake in a protocol room of `harness/broker`. The standing battery (`battery`) is simulated with
it; histories that differ from those of the intact broker are judged by all checks. A mutant is *unreached* where no
history differs, *unseen* where all that differ held, *in doubt* where checks cannot tell or there is no history, and
*found* where a check fails.

Mutants that no history can distinguish from the broker are in `equivalent.yaml`, with the reason, and are set apart.
The mistakes in `mistakes.jsonl` and `mistakes-second.jsonl` were made by readers of the broker who knew neither the
checks nor the load.
The file has a line a mutant, written as soon as the mutant is through. Ends 0; 2 where nothing can be measured.
"""

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.errors import HarnessError
from harness.system.scratch import scratch_folder
from tools.broker_mutants.baseline import ROOT, IntactAccused, intact_schedules
from tools.broker_mutants.battery import Intact, battery, import_all
from tools.broker_mutants.in_force import Unfit, changed_functions, live_functions
from tools.broker_mutants.judging import Judge
from tools.broker_mutants.mutants import Mutant, every_mutant, mistakes_of, sample
from tools.broker_mutants.reasons import equivalent
from tools.broker_mutants.results import HEADINGS, About, Row, cells, counts, executed_of, line_of, row_of
from tools.broker_mutants.sweep import MutantSweep
from tools.broker_mutants.trial import Trial

CACHE = ROOT / "artifacts" / "broker-mutants"


def main() -> int:
    options = _options()
    console = Console(soft_wrap=True, highlight=False)
    mutants = list(every_mutant())
    reasons = equivalent()
    apart = [mutant for mutant in mutants if mutant.key in reasons]
    if options.mistakes:
        chosen = [mistake for mistake in mistakes_of(options.mistakes) if options.only in mistake.key]
    else:
        chosen = sample(
            (mutant for mutant in mutants if mutant.key not in reasons and options.only in mutant.key),
            options.first + options.sample,
            options.seed,
        )[options.first :]
    about = About(
        commit=_commit(),
        day=datetime.now(UTC).date().isoformat(),
        sample=len(chosen),
        seed=options.seed,
        schedules=options.schedules,
        battery_seed=options.battery_seed,
        mutants=len(mutants),
        equivalent=len(apart),
        about=options.about,
        enough=options.enough,
    )
    try:
        rows = measured(mutants, chosen, about, options.out, options.processes, console)
    except (HarnessError, IntactAccused) as error:
        console.print(f"nothing can be measured: {error}", markup=False)
        return 2
    for title, table in (
        ("room", counts(rows, lambda row: row.room)),
        ("operator", counts(rows, lambda row: row.operator)),
    ):
        shown = Table(title, *HEADINGS)
        for name, counter in table.items():
            shown.add_row(name, *cells(counter))
        console.print(shown)
    total = counts(rows, lambda _: "all")
    console.print(*(f"{name}: {' '.join(cells(counter))}" for name, counter in total.items()), sep="\n")
    return 0


def measured(
    mutants: list[Mutant], chosen: list[Mutant], about: About, out: Path, processes: int, console: Console
) -> list[Row]:
    """Return what became of each mutant, and write it to the file as soon as it is known.

    Raises:
        IntactAccused: the battery accuses the broker that is not changed.
    """
    import_all()
    candidates = battery(about.schedules, about.battery_seed)
    rows: list[Row] = []
    with Judge() as judge, scratch_folder(small=True) as scratch, out.open("w", encoding="utf-8") as file:
        intact = intact_schedules(candidates, judge, CACHE, scratch, processes)
        trials = _trials(chosen, intact, console)
        rooms, never = executed_of(mutants, intact)
        file.write(line_of(replace(about, executed=rooms, never=never)))

        def through(trial: Trial) -> None:
            row = row_of(trial)
            rows.append(row)
            file.write(line_of(row))
            file.flush()
            console.print(f"{len(rows)} of {len(trials)}  {row.outcome:9}  {row.key}", markup=False)

        gc.freeze()  # a fork that collects would copy what it looks at
        sweep = MutantSweep(
            candidates=candidates,
            intact=intact,
            scratch=scratch,
            at_once=processes,
            progress=through,
            enough=about.enough,
        )
        sweep.run(trials, judge)
    return rows


def _trials(chosen: Sequence[Mutant], intact: Sequence[Intact], console: Console) -> list[Trial]:
    """Return the mutants with their new code, and which schedules execute them; those that are no program are named."""
    functions = live_functions()
    trials: list[Trial] = []
    for mutant in chosen:
        executed = [place for place, each in enumerate(intact) if each.holds and each.runs(mutant)]
        try:
            trials.append(Trial(mutant=mutant, changed=changed_functions(mutant, functions), executed=executed))
        except Unfit:
            console.print(f"no program: {mutant.key}", markup=False)
    return trials


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.broker_mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=300, help="so many mutants")
    parser.add_argument("--first", type=int, default=0, help="so many of the sample are left out before these")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--mistakes", type=Path, metavar="FILE", help="mistakes made by hand, instead of a sample")
    parser.add_argument("--schedules", type=int, default=20, help="of the battery, at most")
    parser.add_argument("--battery-seed", type=int, default=1, help="of the schedules")
    parser.add_argument("--enough", type=int, metavar="N", help="schedules of a mutant that differ; then no more of it")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose key contains this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="simulating at once")
    parser.add_argument("--about", default="", help="what distinguishes this measurement, in a sentence")
    parser.add_argument("--out", type=Path, default=CACHE / "last.jsonl", help="file of results")
    options = parser.parse_args()
    for name in ("sample", "schedules", "processes", "enough"):
        number = getattr(options, name)
        if number is not None and number < 1:
            parser.error(f"--{name} is at least 1")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    sys.exit(main())
