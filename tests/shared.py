"""What the tests of many modules share: one worker has all of them, and it ends after the last one."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

from harness.system.engine import by_jvm
from tests import sampling

SPARK = "apache_spark"
TOGETHER = {
    re.compile(rf"\b{SPARK}\b|\[pytest\.mark\.spark, pytest\.mark\.jvm\b"): SPARK,
    re.compile(r"\bairflow_server: Airflow\b"): "airflow",
    re.compile(r"\bcluster: dict\b"): "cluster",
}
"""What the text of a module says that shares Apache Spark, an Airflow or a cluster: one worker starts it.

Other modules that judge share nothing, as Sail starts in 20 ms; with CHAOS_ENGINE=spark they share Apache Spark too.
"""
JUDGES = re.compile(r"\bmark\.spark\b|\btable_of\b")
OF_FACTS = re.compile(r"\bmark\.spark\b(?!, pytest\.mark\.(jvm|whole)\b)")
AGAIN = 4
"""Modules whose tests Apache Spark answers again in the slow tier."""
ROOT = sampling.ROOT
RUNNING = pytest.StashKey[dict[str, ExitStack]]()


def group_of(nodeid: str) -> str:
    """Return the group of a test's module; by its text, as the scheduler has imported no test."""
    return _group_of(nodeid.partition("::")[0])


@cache
def again_by_spark() -> frozenset[Path]:
    """Return the modules, drawn by the commit, whose tests Apache Spark answers again in the slow tier."""
    paths = sorted(ROOT.glob("tests/**/test_*.py"))
    judging = [path for path in paths if OF_FACTS.search(path.read_text(encoding="utf-8"))]
    return frozenset(sampling.sampled(judging, AGAIN))


@cache
def _group_of(module: str) -> str:
    text = Path(ROOT, module).read_text(encoding="utf-8")
    if ROOT / module in again_by_spark() or (by_jvm() and JUDGES.search(text)):
        return SPARK
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
    shares = group_of(item.nodeid)
    running = item.config.stash.get(RUNNING, {}).get(shares)
    is_last = nextitem is None or group_of(nextitem.nodeid) != shares
    if running is not None and is_last and hasattr(item.config, "workerinput"):
        running.close()
