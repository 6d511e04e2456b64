"""`chaos judge`: judges a history that others recorded, within its evidence."""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from harness.cli.options import EngineName, Json, Master
from harness.errors import Interrupted, ScenarioError
from harness.progress import number_of
from harness.store.folder import ResultFolder
from harness.system.engine import choose_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from harness.analysis.engine.hadoop import AnyResultFolder, HadoopPath
    from harness.ingest.answer import HistoryResult
    from harness.store.result import CheckResult
    from harness.verdict import SystemVerdict

DEFAULT_INTO = Path("judged")
_WHERE = "file, folder or glob, of this machine, or with --engine spark any URI that Hadoop knows; repeatable."
Paths = list[str] | None


def judge(
    operations: Annotated[Paths, typer.Option("--operations", help=f"What clients did: {_WHERE}")] = None,
    replicas: Annotated[Paths, typer.Option("--replicas", help=f"Dumps of replicas: {_WHERE}")] = None,
    zookeeper: Annotated[Paths, typer.Option("--zookeeper", help=f"Changes of znodes: {_WHERE}")] = None,
    state_changes: Annotated[Paths, typer.Option("--state-changes", help=f"What brokers did: {_WHERE}")] = None,
    journal: Annotated[Paths, typer.Option("--journal", help=f"Faults and when they were healed: {_WHERE}")] = None,
    liveness: Annotated[Paths, typer.Option("--liveness", help=f"Answers of the recovered cluster: {_WHERE}")] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", help="YAML file with settings of the cluster and its clients: docs/reference/evidence.md."
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One of these settings, e.g. min_insync_replicas=2; repeatable."
        ),
    ] = None,
    checks: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="NAME", help="Only this check, by number or name; repeatable."),
    ] = None,
    expansion: Annotated[
        int | None,
        typer.Option(
            "--expansion",
            min=1,
            help="Limit of a file's content, as a multiple of its size: docs/reference/evidence.md.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            help="Folder for facts, findings and report, of this machine, or with --engine spark any URI that Hadoop "
            "knows; default: a new one in judged/.",
        ),
    ] = None,
    master: Master = None,
    engine: EngineName = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List the promises that were not judged, and the evidence that they need.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge a recorded history of any client or broker, and list the promises that lack evidence."""
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.analysis.engine.storage import is_uri
    from harness.cli.terminal import TerminalProgress
    from harness.contracts.registry import check_keys
    from harness.ingest.expansion import EXPANSION
    from harness.ingest.judging import judge_history, report
    from harness.ingest.local_files import local_bytes
    from harness.ingest.result_folder import result_folder
    from harness.ingest.settings import load_settings

    paths = {
        "operations": operations or [],
        "replicas": replicas or [],
        "zookeeper": zookeeper or [],
        "state_changes": state_changes or [],
        "journal": journal or [],
        "liveness": liveness or [],
    }
    choose_engine(engine, master)
    if not any(paths.values()):
        raise ScenarioError("nothing to judge: give --operations or other evidence (docs/reference/evidence.md)")
    keys = check_keys(checks or ())
    allowed = load_settings(settings, sets or [])
    places = [path for kind in paths.values() for path in kind]
    local = None if into and is_uri(into) else result_folder(Path(into) if into else _new_folder(), places)
    progress = TerminalProgress(Console(stderr=True))
    try:
        with spark_session(master, size_bytes=local_bytes(places), progress=progress, anywhere=True) as spark:
            folder = local or _stored_folder(behind_uri(into or "", spark), places)
            result = judge_history(
                spark, paths, allowed, folder, checks=keys, expansion=expansion or EXPANSION, progress=progress
            )
            report(folder, result, ["chaos", *sys.argv[1:]])
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the history was not judged") from None
    finally:
        if local:
            with suppress(OSError):
                local.root.rmdir()  # if nothing was put there
    if as_json:
        typer.echo(json.dumps(result.as_json() | {"folder": str(folder.root)}, indent=2))
    else:
        show(Console(), result, folder, verbose=verbose)
    raise typer.Exit(result.exit_code)


def _new_folder() -> Path:
    return DEFAULT_INTO / f"history-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}"


def behind_uri(uri: str, spark: "SparkSession") -> "HadoopPath":
    """Return a folder behind a URI.

    Raises:
        ScenarioError: the engine has no JVM here, which Hadoop's file systems need.
    """
    from harness.analysis.engine.compat import is_connect
    from harness.analysis.engine.hadoop import HadoopPath

    if is_connect(spark):
        raise ScenarioError(f"{uri}: only Apache Spark in a JVM of this machine writes there: use --engine spark")
    return HadoopPath(uri, spark)


def _stored_folder(place: "HadoopPath", places: list[str]) -> "ResultFolder[HadoopPath]":
    """Return the same behind a URI; Spark creates it when it writes there.

    Raises:
        ScenarioError: other files would be overwritten or judged next time.
        EvidenceError: Hadoop does not know the file system, or cannot reach it.
    """
    from harness.analysis.engine.storage import display_path, is_uri
    from harness.ingest.result_folder import OF_A_RUN

    folder = ResultFolder(place)
    if folder.plan.exists():
        raise ScenarioError(f"{place} {OF_A_RUN}")
    for text in places:
        evidence = display_path(text if is_uri(text) else str(Path(text).resolve())).rstrip("/")
        if f"{display_path(str(place))}/".startswith(f"{evidence}/"):
            raise ScenarioError(f"{place} is in {text}, which holds evidence: use another --into")
    return folder


_COUNTED = {
    "sends": "sends",
    "polls": "records read",
    "end_offsets": "ends of partitions",
    "committed_offsets": "commits and read-backs",
    "replica_records": "records in logs",
    "partition_states": "states of partitions",
    "liveness": "signs of life",
}
"""Facts with a row count in the terminal's output, and the noun for each."""


