"""What is left when a whole experiment is killed at any instant? `chaos reap` must leave nothing, and no run passes.

    python -m tools.kills [--kills 100] [--drivers process docker] [--scenario FILE] [--seed 1] [--folder FOLDER]

Of the small scenario `brief` the phases take turns. Within its phase the instant is drawn over the time that the phase
took in a whole run before, and so is whether the command alone dies or all of its processes at once. Of another
scenario, for one driver, faults take turns: the instant is drawn over the time that the fault was in force in a whole
run before, and the victim is the command, all, the supervisor, the guard or the relay; unless it was the command, that
goes on until it has stopped its cluster, and is killed then. `tools/kills/process.yaml` and `docker.yaml` have the
faults that could leave most.

With `--one-by-one` a scheduler calls the phases, each in a process of its own, as Airflow does, and goes on after the
kill. The victims are the phase's worker, the supervisor, the guard and a client, each in each phase in which it lives.

Exit code 1: something was left, or a run has FAIL, or was cut off and has PASS. Each is said with the number of its
kill, and the seed draws the same kills again. Where a driver does not work it is left out, and that is said.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.scenario.capabilities import missing
from harness.store.phase_log import Phase
from tools.kills.kill import (
    Kill,
    Outcome,
    carried_out,
    drawn,
    drawn_under_faults,
    durations_of,
    whole_run,
    windows_of,
)
from tools.kills.one_by_one import carried_out_one_by_one, drawn_one_by_one, whole_run_one_by_one
from tools.kills.place import BRIEF, Place


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """Return how many kills hit each phase or victim, and how many of them left something."""
    table = Table(title=f"{len(outcomes)} kills")
    for name in ("driver", "phase", "victim", "killed", "had ended before", "left something"):
        table.add_column(name, justify="left" if name in ("driver", "phase", "victim") else "right")
    rows: dict[tuple[str, ...], list[Outcome]] = {}
    for each in sorted(outcomes, key=lambda each: (each.kill.driver, list(Phase).index(each.kill.phase))):
        rows.setdefault((each.kill.driver, each.kill.phase, each.kill.victim), []).append(each)
    for names, those in rows.items():
        ended, wrong = sum(each.ended_before for each in those), sum(bool(each.wrong) for each in those)
        table.add_row(*names, str(len(those) - ended), str(ended), str(wrong))
    return table


def kills_of(options: argparse.Namespace, folder: Path, drivers: Sequence[str]) -> Iterator[Kill]:
    """Yield the kills that are asked for, after a whole run for each driver."""
    if options.one_by_one:
        runs = {driver: whole_run_one_by_one(options.scenario, driver, Place(folder / driver)) for driver in drivers}
        lasted = {driver: durations_of(run) for driver, run in runs.items()}
        yield from drawn_one_by_one(options.kills, drivers, options.seed, options.scenario, lasted)
        return
    whole = {driver: whole_run(options.scenario, driver, Place(folder / driver)) for driver in drivers}
    if options.scenario == BRIEF:
        durations = {driver: durations_of(run) for driver, run in whole.items()}
        yield from drawn(options.kills, drivers, options.seed, options.scenario, durations)
        return
    for driver, run in whole.items():
        yield from drawn_under_faults(options.kills, driver, options.seed, options.scenario, windows_of(run))


def _can_run(driver: str, console: Console) -> bool:
    """Whether this machine can run clusters so; where it cannot, say why."""
    lacking = missing(driver, ())
    for reason in lacking.values():
        console.print(f"{driver}: left out: {reason}", markup=False)
    return not lacking


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--drivers", nargs="+", default=["process", "docker"])
    parser.add_argument("--scenario", type=Path, default=BRIEF, help="whose faults are in force at a kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-by-one", action="store_true", help="a scheduler calls the phases")
    parser.add_argument("--folder", type=Path, help="where runs are made; default: a new temporary one")
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="kills-"))).absolute()
    console = Console()
    drivers = [driver for driver in options.drivers if _can_run(driver, console)]
    outcomes = []
    for kill in kills_of(options, folder, drivers):
        place = Place(folder / f"kill-{kill.driver}-{kill.number}")
        outcome = (carried_out_one_by_one if options.one_by_one else carried_out)(kill, place)
        outcomes.append(outcome)
        seen = "; ".join(outcome.wrong) or ("it had ended before" if outcome.ended_before else "nothing is left")
        console.print(f"{kill}: {seen}", markup=False)
    console.print(table_of(outcomes))
    wrong = {str(outcome.kill): outcome.wrong for outcome in outcomes if outcome.wrong}
    if wrong:
        console.print(json.dumps(wrong, indent=2), markup=False)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
