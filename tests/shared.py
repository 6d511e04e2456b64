"""What the tests of many modules share: one worker has all of them, and it ends after the last one."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

WHOLE = "spark whole"
TOGETHER = {
    re.compile(r"^tests/(analysis|experiment|ingest|simulation)/(?=(?s:.*)mark\.whole\b)(?s:.*)mark\.spark\b"): WHOLE,
    re.compile(r"mark\.spark\b|\btable_of\b"): "spark",
    re.compile(r"\bairflow_server: Airflow\b"): "airflow",
    re.compile(r"\bcluster: dict\b"): "cluster",
}
"""What a module says, after its path, that shares a Spark session, an Airflow or a cluster: one worker starts it.

Of a group's name the first word is what it shares. Whole histories that are judged, and nothing more, have a session of
their own: all others would wait for one worker, and any engine can judge them, while sweeps take Apache Spark.
"""
ROOT = Path(__file__).resolve().parents[1]
RUNNING = pytest.StashKey[dict[str, ExitStack]]()


def group_of(nodeid: str) -> str:
    """Return the group of a test's module; by its text, as the scheduler has imported no test."""
    return _group_of(nodeid.partition("::")[0])


def shared_by(nodeid: str) -> str:
    """Return what a test's module shares with its group."""
    return group_of(nodeid).partition(" ")[0]


@cache
def _group_of(module: str) -> str:
    text = f"{module}\n{Path(ROOT, module).read_text(encoding='utf-8')}"
    return next((group for pattern, group in TOGETHER.items() if pattern.search(text)), module)


@contextmanager
def shared(config: pytest.Config, what: str) -> Iterator[ExitStack]:
    """Yield what a session's fixture enters; it ends with the last module that shares it, or with the session."""
    with ExitStack() as running:
        config.stash.setdefault(RUNNING, {})[what] = running
        yield running


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End unused servers: an idle Airflow takes a tenth of a core, an idle JVM gigabytes.

    A worker of pytest-xdist has the modules of a group one after the other; in a single process others come between.
    """
    shares = shared_by(item.nodeid)
    running = item.config.stash.get(RUNNING, {}).get(shares)
    is_last = nextitem is None or shared_by(nextitem.nodeid) != shares
    if running is not None and is_last and hasattr(item.config, "workerinput"):
        running.close()