def show(console: "Console", result: "HistoryResult", folder: "AnyResultFolder", *, verbose: bool = False) -> None:
    """Print what was judged by which settings and what was found; if `verbose`, what the other promises need."""
    from harness.cli.terminal import new_table, styled
    from harness.contracts.registry import check_title

    judged = new_table(result.name, "check", "verdict", "what was seen", wide=["what was seen"])
    for (verdict, seen), titles in _alike(result.checks).items():
        judged.add_row("\n".join(titles), styled(verdict), escape(seen))
    counts = [f"{words} {result.counts[fact]:,}" for fact, words in _COUNTED.items() if result.counts.get(fact)]
    console.print(f"evidence  {', '.join(counts) or 'nothing that checks count'}", markup=False, highlight=False)
    console.print(judged)
    if result.unjudged and not verbose:
        console.print(
            f"not judged: {number_of(len(result.unjudged), 'promise')}; --verbose lists the evidence that is needed",
            highlight=False,
        )
    elif result.unjudged:
        wide = ("promise", "evidence that it needs")
        missing = new_table("\nnot judged", "check", *wide, wide=wide)
        for promise in result.unjudged:
            missing.add_row(check_title(promise.check), escape(promise.promise), escape("; ".join(promise.needed)))
        console.print(missing)
    for setting in result.settings:
        if not setting.assumed:
            text = f"stated      {setting.name}={setting.value}  {setting.about}"
            console.print(text, markup=False, highlight=False)
    if left_open := [setting.name for setting in result.settings if setting.assumed]:
        console.print(f"not stated  {', '.join(left_open)}", markup=False, highlight=False)
    for remark in result.remarks:
        console.print(f"remark    {remark}", style="yellow", markup=False, highlight=False)
    counted = f"{number_of(len(result.checks), 'promise')} judged, {len(result.unjudged)} not"
    console.print(f"system {styled(result.verdict)}   {counted}", highlight=False)
    console.print(f"report    {folder.report}", markup=False, highlight=False, soft_wrap=True)


def _alike(checks: "Sequence[CheckResult]") -> "dict[tuple[SystemVerdict, str], list[str]]":
    """Return the titles of the checks by verdict, the worst first, with their details."""
    from harness.contracts.registry import check_title

    titles: dict[tuple[SystemVerdict, str], list[str]] = {}
    for check in sorted(checks, key=lambda check: -check.verdict):
        seen = "; ".join(part for part in (check.counted, check.reason or check.promise) if part)
        titles.setdefault((check.verdict, seen), []).append(check_title(check.check))
    return titles
