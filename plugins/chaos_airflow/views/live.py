"""How is a run doing that goes on? What its page shows again and again."""

from functools import lru_cache
from pathlib import Path
from threading import Lock

from chaos_airflow import settings
from harness.report.live import Situation, Watch
from harness.store.folder import RunFolder

WATCHED = 16
"""Runs that are remembered between two looks, so that each look reads only what is new."""


def situation(run: str) -> Situation:
    """Return how a run is doing; nothing where runs lie in an object storage, which has them when they are over."""
    if settings.is_remote():
        return Situation(phase="", rows=[])
    watch, lock = _watched(settings.local_runs_folder() / run)
    with lock:
        return watch.look()


@lru_cache(maxsize=WATCHED)
def _watched(root: Path) -> tuple[Watch, Lock]:
    return Watch(RunFolder(root)), Lock()
