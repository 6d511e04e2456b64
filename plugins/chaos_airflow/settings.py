"""Where the runs are: the place that is configured, and the folder on this machine that runs are made in.

`[kafka_chaos] runs` in Airflow's configuration (environment: `AIRFLOW__KAFKA_CHAOS__RUNS`) says it: a path, or the URL
of an object storage, with a connection's name before its bucket where it needs one: `s3://aws_default@bucket/runs`.
Without it the environment variable `CHAOS_RUNS` counts, and then `runs` beside this repository's plugins.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

SECTION = "kafka_chaos"
BESIDE_PLUGINS = Path(__file__).resolve().parents[2] / "runs"


def runs_folder() -> "ObjectStoragePath":
    """Return the place all runs are read from, by the API server too; finished runs are published to it.

    Raises:
        OSError: there are no such places.
    """
    from airflow.sdk import ObjectStoragePath

    first = _configured()[0]
    local = _local_path(first)
    try:
        return ObjectStoragePath(first) if local is None else ObjectStoragePath(local.as_posix(), protocol="file")
    except ValueError as error:
        raise OSError(f"{first}: {error}") from error


def local_runs_folder() -> Path:
    """Return the folder that runs are made in: the configured one, or, if that is remote, the next that is local."""
    return next(local for place in _configured() if (local := _local_path(place)) is not None)


def is_remote() -> bool:
    """Return whether runs must be published before others than this machine can see them."""
    return _local_path(_configured()[0]) is None


def _configured() -> list[str]:
    """Return every place that is named, the one that counts first; never empty."""
    named = [conf.get(SECTION, "runs", fallback=None), os.environ.get("CHAOS_RUNS"), str(BESIDE_PLUGINS)]
    return [place for place in named if place]


def _local_path(place: str) -> Path | None:
    """Return a place on this machine's disk as an absolute path, None for a remote one."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(parts.path)
    return None if "://" in place else Path(place).expanduser().absolute()
