"""Airflow for one person on this machine, with this repository's DAGs and plugins: `make airflow`.

What `airflow standalone` does (API server, scheduler and DAG processor on SQLite, one generated password), but nothing
listens on anything but loopback, which the log servers of `airflow standalone` do; it is up when it answers and has
read the DAGs, not after a while; and nothing outlives it.
"""

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NoReturn

import httpx
import typer

from harness.errors import HarnessError
from kafka_chaos.airflow.keeper import Keeper

ROOT = Path(__file__).resolve().parents[3]
HOST = "127.0.0.1"
FIRST_PORT = 8080
PORTS_TRIED = 20
PASSWORD_BYTES = 12
SECRET_BYTES = 64
POOL = {"name": "chaos", "slots": 1, "description": "The machine that clusters run on: one run at a time"}
MIGRATE_TIMEOUT_S = 300.0
READY_TIMEOUT_S = 180.0
"""For a machine under heavy load; two idle cores take twenty seconds."""
LOOK_EVERY_S = 0.2
LOG_TAIL_LINES = 15
OWNER_ONLY = 0o700
SECRET = 0o600


class AirflowError(HarnessError):
    """Airflow could not be started; nothing of it is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which Airflow to start."""

    home: Path
    runs: Path
    port: int | None = None
    """None means 8080, or the next free one."""
    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "admin"})
    """Role by name: viewer, user, op or admin; each gets a password of its own."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables."""

    @property
    def log(self) -> Path:
        """What the processes of Airflow say; logs of tasks are in the home's folder `logs`."""
        return self.home / "airflow.log"

    @property
    def passwords_file(self) -> Path:
        """Passwords by user name, readable by the owner alone."""
        return self.home / "passwords.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An Airflow that answers."""

    base_url: str
    passwords: Mapping[str, str]
    settings: Settings
    keeper: Keeper

    def token(self, user: str = "admin") -> str:
        """Return a token for the REST API."""
        with httpx.Client(base_url=self.base_url, trust_env=False) as client:
            answer = client.post("/auth/token", json={"username": user, "password": self.passwords[user]})
            return str(answer.raise_for_status().json()["access_token"])

    def client(self, user: str = "admin") -> httpx.Client:
        """Return a client of the REST API, whose paths begin with /api/v2."""
        authorization = {"Authorization": f"Bearer {self.token(user)}"}
        return httpx.Client(base_url=self.base_url, headers=authorization, trust_env=False, timeout=30)


def _silent(line: str) -> None:
    """Say nothing."""


@contextlib.contextmanager
def serving(settings: Settings, say: Callable[[str], object] = _silent) -> Iterator[Server]:
    """Start Airflow, give it away when it answers and has read every DAG, and end all of it.

    Raises:
        AirflowError: it could not be started; the message says why and where the log is.
    """
    with _own_home(settings):
        port = _free_port(settings.port)
        environment = _environment(settings, port)
        passwords = _passwords(settings)
        say("preparing the metadata database")
        _migrate(settings, environment)
        say("starting API server, scheduler and DAG processor")
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
            _until(server, _healthy, what="an answer of all parts")
            with server.client() as client:
                _make_pool(client)
                say("reading the DAGs")
                _until(server, lambda _: _dags_read(client), what="every DAG file read")
            yield server
        finally:
            keeper.stop()


@contextlib.contextmanager
def _own_home(settings: Settings) -> Iterator[None]:
    """Make the home, and hold it against a second Airflow."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        settings.home.chmod(OWNER_ONLY)
        held = (settings.home / "standalone.lock").open("a")
    except OSError as error:
        raise AirflowError(f"{settings.home} cannot be Airflow's home: {error}") from error
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AirflowError(f"another Airflow runs in {settings.home}; stop it, or name another home") from error
        yield


def _free_port(asked: int | None) -> int:
    candidates = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED) if asked is None else [asked]
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    tried = f"port {asked} is" if asked is not None else f"ports {FIRST_PORT} to {candidates[-1]} are"
    raise AirflowError(f"{tried} taken on {HOST}; free one, or name another")


def _environment(settings: Settings, port: int) -> dict[str, str]:
    base_url = f"http://{HOST}:{port}"
    loopback = ",".join(filter(None, (os.environ.get("NO_PROXY"), HOST, "localhost")))
    paths = (str(ROOT), str(ROOT / "plugins"))
    return {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
        "PYTHONPATH": os.pathsep.join(filter(None, (*paths, os.environ.get("PYTHONPATH")))),
        "NO_PROXY": loopback,
        "no_proxy": loopback,
        "AIRFLOW_HOME": str(settings.home),
        "AIRFLOW_CONFIG": str(settings.home / "airflow.cfg"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{settings.home / 'airflow.db'}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{u}:{role}" for u, role in settings.users.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(settings.passwords_file),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{base_url}/execution/",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "12",  # the first tasks may be due before the API server answers
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": base_url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(SECRET_BYTES),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(SECRET_BYTES),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(settings.home / "logs"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__KAFKA_CHAOS__RUNS": str(settings.runs),
        **settings.options,
    }


def _passwords(settings: Settings) -> dict[str, str]:
    """Return the password of each user, made when there is none yet."""
    try:
        known = json.loads(settings.passwords_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = {}
    except (OSError, ValueError) as error:
        raise AirflowError(f"{settings.passwords_file} cannot be read; remove it for new passwords: {error}") from error
    passwords = {user: known.get(user) or secrets.token_urlsafe(PASSWORD_BYTES) for user in settings.users}
    descriptor = os.open(settings.passwords_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, SECRET)
        json.dump(passwords, file)
    return passwords


def _migrate(settings: Settings, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    with settings.log.open("ab") as log:
        try:
            done = subprocess.run(  # noqa: S603  arguments of our own
                command, env=environment, stdout=log, stderr=log, timeout=MIGRATE_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise _broken(settings, f"the metadata database was not ready within {MIGRATE_TIMEOUT_S:g} s") from error
    if done.returncode:
        raise _broken(
            settings, f"the metadata database in {settings.home} cannot be used; remove that folder for a new one"
        )


def _until(server: Server, look: Callable[[Server], str], *, what: str) -> None:
    """Look until nothing is missing any more."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while missing := look(server):
        if not server.keeper.running:
            raise _broken(server.settings, "Airflow ended while it started")
        if time.monotonic() > deadline:
            raise _broken(server.settings, f"{what}: not within {READY_TIMEOUT_S:g} s; last saw {missing}")
        time.sleep(LOOK_EVERY_S)


def _broken(settings: Settings, why: str) -> AirflowError:
    lines = settings.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    return AirflowError("\n".join((*lines, f"{why}; the whole log: {settings.log}")))


def _healthy(server: Server) -> str:
    """Return what does not answer yet."""
    try:
        answer = httpx.get(f"{server.base_url}/api/v2/monitor/health", trust_env=False, timeout=10)
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
    port: Annotated[int | None, typer.Option(help="Instead of 8080 or the next free one.")] = None,
) -> None:
    """Start Airflow on this machine, say where it is, and end all of it on Ctrl-C."""
    settings = Settings(home=home.absolute(), runs=runs.absolute(), port=port)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        with serving(settings, say=lambda line: typer.echo(f"airflow: {line} …")) as server:
            typer.echo(_welcome(server))
            while server.keeper.running:
                time.sleep(LOOK_EVERY_S)
            raise _broken(settings, "a part of Airflow ended")
    except KeyboardInterrupt:
        typer.echo(f"\nairflow: everything has ended; the log is {settings.log}")
    except AirflowError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(4) from error


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
