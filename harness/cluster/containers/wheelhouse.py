"""The wheels of an image: those that the host's pip downloads for its Python, locked by version and hash.

The host may be behind a proxy or need a company's own certificates; the build then needs no network.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ClusterError

DOWNLOAD_TIMEOUT_S = 300
LOG_TAIL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The Python inside an image, which wheels must fit."""

    python: str
    """Major and minor version, as in 3.11."""
    machine: str


def locked(requirements: str, packages: Iterable[str]) -> str:
    """Return the entries of some packages in locked requirements, one a line: version, marker and hashes.

    Raises:
        ClusterError: one of the packages is not pinned with hashes.
    """
    lines = requirements.replace("\\\n", " ")
    entries = []
    for package in packages:
        entry = re.search(rf"^{re.escape(package)}==.* --hash=.*$", lines, re.MULTILINE)
        if entry is None:
            raise ClusterError(f"the locked requirements do not pin {package} with hashes")
        entries.append(" ".join(entry.group().split()))
    return "".join(f"{entry}\n" for entry in entries)


def wheels(cache: Path, requirements: str, platform: Platform) -> list[Path]:
    """Return the wheel files of locked requirements; they are downloaded into the cache once.

    Raises:
        ClusterError: pip could not download them.
    """
    key = hashlib.sha256(repr((requirements, platform)).encode()).hexdigest()[:12]
    folder = cache / key
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as name:
            _download(Path(name), requirements, platform).rename(folder)
    return sorted(folder.glob("*.whl"))


def _download(folder: Path, requirements: str, platform: Platform) -> Path:
    file, destination = folder / "requirements.txt", folder / "wheels"
    file.write_text(requirements, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--only-binary=:all:", "--implementation=cp", f"--python-version={platform.python}"]
    command += [f"--platform={tag}_{platform.machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    command += [f"--dest={destination}", f"--requirement={file}"]
    try:
        pip = subprocess.run(  # noqa: S603  arguments of our own
            command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"pip could not download the broker's packages within {DOWNLOAD_TIMEOUT_S} s") from error
    if pip.returncode:
        tail = "\n".join(pip.stderr.strip().splitlines()[-LOG_TAIL:])
        raise ClusterError(f"pip could not download the broker's packages:\n{tail}")
    return destination
