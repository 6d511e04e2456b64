"""`chaos run --times N`, and of several systems: the same seeds one after the other, and then side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness import phases
from harness.cli.compare import show
from harness.cli.options import scenario_of
from harness.cli.run_suite import GRAVEST, carry_out
from harness.report.compare.comparison import compared
from harness.report.compare.figures import figures_of
from harness.report.conclusion import SuiteEntry
from harness.report.junit import write_suite
from harness.store.folder import RunFolder
from harness.verdict import EXIT_CODES, HELD, ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A scenario with the options of the command line."""

    name: str
    driver: str | None
    cluster: str | None
    planted_bugs: list[str] | None
    sets: list[str] | None


def run_several(
    wanted: Wanted,
    systems: Sequence[str | None],
    times: int,
    runs: Path,
    *,
    seed: int | None,
    junit: Path | None,
    owned: bool,
    as_json: bool,
    verbose: bool,
) -> ExitCode:
    """Carry out a scenario several times on each system, print the comparison, and return the gravest exit code.

    The runs of each system have the same seeds: the given one, or a new one, and those that follow. The systems take
    turns, so that a machine that becomes slower does so for each of them.

    Raises:
        ScenarioError: the scenario is not valid for one of the systems; nothing was started.
        Interrupted: a signal ended one run, and the sequence with it.
    """
    scenarios = [
        scenario_of(wanted.name, wanted.driver, wanted.planted_bugs, wanted.sets, system, wanted.cluster)
        for system in systems
    ]
    first = phases.new_seed() if seed is None else seed
    console, entries = Console(stderr=as_json), list[SuiteEntry]()
    try:
        for number in range(times):
            for scenario in scenarios:
                title = f"\n{scenario.name} on {scenario.system}, {number + 1}/{times}, seed {first + number}"
                console.print(title, style="bold", highlight=False, markup=False)
                folder = phases.create_from(scenario, first + number, runs, owned=owned)
                entries.append(SuiteEntry(**carry_out(folder, console, verbose=verbose), expect=HELD, tries=1))
    finally:  # also when one was interrupted
        if junit is not None:
            write_suite(junit, wanted.name, entries)
        figures = [figures_of(RunFolder(Path(entry["run"]))) for entry in entries]
        show(compared({"": figures}), out=None, as_json=as_json)
    codes = {EXIT_CODES[entry["outcome"]] for entry in entries}
    return next((code for code in GRAVEST if code in codes), ExitCode.HELD)
