"""What docker/compose.yaml promises: loopback only, no secret of its own, no privilege; and what a build is sent."""

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from docker.utils.build import exclude_paths
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker" / "compose.yaml"
SECRETS = {"POSTGRES_PASSWORD", "AIRFLOW_SECRET_KEY", "AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = YAML(typ="safe").load(COMPOSE)["services"]
    return loaded


def test_only_the_api_server_is_published_and_on_loopback(services: dict[str, dict[str, Any]]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert list(published) == ["api-server"]
    assert all(port.startswith("127.0.0.1:") for port in published["api-server"])


def test_no_service_has_a_privilege(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "cap_add", "network_mode", "pid"} & set(service), name


def test_every_service_that_stays_is_watched(services: dict[str, dict[str, Any]]) -> None:
    stay = {name: service for name, service in services.items() if service["restart"] != "no"}
    assert set(stay) == {"postgres", "api-server", "scheduler", "dag-processor"}
    assert all("healthcheck" in service for service in stay.values())


def test_the_pool_of_the_dags_is_made_before_anything_runs(services: dict[str, dict[str, Any]]) -> None:
    assert services["pool"]["command"][:4] == ["pools", "set", "chaos", "1"]
    assert services["api-server"]["depends_on"]["pool"]["condition"] == "service_completed_successfully"


def test_the_scheduler_keeps_its_name_for_the_reaper(services: dict[str, dict[str, Any]]) -> None:
    assert services["scheduler"]["hostname"] == "scheduler"
    assert "runs:/runs" in services["scheduler"]["volumes"]


def test_every_secret_is_demanded_and_none_has_a_default() -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    for secret in SECRETS:
        assert f"${{{secret}:?" in text
        assert text.count(f"${{{secret}") == text.count(f"${{{secret}:?")


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A copy of the script, in a folder that stands for docker/."""
    return Path(shutil.copy(ROOT / "docker" / "secrets.sh", tmp_path))


def test_secrets_are_made_once_and_readable_by_their_owner_alone(secrets: Path) -> None:
    subprocess.run([secrets], check=True)
    made = secrets.with_name(".env")
    values = dict(line.split("=", 1) for line in made.read_text().splitlines())
    assert set(values) == SECRETS
    assert len(set(values.values())) == len(SECRETS)
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    again = subprocess.run([secrets], check=False, capture_output=True, text=True)
    assert again.returncode == 1
    assert "exists" in again.stderr


def test_the_fernet_key_is_one(secrets: Path) -> None:
    from cryptography.fernet import Fernet

    subprocess.run([secrets], check=True)
    key = next(line for line in secrets.with_name(".env").read_text().splitlines() if "FERNET" in line)
    Fernet(key.partition("=")[2])


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_compose_refuses_the_file_without_secrets_and_accepts_it_with_them(secrets: Path) -> None:
    compose = shutil.copy(COMPOSE, secrets.parent)
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}

    def config() -> "subprocess.CompletedProcess[str]":
        command = ["docker-compose", "--file", str(compose), "config", "--quiet"]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd="/")

    assert "run docker/secrets.sh first" in config().stderr
    subprocess.run([secrets], check=True)
    accepted = config()
    assert accepted.returncode == 0, accepted.stderr


def test_a_build_is_sent_what_it_copies_and_no_secret(tmp_path: Path) -> None:
    for name in ("runs/a/plan.json", "docker/.env", ".git/config", "tests/test.py", "harness/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    copied = ["requirements.txt", "docker/requirements-postgres.txt", "LICENSE", "README.md", "pyproject.toml"]
    copied += ["harness/a.py", "expectations/a.json", "plugins/kafka_chaos/a.yaml", "dags/a.py"]
    for name in copied:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = exclude_paths(str(tmp_path), [line for line in patterns if line and not line.startswith("#")])
    assert {name for name in sent if (tmp_path / name).is_file()} == set(copied)


def test_everything_that_airflows_image_copies_is_in_the_repository() -> None:
    lines = (ROOT / "docker" / "airflow.Dockerfile").read_text(encoding="utf-8").splitlines()
    sources = [source for line in lines if line.startswith("COPY ") for source in line.split()[1:-1]]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
