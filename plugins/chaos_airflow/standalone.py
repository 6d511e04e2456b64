"""Airflow for one person on this machine, with this repository's DAGs and plugins: `make airflow`.

What `airflow standalone` does (all parts of Airflow on SQLite, one generated password), but nothing listens on anything
but loopback, as the log servers of `airflow standalone` do; it is up when it answers and has read the DAGs, not after a
while; and nothing outlives it.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import httpx
import typer

from chaos_airflow.home import (
    HOST,
    ROOT,
    AirflowError,
    Settings,
    broken,
    environment_of,
    free_port,
    migrate,
    own_home,
    passwords_of,
)
from chaos_airflow.keeper import Keeper
from harness.verdict import ExitCode

POOL = {"name": "chaos", "slots": 1, "description": "The machine that clusters run on: one run at a time"}
READY_TIMEOUT_S = 300.0
"""For a machine under heavy load; two idle cores take twenty seconds."""
ANSWER_TIMEOUT_S = 30.0
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An Airflow that answers."""

    base_url: str
    passwords: Mapping[str, str]
    settings: Settings
    keeper: Keeper

    def token(self, user: str = "admin") -> str:
        """Return a token for the REST API."""
        login = {"username": user, "password": self.passwords[user]}
        answer = httpx.post(f"{self.base_url}/auth/token", json=login, trust_env=False, timeout=ANSWER_TIMEOUT_S)
        return str(answer.raise_for_status().json()["access_token"])

    def client(self, user: str = "admin") -> httpx.Client:
        """Return a client of the REST API, whose paths begin with /api/v2."""
        authorization = {"Authorization": f"Bearer {self.token(user)}"}
        return httpx.Client(base_url=self.base_url, headers=authorization, trust_env=False, timeout=ANSWER_TIMEOUT_S)


def _silent(line: str) -> None:
    """Say nothing."""


@contextlib.contextmanager
def serving(settings: Settings, say: Callable[[str], object] = _silent) -> Iterator[Server]:
    """Start Airflow, give it away when it answers and has read every DAG, and end all of it.

    Raises:
        AirflowError: it could not be started; the message says why and where the log is.
    """
    with own_home(settings):
        port = free_port(settings.port)
        environment = environment_of(settings, port)
        passwords = passwords_of(settings)
        say("preparing the metadata database")
        migrate(settings, environment)
        say("starting API server, scheduler, DAG processor and triggerer")
        airflow = [sys.executable, "-m", "airflow"]
        components = {
            "api-server": [*airflow, "api-server"],
            "scheduler": [*airflow, "scheduler", "--skip-serve-logs"],
            "dag-processor": [*airflow, "dag-processor"],
            "triggerer": [*airflow, "triggerer", "--skip-serve-logs"],
        }
        keeper = Keeper(components, log=settings.log, environment=environment)
        try:
            server = Server(base_url=f"http://{HOST}:{port}", passwords=passwords, settings=settings, keeper=keeper)
            _make_ready(server, say)
            yield server
        finally:
            keeper.stop()


def _make_ready(server: Server, say: Callable[[str], object]) -> None:
    _until(server, _healthy, what="an answer of all parts")
    say("reading the DAGs")
    try:
        with server.client() as client:
            _make_pool(client)
            _until(server, lambda _: _dags_read(client), what="every DAG file read")
    except httpx.HTTPError as error:
        raise broken(server.settings, f"Airflow answered, and then did not: {error}") from error


def _until(server: Server, look: Callable[[Server], str], *, what: str) -> None:
    """Look until nothing is missing any more."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while missing := look(server):
        if not server.keeper.running:
            raise broken(server.settings, "Airflow ended while it started")
        if time.monotonic() > deadline:
            raise broken(server.settings, f"{what}: not within {READY_TIMEOUT_S:g} s; last saw {missing}")
        time.sleep(LOOK_EVERY_S)


def _healthy(server: Server) -> str:
    """Return what does not answer yet."""
    try:
        answer = httpx.get(f"{server.base_url}/api/v2/monitor/health", trust_env=False, timeout=ANSWER_TIMEOUT_S)
        health = answer.raise_for_status().json()
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    parts = ("metadatabase", "scheduler", "dag_processor")
    return ", ".join(f"{part}: {_status(health, part)}" for part in parts if _status(health, part) != "healthy")


def _status(health: Mapping[str, Any], part: str) -> str:
    return str((health.get(part) or {}).get("status"))


def _make_pool(client: httpx.Client) -> None:
    known = client.get("/api/v2/pools", params={"limit": 100}).raise_for_status().json()["pools"]
    if POOL["name"] not in {pool["name"] for pool in known}:
        client.post("/api/v2/pools", json=POOL).raise_for_status()


def _dags_read(client: httpx.Client) -> str:
    """Return the DAG files that have neither become a DAG nor an import error yet."""
    files = {path.name for path in (ROOT / "dags").glob("*.py")}
    dags = client.get("/api/v2/dags", params={"limit": 100}).raise_for_status().json()["dags"]
    errors = client.get("/api/v2/importErrors").raise_for_status().json()["import_errors"]
    read = {Path(entry["relative_fileloc"]).name for entry in dags} | {Path(entry["filename"]).name for entry in errors}
    return ", ".join(sorted(files - read))


def main(
    home: Annotated[Path, typer.Option(help="Airflow's home; made when it is not there.")] = ROOT / ".airflow",
    runs: Annotated[Path, typer.Option(help="Folder that runs are made in.")] = ROOT / "runs",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of 8080 or the next free one.")] = None,
) -> None:
    """Start Airflow on this machine, say where it is, and end all of it on Ctrl-C."""
    settings = Settings(home=home.absolute(), runs=runs.absolute(), port=port)
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: in the background a shell lets it be ignored
        signal.signal(number, _interrupt)
    try:
        with serving(settings, say=lambda line: typer.echo(f"airflow: {line} …")) as server:
            typer.echo(_welcome(server))
            while server.keeper.running:
                time.sleep(LOOK_EVERY_S)
            raise broken(settings, "a part of Airflow ended")
    except KeyboardInterrupt:
        typer.echo(f"\nairflow: everything has ended; the log is {settings.log}")
    except AirflowError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(ExitCode.ENVIRONMENT) from error


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _welcome(server: Server) -> str:
    ((user, password),) = server.passwords.items()
    return (
        f"\nAirflow:   {server.base_url}\nuser:      {user}\npassword:  {password}\n\n"
        f"Trigger chaos_experiment for one run; turn chaos_nightly on for one every night.\n"
        f"runs: {server.settings.runs}   log: {server.settings.log}   Ctrl-C ends everything."
    )


if __name__ == "__main__":
    typer.run(main)
