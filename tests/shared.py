"""What the tests of many modules share: one worker has all of them, and it ends after the last one."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

TOGETHER = {
    re.compile(r"mark\.spark\b|\btable_of\b"): "spark",
    re.compile(r"\bairflow_server: Airflow\b"): "airflow",
    re.compile(r"\bcluster: dict\b"): "cluster",
}
"""What a module says that shares a Spark session, an Airflow or a cluster: of parallel workers only one starts it."""
ROOT = Path(__file__).resolve().parents[1]
RUNNING = pytest.StashKey[dict[str, ExitStack]]()


def group_of(nodeid: str) -> str:
    """Return whom a test's module shares with; by its text, as who divides the work has imported no test."""
    return _group_of(nodeid.partition("::")[0])


@cache
def _group_of(module: str) -> str:
    text = Path(ROOT, module).read_text(encoding="utf-8")
    return next((group for pattern, group in TOGETHER.items() if pattern.search(text)), module)


@contextmanager
def shared(config: pytest.Config, group: str) -> Iterator[ExitStack]:
    """Yield what a session's fixture enters; it ends with the last module of the group, or with the session."""
    with ExitStack() as running:
        config.stash.setdefault(RUNNING, {})[group] = running
        yield running


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what nobody uses any more: an idle Airflow takes a tenth of a core, an idle JVM gigabytes.

    A worker of pytest-xdist has the modules of a group one after the other; in a single process others come between.
    """
    group = group_of(item.nodeid)
    running = item.config.stash.get(RUNNING, {}).get(group)
    is_last = nextitem is None or group_of(nextitem.nodeid) != group
    if running is not None and is_last and hasattr(item.config, "workerinput"):
        running.close()
