"""Where runs are read from, and the folder of this machine in which they are made.

`[kafka_chaos] runs` in Airflow's configuration (environment: `AIRFLOW__KAFKA_CHAOS__RUNS`) says it: a path, or the URL
of an object storage, with a connection's name before its bucket where it needs one: `s3://aws_default@bucket/runs`.
Without it the environment variable `CHAOS_RUNS` counts, and then `runs` beside this repository's plugins.

`[kafka_chaos] scenarios` lists the folders, as in PATH, with scenarios and suites that may be run from Airflow; without
this repository is the only one.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.sdk.configuration import conf

from harness.errors import ScenarioError

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

SECTION = "kafka_chaos"
YAML = (".yaml", ".yml")
BESIDE_PLUGINS = Path(__file__).resolve().parents[2] / "runs"


def runs_folder() -> "ObjectStoragePath":
    """Return where all runs are read from, by the API server too; finished runs are published to it.

    Raises:
        OSError: Airflow knows no such kind of URL.
    """
    from airflow.sdk import ObjectStoragePath

    first = _configured()[0]
    local = _local_path(first)
    try:
        return ObjectStoragePath(first) if local is None else ObjectStoragePath(local.as_posix(), protocol="file")
    except ValueError as error:
        raise OSError(f"{first}: {error}") from error


def local_runs_folder() -> Path:
    """Return the folder that runs are made in: the configured one, or, if that is remote, the next local one."""
    return next(local for location in _configured() if (local := _local_path(location)) is not None)


def is_remote() -> bool:
    """Return whether runs must be published before other machines can read them."""
    return _local_path(_configured()[0]) is None


def _configured() -> list[str]:
    """Return every configured path or URL, in order of precedence; never empty."""
    locations = [conf.get(SECTION, "runs", fallback=None), os.environ.get("CHAOS_RUNS"), str(BESIDE_PLUGINS)]
    return [location for location in locations if location]


def _local_path(location: str) -> Path | None:
    """Return the absolute path of a location on this machine's disk, None for a remote one."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(parts.path)
    return None if "://" in location else Path(location).expanduser().absolute()


def own_file(path: str) -> str:
    """Return a file that a user wants to run from Airflow, if it lies in a folder that is configured for it.

    Raises:
        ScenarioError: it lies elsewhere, or is no YAML file by its name; nothing of it is read, as errors quote a file.
    """
    if Path(path).suffix not in YAML:
        raise ScenarioError(f"{path}: the name of a scenario's file ends with {' or '.join(YAML)}")
    configured = conf.get(SECTION, "scenarios", fallback="")
    folders = [Path(folder).expanduser() for folder in configured.split(os.pathsep) if folder] or [
        BESIDE_PLUGINS.parent
    ]
    if not any(Path(path).resolve().is_relative_to(folder.resolve()) for folder in folders):
        allowed = ", ".join(map(str, folders))
        raise ScenarioError(f"{path}: Airflow runs scenarios only from {allowed} ([{SECTION}] scenarios)")
    return path
