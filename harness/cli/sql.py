"""`chaos sql`: SQL queries about judged runs."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from harness.cli.options import EngineName, Json, Master, run_folders, say_left_out
from harness.errors import ScenarioError
from harness.system.engine import choose_engine

if TYPE_CHECKING:
    from rich.console import Console


def sql(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of judged runs.")],
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="Spark SQL; the tables `tables` and `columns` list what there is, e.g. `select * from tables`.",
        ),
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, help="Limit of rows.")] = 100,
    master: Master = None,
    engine: EngineName = None,
    as_json: Json = False,
) -> None:
    """Query the facts and findings of judged runs by SQL; each row names its run."""
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.analysis.sql import answer, make_views
    from harness.cli.terminal import TerminalProgress

    choose_engine(engine, master)
    folders = run_folders(runs)
    judged = [folder for folder in folders if folder.facts.is_dir()]
    others = [str(folder.root) for folder in folders if not folder.facts.is_dir()]
    say_left_out([f"{root} was not judged: chaos rejudge {shlex.quote(root)}" for root in others], some=bool(judged))
    with spark_session(master, progress=TerminalProgress(Console(stderr=True)), anywhere=True) as spark:
        make_views(spark, judged, query)
        columns, records = answer(spark, query, rows)
    if as_json:
        if len(set(columns)) < len(columns):
            raise ScenarioError(f"JSON needs different names of columns; rename them with `as`: {', '.join(columns)}")
        typer.echo(json.dumps([row.asDict(recursive=True) for row in records[:rows]], indent=2, default=str))
    else:
        show(Console(), columns, records[:rows])
    if len(records) > rows:
        typer.echo(f"there are more rows; --rows {10 * rows} shows more of them", err=True)


def show(console: "Console", columns: list[str], records: list[Any]) -> None:
    """Print a table."""
    from harness.cli.terminal import new_table

    table = new_table("", *columns)
    for row in records:
        table.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    console.print(table, highlight=False)
