"""`chaos`: one command for each task; heavy modules are imported by the command that needs them."""

import gc
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from harness.cli.cluster import app as cluster_app
from harness.cli.compare import compare
from harness.cli.docs import docs
from harness.cli.exit_codes import with_exit_codes
from harness.cli.explain import explain
from harness.cli.images import app as images_app
from harness.cli.judge import judge
from harness.cli.kafka import app as kafka_app
from harness.cli.keep import keep
from harness.cli.list import list_
from harness.cli.new import new
from harness.cli.options import OneRun
from harness.cli.plan import plan
from harness.cli.reap import reap
from harness.cli.rejudge import rejudge
from harness.cli.report import report
from harness.cli.run import replay, run
from harness.cli.shrink import shrink
from harness.cli.simulate import simulate
from harness.cli.sql import sql
from harness.cli.status import abort, status
from harness.cli.trend import trend
from harness.cli.validate import validate
from harness.cli.why import why

OBJECTS_PER_COLLECTION = 50_000
"""With Python's default, 7 % of judging by Sail is garbage collection, which imports and plans hardly need."""

RUNNING, LOOKING, JUDGING, SWEEPING, CLUSTERS = "Run", "Understand runs", "Judge", "Virtual time", "Clusters"
"""Headings of the commands in `chaos --help`."""
COMMANDS: dict[str, tuple[str, Callable[..., None], str]] = {
    "run": (RUNNING, run, "smoke --seed 7 --set duration_s=20"),
    "list": (RUNNING, list_, "scenarios"),
    "validate": (RUNNING, validate, "smoke my-scenario.yaml"),
    "plan": (RUNNING, plan, "smoke --seed 7"),
    "replay": (RUNNING, replay, "runs/smoke-20260101T120000-0000002a"),
    "status": (RUNNING, status, "runs/smoke-20260101T120000-0000002a"),
    "abort": (RUNNING, abort, "runs/smoke-20260101T120000-0000002a"),
    "new": (RUNNING, new, "fault nap"),
    "why": (LOOKING, why, "runs/smoke-20260101T120000-0000002a"),
    "explain": (LOOKING, explain, "runs/smoke-20260101T120000-0000002a I10"),
    "report": (LOOKING, report, "runs/smoke-20260101T120000-0000002a"),
    "sql": (LOOKING, sql, "runs/* 'select run_id, check, message from findings'"),
    "trend": (LOOKING, trend, "runs --out trend.html"),
    "compare": (LOOKING, compare, "runs-of-3.9.1 runs-of-4.4.0 --out compare.html"),
    "docs": (LOOKING, docs, "runs/* --into site"),
    "judge": (JUDGING, judge, "--operations 'history/*.jsonl' --zookeeper znodes.parquet"),
    "rejudge": (JUDGING, rejudge, "runs/*"),
    "simulate": (SWEEPING, simulate, "smoke --schedules 200 --seed 7"),
    "shrink": (SWEEPING, shrink, "smoke --planted-bug acks-all-on-append --seed 7 --finding I10"),
    "keep": (SWEEPING, keep, "small.yaml tests/histories/lost-write --seed 7 --about 'a sweep of smoke'"),
    "reap": (CLUSTERS, reap, "--dry-run"),
}
"""By name, each with its heading and the arguments of its example."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chaos {version('kafka-chaos-harness')}")
        raise typer.Exit


def _options(
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options before the command."""


EXIT_CODES = (
    "Exit codes: 0 all held, 1 a promise is broken or an objective missed, 2 usage or scenario error, 3 inconclusive, "
    "4 environment broken."
)

app = typer.Typer(
    name="chaos",
    help="Inject faults into a Kafka cluster under load, and judge from evidence whether it kept Kafka's promises.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    callback=_options,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_heading, _command, _example) in COMMANDS.items():
    _class = OneRun if "run_path" in _command.__annotations__ else None
    _epilog = f"Example: chaos {_name} {_example}"
    app.command(_name, cls=_class, epilog=_epilog, rich_help_panel=_heading)(_command)
for _commands in (cluster_app, images_app, kafka_app):
    app.add_typer(_commands, rich_help_panel=CLUSTERS)


def main() -> None:
    """Run the command line."""
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    with_exit_codes(app)
