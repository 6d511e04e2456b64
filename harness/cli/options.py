"""The arguments and options that several commands share, each declared once, and the values made from them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from harness.errors import Refused, ScenarioError
from harness.store.folder import LIBRARY, RunFolder
from harness.values import MAX_SEED

if TYPE_CHECKING:
    from harness.scenario.model import Scenario

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A built-in scenario, or the path of a YAML file.")
]
ScenarioOrSuite = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A built-in scenario or suite, the path of a YAML file, or FILE:SUITE."),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]


def folder_to_make(path: Path) -> Path:
    """Return the path of a folder that exists or can be made: none of its parts is a file."""
    for part in (path, *path.parents):
        if os.access(part, os.F_OK) and not part.is_dir():
            raise typer.BadParameter(f"{part} is a file, not a folder")
    return path


Runs = Annotated[
    Path, typer.Option("--runs", callback=folder_to_make, help="Folder in which the run's folder is created.")
]
DEFAULT_RUNS = Path("runs")
_SEED = typer.Option("--seed", min=0, max=MAX_SEED, help="Seed of all random choices.")
Seed = Annotated[int | None, _SEED]
SameSeed = Annotated[int, _SEED]
"""The seed of a known schedule."""
Driver = Annotated[
    str | None,
    typer.Option("--driver", help="Where servers run, e.g. docker (chaos list drivers); default: the scenario's."),
]
System = Annotated[
    str | None,
    typer.Option(
        "--system", metavar="NAME", help="What is under test, e.g. kafka:3.9.1 (chaos list systems); default: python."
    ),
]
Systems = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="NAMES",
        help="What is under test, e.g. kafka:3.9.1 (chaos list systems); several, with commas, are compared.",
    ),
]
Times = Annotated[
    int, typer.Option("--times", min=1, max=1000, help="Runs of each system, with rising seeds; then compared.")
]
ClusterPath = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="FILE", help="A file that describes an existing cluster, instead of the scenario's."
    ),
]
PlantedBugs = Annotated[
    list[str] | None,
    typer.Option("--planted-bug", metavar="NAME", help="Switch off a guard of the built-in broker; repeatable."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value of the scenario, e.g. cluster.brokers=5; YAML; repeatable."
    ),
]
Master = Annotated[str | None, typer.Option("--master", help="Spark master URL; default: this machine.")]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Engine: spark, or sail (no JVM). Default: CHAOS_ENGINE, otherwise spark.",
    ),
]
Owned = Annotated[bool, typer.Option("--i-own-this-cluster", help="Confirm that you may disturb the existing cluster.")]


def _writable(path: Path | None) -> Path | None:
    if path is not None and (path.is_dir() or not os.access(folder_to_make(path.absolute().parent), os.W_OK)):
        raise typer.BadParameter(f"{path} cannot be written")
    return path


Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", callback=_writable, help="File for the result as JUnit XML.")
]
Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify",
        metavar="TARGET",
        help="Send the outcome to https://…, slack+https://… or mailto:…; ${env:NAME} holds a secret; repeatable.",
    ),
]
Metrics = Annotated[
    int | None,
    typer.Option("--metrics", min=1, max=65_535, metavar="PORT", help="Serve the run to Prometheus on 127.0.0.1."),
]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; see chaos status and chaos abort.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also list each promise that held.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class OneRun(TyperCommand):
    """A command that takes one run, which may be written as `runs/*` if there is only one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, without the library that all reports share.

        Raises:
            ScenarioError: several are runs.
        """
        runs = [each for each in args if os.access(RunFolder(Path(each)).plan, os.F_OK)]
        if len(runs) > 1:
            command = f"`{ctx.command_path}` takes one run"
            raise ScenarioError(f"{command}, and {len(runs)} are named; `chaos compare` shows several side by side")
        return super().parse_args(ctx, [each for each in args if not (runs and LIBRARY.fullmatch(Path(each).name))])


def scenario_of(
    name: str,
    driver: str | None,
    planted_bugs: list[str] | None,
    sets: list[str] | None,
    system: str | None = None,
    cluster: str | None = None,
) -> "Scenario":
    """Return the scenario of that name with these options.

    Raises:
        ScenarioError: there is none, or it is not valid.
    """
    from harness.scenario.file import load_scenario
    from harness.scenario.source import options

    return load_scenario(name, options(driver, planted_bugs or [], sets or [], system, cluster))


def simulated(name: str, planted_bugs: list[str] | None, sets: list[str] | None) -> "Scenario":
    """Return the same for the simulated driver.

    Raises:
        ScenarioError: there is none, it is not valid, or it cannot be simulated.
    """
    from harness.scenario.capabilities import require_capabilities
    from harness.sweep.sweep import DRIVER

    scenario = scenario_of(name, DRIVER, planted_bugs, sets)
    require_capabilities(scenario)
    return scenario


def run_folder(path: Path) -> RunFolder:
    """Return the folder of a run.

    Raises:
        ScenarioError: it is none.
    """
    folder = RunFolder(Path(os.path.realpath(path)))  # resolves circular links without an error
    if not folder.plan.is_file():
        missing = f"not the folder of a run: it has no {folder.plan.name}" if path.exists() else "no such folder"
        raise ScenarioError(f"{path}: {missing}")
    return folder


def refuse_running(folder: RunFolder) -> None:
    """Refuse a run whose evidence grows or is read by a process.

    One whose cluster is stopped may be judged, though the process that has done that is alive: a notebook, a test.

    Raises:
        Refused: a phase goes on, or more evidence is to come.
    """
    from harness.store.phase_log import BEFORE_JUDGING
    from harness.store.running import State, progressed

    how = progressed(folder)
    if how.state is State.RUNNING and how.entry and not (how.entry.over and how.entry.phase not in BEFORE_JUDGING):
        raise Refused(f"{folder.root} is not over: {how.text}; `chaos status` shows it, `chaos abort` ends it")


def run_folders(paths: Iterable[Path], *, some: bool = False) -> list[RunFolder]:
    """Return the folders of runs, each once; other paths, as behind `runs/*`, are skipped with a message.

    Args:
        paths: The named paths.
        some: Whether the command has other things to do.

    Raises:
        ScenarioError: one does not exist, or none is a run and there is nothing else to do.
    """
    folders, refused = [], []
    for path in {os.path.realpath(path): path for path in paths}.values():
        if LIBRARY.fullmatch(path.name):  # the library that all reports share is among them
            continue
        try:
            folders.append(run_folder(path))
        except ScenarioError as error:
            if not path.exists() and not path.is_symlink():
                raise
            refused.append(str(error))
    say_left_out(refused, some=bool(folders) or some)
    return folders


def say_left_out(refused: Sequence[str], *, some: bool) -> None:
    """Print what is skipped, a sentence each.

    Raises:
        ScenarioError: `some` is false, so nothing is left to do.
    """
    if not some:
        raise ScenarioError("\n".join(refused) or "no run is among the named paths")
    for sentence in refused:
        typer.echo(f"left out: {sentence}", err=True)
