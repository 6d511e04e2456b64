"""Runs a DAG once in CI, without any service of Airflow, for an exit code and JUnit XML.

Nothing here imports Airflow before its home is set: a temporary one, unless the environment names one.
"""

import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chaos_airflow.tasks.request import RunRequest
from harness.cli.exit_codes import with_exit_codes
from harness.cli.options import Driver, Junit, PlantedBugs, Seed, Sets
from harness.system.extras import require
from harness.verdict import BROKEN, EXIT_CODES, ExitCode

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"
HOME = "AIRFLOW_HOME"


def main(module: str, attribute: str) -> None:
    """Run the DAG in this attribute of a module of the DAGs folder, with the options of the command line, and exit."""

    def run(
        scenario: Annotated[str, typer.Option(help="A built-in scenario, or the path of a YAML file.")] = "smoke",
        driver: Driver = None,
        seed: Seed = None,
        planted_bugs: PlantedBugs = None,
        sets: Sets = None,
        runs: Annotated[Path | None, typer.Option(help="Folder in which the run's folder is created.")] = None,
        junit: Junit = None,
    ) -> None:
        """Carry out one run by Airflow's tasks and print its verdicts; exit codes as of `chaos run`."""
        require("airflow")
        conf = RunRequest(scenario=scenario, driver=driver, seed=seed, planted_bugs=planted_bugs or [], set=sets or [])
        with _airflow(module, runs):
            dag = getattr(importlib.import_module(module), attribute)
            code = _exit_code(dag.test(run_conf=dict(conf)), scenario, junit)
        raise typer.Exit(code)

    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command()(run)
    with_exit_codes(program)


@contextmanager
def _airflow(module: str, runs: Path | None) -> Iterator[None]:
    """Point Airflow to this repository, and migrate its database, in the configured home or in a temporary one.

    A temporary one has this module's DAG only: `dag.test()` reads every DAG of its folder first, which takes seconds.
    """
    if runs is not None:
        os.environ["AIRFLOW__KAFKA_CHAOS__RUNS"] = str(runs.absolute())
    os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(ROOT / "plugins"))
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    temporary = None if HOME in os.environ else tempfile.mkdtemp(prefix="chaos-airflow-")
    try:
        dags = DAGS
        if temporary is not None:
            os.environ[HOME] = temporary
            dags = Path(temporary, "dags")
            dags.mkdir()
            (dags / f"{module}.py").symlink_to(DAGS / f"{module}.py")
        os.environ.setdefault("AIRFLOW__CORE__DAGS_FOLDER", str(dags))
        _migrate()
        yield
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _migrate() -> None:
    """Bring the database up to date, if it is SQLite: any other one has an administrator."""
    import logging

    from airflow import settings
    from airflow.utils import db

    if settings.engine is not None and settings.engine.dialect.name == "sqlite":
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            db.initdb()
        finally:
            logging.disable(before)


def _exit_code(run: "DagRun", scenario: str, junit: Path | None) -> ExitCode:
    """Return the exit code of a run that is over, and write its JUnit XML."""
    from chaos_airflow.verdicts import PROBLEM_KEY, Problem
    from harness.report.conclusion import REFUSED, concluded, sentence
    from harness.report.junit import write_junit, write_not_started
    from harness.report.page import write as write_report
    from harness.run.run import Run
    from harness.store.folder import RunFolder
    from harness.store.result import RunResult

    root: str | None = _xcom(run, "start", "return_value")
    if root is None:
        problem: Problem = _xcom(run, "start", PROBLEM_KEY) or Problem(outcome=BROKEN, reason="see the log")
        typer.echo(f"{scenario} {problem['outcome']}: {problem['reason']}")
        if junit is not None:
            write_not_started(junit, scenario, problem["reason"], refused=problem["outcome"] == REFUSED)
        return ExitCode.ENVIRONMENT if problem["outcome"] == BROKEN else ExitCode.USAGE
    folder = RunFolder(Path(root))
    conclusion = concluded(folder)
    if folder.report.exists():  # CI keeps single files, and people send them, so the page is self-contained
        write_report(Run.load(folder), alone=True)
    typer.echo(f"{sentence(conclusion)}\nreport: {folder.report}")
    if junit is not None:
        write_junit(folder, RunResult.load(folder.verdict))
        shutil.copyfile(folder.junit, junit)
    code = EXIT_CODES[conclusion["outcome"]]
    return ExitCode.ENVIRONMENT if code is ExitCode.HELD and run.state != "success" else code


def _xcom(run: "DagRun", task_id: str, key: str) -> Any:
    """Return what a task left in XCom."""
    instance = run.get_task_instance(task_id)
    return None if instance is None else instance.xcom_pull(task_ids=task_id, key=key)
