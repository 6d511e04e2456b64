"""How is a run doing that goes on? What its page shows again and again."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from chaos_airflow import settings
from harness.report.live.chart import Chart, chart_of
from harness.report.live.watch import Situation, Watch
from harness.store.folder import RunFolder

WATCHED = 16
"""Runs that are remembered between two looks, so that each look reads only what is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """A run that goes on."""

    situation: Situation
    chart: Chart | None
    """The run so far; None before the load has lasted a second."""


def now_of(run: str) -> Now:
    """Return how a run is doing; nothing where runs lie in an object storage, which has them when they are over."""
    if settings.is_remote():
        return Now(situation=Situation(phase="", rows=[]), chart=None)
    watch, lock = _watched(settings.local_runs_folder() / run)
    with lock:
        situation, past = watch.look(), watch.past()
    return Now(situation=situation, chart=chart_of(past) if past else None)


@lru_cache(maxsize=WATCHED)
def _watched(root: Path) -> tuple[Watch, Lock]:
    return Watch(RunFolder(root)), Lock()
