"""Packages that a test needs and the environment cannot have, from a lock of their own in `tests/locks`."""

import hashlib
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

LOCKS = Path(__file__).parent / "locks"
TIMEOUT_S = 300.0
UNREACHABLE = "error sending request"
"""What uv says where there is no network; anything else, as another hash, is no reason to skip."""


def beside(config: pytest.Config, name: str) -> Path:
    """Return a folder with the packages of a lock and nothing that they depend on; without a network, skip."""
    assert config.cache is not None
    lock = LOCKS / f"{name}.txt"
    folder = config.cache.mkdir(f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}") / "packages"
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        if not folder.exists():
            _install(lock, Path(temporary, "packages"))
            with suppress(OSError):  # another worker was quicker
                Path(temporary, "packages").replace(folder)
    return folder


def _install(lock: Path, target: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    options = ["--python", sys.executable, "--target", str(target), "--requirements", str(lock)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if UNREACHABLE in done.stderr:
        pytest.skip(f"what {lock.name} names cannot be fetched: {done.stderr.splitlines()[-1].strip()}")
    assert done.returncode == 0, done.stderr
