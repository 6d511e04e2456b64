"""`chaos`: one command a thing a person does; heavy modules are imported by the command that needs them."""

import json
import os
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import simulate as sweep_command
from harness.cli.cluster import app as cluster_app
from harness.cli.docs import docs
from harness.cli.images import app as images_app
from harness.cli.judge import judge
from harness.cli.keep import keep
from harness.cli.reap import reap
from harness.cli.rejudge import rejudge, run_folder
from harness.cli.shrink import shrink
from harness.errors import ClusterError, HarnessError, Interrupted, NotInstalled, ScenarioError
from harness.system.extras import not_installed
from harness.verdict import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from harness.scenario.model import Scenario

app = typer.Typer(
    name="chaos",
    help="Chaos testing for Kafka-style brokers: start a cluster, load it, break it, and prove what held.",
    epilog="Exit codes: 0 held, 1 violated, 2 usage or scenario error, 3 inconclusive, 4 environment broken.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(cluster_app)
app.add_typer(images_app)
app.command(epilog="Example: chaos reap --dry-run")(reap)
app.command(epilog="Example: chaos simulate smoke --schedules 200 --seed 7")(sweep_command.simulate)
app.command(epilog="Example: chaos shrink smoke --planted-bug acks-all-on-append --seed 7 --finding I10")(shrink)
app.command(epilog="Example: chaos docs runs/* --into site")(docs)
app.command(epilog="Example: chaos rejudge runs/*")(rejudge)
app.command(epilog="Example: chaos judge --operations 'history/*.jsonl' --zookeeper znodes.parquet")(judge)
app.command(epilog="Example: chaos keep small.yaml tests/histories/lost-write --seed 7 --about 'a sweep of smoke'")(
    keep
)


class Listable(StrEnum):
    """What `chaos list` knows."""

    SCENARIOS = "scenarios"
    SUITES = "suites"
    FAULTS = "faults"
    WORKLOADS = "workloads"
    CHECKS = "checks"
    DRIVERS = "drivers"
    PLANTED_BUGS = "planted-bugs"


ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A built-in scenario, or the path of a YAML file.")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder that the run's own folder is made in.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, max=2**63 - 1, help="Decides all that is drawn.")]
Driver = Annotated[str | None, typer.Option("--driver", help="Cluster driver, instead of the scenario's.")]
PlantedBugs = Annotated[
    list[str] | None, typer.Option("--planted-bug", metavar="NAME", help="Break a protocol guard too; repeatable.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, e.g. cluster.brokers=5; YAML; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_RUNS = Path("runs")


@app.command(epilog="Example: chaos run smoke --seed 7 --set duration_s=20")
def run(
    scenario: ScenarioName,
    driver: Driver = None,
    seed: Seed = None,
    runs: Runs = DEFAULT_RUNS,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Carry out a whole experiment and say what held."""
    from harness import phases

    loaded = _load(scenario, driver, planted_bugs, sets)
    _carry_out(phases.create_from(loaded, seed, runs).root, as_json=as_json)


@app.command(epilog="Example: chaos replay runs/smoke-20260101T120000-0000002a")
def replay(run_path: RunPath, runs: Runs = DEFAULT_RUNS, as_json: Json = False) -> None:
    """Run again what a run did: the same scenario, the same plan."""
    from harness import phases
    from harness.experiment.judge import scenario_of
    from harness.scenario.plan import load_plan

    old = run_folder(run_path)
    _carry_out(phases.create(scenario_of(old), load_plan(old.plan), runs).root, as_json=as_json)


@app.command(epilog="Example: chaos plan smoke --seed 7")
def plan(
    scenario: ScenarioName,
    seed: Seed = None,
    driver: Driver = None,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Show what would happen: instants, targets, capabilities needed; nothing is started."""
    from harness.phases import new_seed
    from harness.scenario.plan import make_plan

    made = make_plan(_load(scenario, driver, planted_bugs, sets), new_seed() if seed is None else seed)
    if as_json:
        typer.echo(made.to_json(), nl=False)
        return
    from harness.cli.terminal import show_plan

    show_plan(_console(), made)


@app.command(epilog="Example: chaos validate smoke my-scenario.yaml")
def validate(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Built-in names or paths.")],
) -> None:
    """Check scenarios and show every error with its file, its line and what is allowed."""
    from harness.scenario.file import load_scenario

    problems = []
    for name in scenarios:
        try:
            load_scenario(name)
        except ScenarioError as error:
            problems.append(str(error))
        else:
            typer.echo(f"{name}: valid")
    if problems:
        raise ScenarioError("\n".join(problems))


@app.command(epilog="Example: chaos report runs/smoke-20260101T120000-0000002a")
def report(run_path: RunPath) -> None:
    """Write a run's report anew and print its path."""
    from harness import phases
    from harness.progress import Silent

    typer.echo(phases.report(run_folder(run_path), progress=Silent()))


@app.command("list", epilog="Example: chaos list scenarios")
def list_(what: Annotated[Listable, typer.Argument(help="What to list.")], as_json: Json = False) -> None:
    """List what there is to choose from."""
    from harness.scenario.catalogue import catalogue

    entries = catalogue(what.value)
    if as_json:
        typer.echo(json.dumps([{"name": name, "summary": summary} for name, summary in entries], indent=2))
        return
    width = max((len(name) for name, _ in entries), default=0)
    for name, summary in entries:
        typer.echo(f"{name:<{width}}  {summary}".rstrip())


def _load(scenario: str, driver: str | None, planted_bugs: list[str] | None, sets: list[str] | None) -> "Scenario":
    from harness.scenario.file import load_scenario
    from harness.scenario.source import options

    return load_scenario(scenario, options(driver, planted_bugs or [], sets or []))


def _carry_out(root: Path, *, as_json: bool) -> None:
    from harness import phases
    from harness.cli.terminal import TerminalProgress, next_steps, show_outcome
    from harness.store.folder import RunFolder

    folder = RunFolder(root)
    progress = TerminalProgress(_console(stderr=as_json))
    outcome = phases.run(folder, owner_pid=os.getpid(), progress=progress)
    if as_json:
        typer.echo(folder.verdict.read_text(encoding="utf-8"), nl=False)
        for error in outcome.errors:
            typer.echo(str(error), err=True)
    else:
        show_outcome(_console(), outcome, next_steps(folder, outcome.result))
    raise typer.Exit(outcome.exit_code)


def _console(*, stderr: bool = False) -> "Console":
    from harness.cli.terminal import PatientConsole

    return PatientConsole(stderr=stderr)


def exit_code_of(error: HarnessError) -> ExitCode:
    """Return the exit code of an error that ended a command."""
    if isinstance(error, ClusterError | NotInstalled):
        return ExitCode.ENVIRONMENT
    return ExitCode.INCONCLUSIVE if isinstance(error, Interrupted) else ExitCode.USAGE


def main() -> None:
    """Run the command line; an error of the harness is its message on stderr and its exit code, a bug is 4.

    So is a file that cannot be read or written, and a package that only an extra brings and that is not installed.
    """
    try:
        app()
    except HarnessError as error:
        typer.echo(str(error), err=True)
        sys.exit(exit_code_of(error))
    except OSError as error:
        typer.echo(str(error), err=True)
        sys.exit(ExitCode.ENVIRONMENT)
    except Exception as error:  # noqa: BLE001  Python's own exit status for it is 1, which would claim a violation
        typer.echo(not_installed(error) or traceback.format_exc(), err=True)
        sys.exit(ExitCode.ENVIRONMENT)
