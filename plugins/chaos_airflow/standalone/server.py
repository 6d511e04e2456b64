"""When is an Airflow for one person up, with this repository's DAGs and plugins, and how does all of it end?

The parts are those of `airflow standalone`: all of Airflow on SQLite, one generated password. But here everything
listens on loopback only (there the log servers do not); it is up when it answers and has read the DAGs, not after a
fixed time; and nothing outlives it.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from chaos_airflow.standalone.home import (
    HOST,
    ROOT,
    Settings,
    environment_of,
    error_with_log,
    free_port,
    migrate,
    own_home,
    passwords_of,
)
from chaos_airflow.standalone.keeper import Keeper

POOL = {"name": "chaos", "slots": 1, "description": "The machine on which clusters run: one run at a time"}
READY_TIMEOUT_S = 300.0
"""For a machine under heavy load; two idle cores take twenty seconds."""
ANSWER_TIMEOUT_S = 120.0
"""For a machine under heavy load too; an auth manager may make its application when the first token is asked for."""
POLL_INTERVAL_S = 0.2


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


@contextlib.contextmanager
def serving(settings: Settings, say: Callable[[str], object] = lambda _: None) -> Iterator[Server]:
    """Start Airflow, yield it when it answers and has read every DAG, and end all of it.

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
    _until(server, _unhealthy_parts, what="an answer of all parts")
    say("reading the DAGs")
    try:
        with server.client() as client:
            _make_pool(client)
            _until(server, lambda _: _unread_dags(client), what="every DAG file read")
    except httpx.HTTPError as error:
        raise error_with_log(server.settings, f"Airflow answered, and then did not: {error}") from error


def _until(server: Server, look: Callable[[Server], str], *, what: str) -> None:
    """Wait until `look` returns that nothing is missing.

    Raises:
        AirflowError: Airflow ended, or something is still missing at the deadline.
    """
    deadline = time.monotonic() + READY_TIMEOUT_S
    while missing := look(server):
        if not server.keeper.running:
            raise error_with_log(server.settings, "Airflow ended while it started")
        if time.monotonic() > deadline:
            raise error_with_log(server.settings, f"{what}: not within {READY_TIMEOUT_S:g} s; last saw {missing}")
        time.sleep(POLL_INTERVAL_S)


def _unhealthy_parts(server: Server) -> str:
    """Return the parts that are not healthy yet, with their states."""
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
    pools = client.get("/api/v2/pools", params={"limit": 100}).raise_for_status().json()["pools"]
    if POOL["name"] not in {pool["name"] for pool in pools}:
        client.post("/api/v2/pools", json=POOL).raise_for_status()


def _unread_dags(client: httpx.Client) -> str:
    """Return the DAG files that have neither become a DAG nor an import error yet."""
    files = {path.name for path in (ROOT / "dags").glob("*.py")}
    dags = client.get("/api/v2/dags", params={"limit": 100}).raise_for_status().json()["dags"]
    errors = client.get("/api/v2/importErrors").raise_for_status().json()["import_errors"]
    read = {Path(entry["relative_fileloc"]).name for entry in dags} | {Path(entry["filename"]).name for entry in errors}
    return ", ".join(sorted(files - read))
