"""Airflow's API application with this plugin, in this process: its own auth manager, an empty database, two users."""

import json
import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

ROOT = Path(__file__).resolve().parents[2]
PASSWORDS = {"viewer": "viewer's", "nobody": "nobody's", "editor": "editor's"}
USERS = "viewer:viewer,nobody:,editor:user"
"""The second has no role, so no right at all; the third may also change what a DAG does."""


@pytest.fixture(scope="module")
def airflow_app(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[FastAPI]":
    """The application as the API server makes it."""
    passwords = tmp_path_factory.mktemp("auth") / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Airflow says of its own dependencies when it is imported
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", USERS)
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", secrets.token_hex(64))
        from airflow import plugins_manager, settings
        from airflow.api_fastapi.app import create_app, purge_cached_app
        from airflow.utils.db import initdb

        patch.setattr(settings, "PLUGINS_FOLDER", str(ROOT / "plugins"))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        caches = [value for value in vars(plugins_manager).values() if hasattr(value, "cache_clear")]
        for cache in caches:
            cache.cache_clear()
        purge_cached_app()
        initdb()
        yield create_app(apps="core")
        purge_cached_app()
        for cache in caches:
            cache.cache_clear()


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is configured for runs."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", str(folder))
    return folder


@pytest.fixture
def anonymous(airflow_app: "FastAPI", runs: Path) -> "TestClient":
    """A browser without a login."""
    from fastapi.testclient import TestClient

    return TestClient(airflow_app, follow_redirects=False)


def logged_in(client: "TestClient", user: str) -> "TestClient":
    """Return the browser after a user has logged in: the session is a cookie."""
    answer = client.post("/auth/token", json={"username": user, "password": PASSWORDS[user]})
    client.cookies.set("_token", answer.json()["access_token"])
    return client


@pytest.fixture
def viewer(anonymous: "TestClient") -> "TestClient":
    """A browser with a login that may read every DAG."""
    return logged_in(anonymous, "viewer")


@pytest.fixture
def nobody(anonymous: "TestClient") -> "TestClient":
    """A browser with a login that may read nothing."""
    return logged_in(anonymous, "nobody")


@pytest.fixture
def editor(anonymous: "TestClient") -> "TestClient":
    """A browser with a login that may end tasks."""
    return logged_in(anonymous, "editor")
