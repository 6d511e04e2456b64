"""The home of one Airflow: passwords, log and metadata database, a port, a configuration."""

import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError, ScenarioError

ROOT = Path(__file__).resolve().parents[3]
HOST = "127.0.0.1"
FIRST_PORT = 8080
PORTS_TRIED = 20
PASSWORD_BYTES = 12
SECRET_BYTES = 64
MIGRATE_TIMEOUT_S = 300.0
WRITE_TURN_S = 25
"""How long a process waits to write to the database: SQLite has one writer, and its own 5 s fail on a busy machine."""
LOG_TAIL_LINES = 15
NAME = re.compile(r"[\w.@-]+")
OWNER_ONLY = 0o700
SECRET = 0o600


USERS = "CHAOS_AIRFLOW_USERS"
ROLES = ("viewer", "user", "op", "admin")


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
        """Output of the processes of Airflow; logs of tasks are in the home's folder `logs`."""
        return self.home / "airflow.log"

    @property
    def passwords_file(self) -> Path:
        """Passwords by user name, readable by the owner alone."""
        return self.home / "passwords.json"


def users_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the role of each user: of `admin`, and of those that are given as NAME:ROLE.

    Raises:
        ScenarioError: one is not written like that, or has a role that is not there.
    """
    users = {"admin": "admin"}
    for text in texts:
        name, _, role = text.partition(":")
        if not NAME.fullmatch(name) or role not in ROLES:
            raise ScenarioError(f"{text}: a user is written NAME:ROLE, with a role of {', '.join(ROLES)}")
        users[name] = role
    return users


@contextlib.contextmanager
def own_home(settings: Settings) -> Iterator[None]:
    """Make the home, and lock it against a second Airflow."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        settings.home.chmod(OWNER_ONLY)
        lock = (settings.home / "standalone.lock").open("a")
    except OSError as error:
        raise AirflowError(f"{settings.home} cannot be Airflow's home: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AirflowError(f"another Airflow runs in {settings.home}; stop it, or name another home") from error
        yield


def free_port(port: int | None) -> int:
    """Return this port (0: any free one), or without one the first free port from 8080.

    Raises:
        AirflowError: the port is taken, or all that were tried are.
    """
    candidates = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED) if port is None else [port]
    for candidate in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    tried = f"port {port} is" if port is not None else f"ports {FIRST_PORT} to {candidates[-1]} are"
    raise AirflowError(f"{tried} taken on {HOST}; free one, or name another")


def environment_of(settings: Settings, port: int) -> dict[str, str]:
    """Return the environment of every process of this Airflow."""
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
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{settings.home / 'airflow.db'}?timeout={WRITE_TURN_S}",
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
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",  # a DAG file that changes is read at once
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


def passwords_of(settings: Settings) -> dict[str, str]:
    """Return the password of each user; one without a password gets a new one."""
    try:
        stored = json.loads(settings.passwords_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        stored = {}
    except (OSError, ValueError) as error:
        raise AirflowError(f"{settings.passwords_file} cannot be read; remove it for new passwords: {error}") from error
    passwords = {user: stored.get(user) or secrets.token_urlsafe(PASSWORD_BYTES) for user in settings.users}
    descriptor = os.open(settings.passwords_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, SECRET)
        json.dump(passwords, file)
    return passwords


def error_with_log(settings: Settings, reason: str) -> AirflowError:
    """Return an error with the end of the log and the reason."""
    lines = settings.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    return AirflowError("\n".join((*lines, f"{reason}; the whole log: {settings.log}")))


def migrate(settings: Settings, environment: dict[str, str]) -> None:
    """Make the metadata database, or bring it up to date."""
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    with settings.log.open("ab") as log:
        try:
            process = subprocess.run(  # noqa: S603  arguments of our own
                command, env=environment, stdout=log, stderr=log, timeout=MIGRATE_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise error_with_log(
                settings, f"the metadata database was not ready within {MIGRATE_TIMEOUT_S:g} s"
            ) from error
    if process.returncode:
        raise error_with_log(
            settings, f"the metadata database in {settings.home} cannot be used; remove that folder for a new one"
        )
