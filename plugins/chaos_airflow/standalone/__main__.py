"""`python -m chaos_airflow.standalone` starts Airflow on this machine, and ends all of it on Ctrl-C."""

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from chaos_airflow.standalone.home import ROLES, ROOT, USERS, AirflowError, Settings, error_with_log, users_of
from chaos_airflow.standalone.server import POLL_INTERVAL_S, Server, serving
from harness.cli.exit_codes import with_exit_codes
from harness.system.extras import require
from harness.verdict import ExitCode


def main(
    home: Annotated[Path, typer.Option(help="Airflow's home; made when it is not there.")] = ROOT / ".airflow",
    runs: Annotated[Path, typer.Option(help="Folder in which runs are created.")] = ROOT / "runs",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of 8080 or the next free one.")] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:ROLE",
            help=f"Another user; repeatable, or several after one another in {USERS}. Roles: {', '.join(ROLES)}.",
        ),
    ] = None,
) -> None:
    """Start Airflow on this machine, say where it is, and end all of it on Ctrl-C."""
    require("airflow")
    users = users_of(user or os.environ.get(USERS, "").split())
    settings = Settings(home=home.absolute(), runs=runs.absolute(), port=port, users=users)
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: in the background a shell lets it be ignored
        signal.signal(number, _interrupt)
    try:
        with serving(settings, say=lambda line: typer.echo(f"airflow: {line} …")) as server:
            typer.echo(_welcome(server))
            while server.keeper.running:
                time.sleep(POLL_INTERVAL_S)
            raise error_with_log(settings, "a part of Airflow ended")
    except KeyboardInterrupt:
        typer.echo(f"\nairflow: everything has ended; the log is {settings.log}")
    except AirflowError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(ExitCode.ENVIRONMENT) from error


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _welcome(server: Server) -> str:
    users = "".join(
        f"user:      {user}{'' if role == 'admin' else f' ({role})'}\npassword:  {server.passwords[user]}\n"
        for user, role in server.settings.users.items()
    )
    return (
        f"\nAirflow:   {server.base_url}\n{users}\n"
        f"Trigger chaos_experiment for one run; turn chaos_nightly on for one every night.\n"
        f"runs: {server.settings.runs}   log: {server.settings.log}   Ctrl-C ends everything."
    )


if __name__ == "__main__":
    with_exit_codes(partial(typer.run, main))
