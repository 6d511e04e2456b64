import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers import images
from harness.cluster.containers.wheelhouse import Platform, locked, wheels
from harness.errors import ClusterError

LOCKED = """\
kazoo==2.11.0 ; python_full_version < '3.15' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via kafka-chaos-harness
kazoo-extra==1.0 \\
    --hash=sha256:cc
loose==1.0
"""
PLATFORM = Platform(python="3.11", machine="x86_64")


def test_an_entry_keeps_version_marker_and_every_hash() -> None:
    assert locked(LOCKED, ["kazoo"]) == (
        "kazoo==2.11.0 ; python_full_version < '3.15' --hash=sha256:aa --hash=sha256:bb\n"
    )


@pytest.mark.parametrize(
    "package",
    [pytest.param("kaz", id="not there, though another begins so"), pytest.param("loose", id="pinned without a hash")],
)
def test_a_package_that_is_not_locked_is_refused(package: str) -> None:
    with pytest.raises(ClusterError, match=f"do not pin {package} with hashes"):
        locked(LOCKED, [package])


def test_the_brokers_packages_are_locked_as_the_project_has_them() -> None:
    lines = images.broker().sources[images.REQUIREMENTS].decode().splitlines()
    project = (images.CHECKOUT / "requirements.txt").read_text(encoding="utf-8")
    assert len(lines) == len(images.BROKER_PACKAGES)
    for line in lines:
        assert f"\n{line.split()[0]} " in project
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", line)


class Pip:
    """Stands for pip: counts calls, and writes files or fails."""

    def __init__(self, status: int = 0, stderr: str = "") -> None:
        self.commands: list[list[str]] = []
        self.status, self.stderr = status, stderr

    def __call__(self, command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        self.commands.append(command)
        folder = Path(next(part for part in command if part.startswith("--dest=")).removeprefix("--dest="))
        folder.mkdir()
        (folder / "kazoo-2.11.0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, self.status, "", self.stderr)


def test_wheels_are_downloaded_once_for_a_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    first = wheels(tmp_path / "cache", LOCKED, PLATFORM)
    assert [wheel.name for wheel in first] == ["kazoo-2.11.0-py3-none-any.whl"]
    assert wheels(tmp_path / "cache", LOCKED, PLATFORM) == first
    assert len(pip.commands) == 1
    assert {"--require-hashes", "--only-binary=:all:", "--python-version=3.11"} <= set(pip.commands[0])
    wheels(tmp_path / "cache", LOCKED, Platform(python="3.12", machine="x86_64"))
    wheels(tmp_path / "cache", LOCKED + "other==1 --hash=sha256:dd\n", PLATFORM)
    assert len(pip.commands) == 3


def test_a_download_that_fails_leaves_nothing_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(1, "looking\nERROR: no matching distribution\n"))
    with pytest.raises(ClusterError, match=r"(?s)pip could not download.*no matching distribution"):
        wheels(tmp_path / "cache", LOCKED, PLATFORM)
    assert list((tmp_path / "cache").iterdir()) == []
