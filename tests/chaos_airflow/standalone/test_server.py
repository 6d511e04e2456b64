"""Whatever keeps Airflow from starting is one clear error, before anything is started."""

import fcntl
import json
import socket
import sqlite3
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from chaos_airflow.standalone.__main__ import main
from chaos_airflow.standalone.home import AirflowError, Settings, environment_of, passwords_of, users_of
from chaos_airflow.standalone.server import serving
from harness.errors import ScenarioError
from tests.airflow_server import Airflow

SQLITES_OWN_WAIT_S = 5.0


def settings(home: Path, port: int | None = 0) -> Settings:
    return Settings(home=home, runs=home / "runs", port=port)


def start(settings: Settings) -> None:
    with serving(settings):
        raise AssertionError("it must not start")


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AirflowError, match=f"port {port} is taken"):
            start(settings(tmp_path / "home", port))


def test_a_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    with pytest.raises(AirflowError, match=f"{home} cannot be Airflow's home"):
        start(settings(home))


def test_a_second_airflow_in_one_home_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "standalone.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(AirflowError, match="another Airflow runs in"):
            start(settings(tmp_path))


def test_a_broken_database_is_shown_with_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "airflow.db").write_text("this is no database, but long enough to be taken for one" * 100)
    with pytest.raises(
        AirflowError, match=r"(?s)file is not a database.*remove that folder.*the whole log: .*airflow.log"
    ):
        start(settings(tmp_path))


def test_passwords_are_secret_and_stay(tmp_path: Path) -> None:
    first = passwords_of(settings(tmp_path))
    file = tmp_path / "passwords.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == first == passwords_of(settings(tmp_path))
    assert len(first["admin"]) >= 16


def test_a_passwords_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text("{")
    with pytest.raises(AirflowError, match="remove it for new passwords"):
        start(settings(tmp_path))


def test_the_command_says_what_is_wrong_and_ends_with_4(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, ["--home", str(tmp_path / "home")])
    assert result.exit_code == 4
    assert "cannot be Airflow's home" in result.output


def test_a_port_that_is_none_is_refused(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(main)
    assert CliRunner().invoke(app, ["--home", str(tmp_path), "--port", "65536"]).exit_code == 2


def test_users_and_their_roles_are_added_by_a_setting(tmp_path: Path) -> None:
    users = users_of(["ann:viewer", "bob:op"])
    assert users == {"admin": "admin", "ann": "viewer", "bob": "op"}
    made = replace(settings(tmp_path), users=users)
    assert passwords_of(made).keys() == users.keys()
    assert environment_of(made, 1)["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] == "admin:admin,ann:viewer,bob:op"


@pytest.mark.parametrize("text", ["ann", "ann:", ":op", "ann:root", "a,b:op"])
def test_a_user_without_a_name_or_a_role_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="a user is written NAME:ROLE, with a role of viewer, user, op, admin"):
        users_of([text])


@pytest.mark.airflow
def test_a_request_waits_for_its_turn_to_write(airflow_server: Airflow) -> None:
    home = airflow_server.server.settings.home
    given_up = threading.Event()
    with sqlite3.connect(home / "airflow.db", isolation_level=None, check_same_thread=False) as writer:
        writer.execute("PRAGMA busy_timeout = 20000")
        writer.execute("BEGIN IMMEDIATE")

        def give_up() -> None:
            given_up.set()
            writer.execute("ROLLBACK")

        end = threading.Timer(SQLITES_OWN_WAIT_S + 2, give_up)
        end.start()
        try:
            airflow_server.unpause("chaos_experiment")
            assert given_up.is_set()
        finally:
            end.join()
