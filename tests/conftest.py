"""What tests of several rooms share."""

import gc
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from harness.system.engine import ENGINE_VARIABLE, REMOTE_VARIABLE, Engine, by_jvm
from tests.airflow_server import airflow_server, pytest_runtest_makereport
from tests.cluster.containers.engine_proxy import EngineProxy
from tests.durations import pytest_terminal_summary
from tests.sampling import pytest_report_header, waiting
from tests.shared import JUDGES, ROOT, SPARK, again_by_spark, group_of, pytest_runtest_teardown, shared

__all__ = [
    "airflow_server",
    "pytest_report_header",
    "pytest_runtest_makereport",
    "pytest_runtest_teardown",
    "pytest_terminal_summary",
]

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # no verdict depends on how fast the machine is

_airflow_home = tempfile.TemporaryDirectory(prefix="airflow-home-")
os.environ["AIRFLOW_HOME"] = _airflow_home.name  # the first import of Airflow writes its configuration there

if not os.environ.get(REMOTE_VARIABLE):
    os.environ.setdefault(ENGINE_VARIABLE, Engine.SAIL)  # it takes a fifth of the CPU time of Apache Spark

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's job in the background, and so in all its children
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.cluster.containers.engine import Engine as DockerEngine


LONG = (
    SPARK,
    "airflow",
    "tests/integration/test_tour.py",
    "tests/sweep/test_standalone_master.py",
    "tests/dags/test_chaos_simulate.py",
    "tests/integration/test_trouble.py",
    "cluster",
    "tests/dags/test_chaos_smoke.py",
    "tests/integration/test_scenarios.py",
    "tests/dags/test_chaos_nightly.py",
    "tests/cluster/test_faults.py",
    "tests/cluster/test_conformance.py",
    "tests/integration/test_docker.py",
    "tests/chaos_airflow/test_roles.py",
    "tests/simulation/test_runs.py",
    "tests/dags/test_chaos_long_tests.py",
    "tests/ui/test_report.py",
    "tests/cluster/containers/test_driver.py",
    "tests/simulation/test_determinism.py",
    "tests/system/test_extras.py",
)
"""Modules and groups that take a minute or more, the longest first: begun last, each would be waited for alone."""
SLOW = {"airflow", "browser", "cluster", "docker", "jvm", "whole"}
"""Marks of what `make test` leaves to `make test-all`."""
FIXTURES = {
    SPARK: "jvm",
    "airflow": "airflow",
    "airflow_server": "airflow",
    "docker_images": "docker",
    "engine_proxy": "docker",
}
"""Fixtures that mark the tests that use them."""
SAYS_SLOW = re.compile(rf"\bmark\.({'|'.join(sorted(SLOW))})\b|\b({'|'.join(sorted(FIXTURES))})\b")
"""What the text of a module has that marks a test as slow."""
ALL_SLOW = re.compile(
    rf"\A(?!(?s:.*)\bmark\.smoke\b)(?s:.*)^pytestmark = .*\bmark\.({'|'.join(sorted(SLOW))})\b", re.MULTILINE
)
"""What it has that marks all of its tests as slow."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect for a tier no module without a test of it: each worker imports all that it collects."""
    is_module = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    if is_module and is_slow_tier(config):
        return None if says(SAYS_SLOW, collection_path) or is_judged_again(collection_path, config) else True
    return True if is_module and config.option.markexpr == "fast" and says(ALL_SLOW, collection_path) else None


def is_slow_tier(config: pytest.Config) -> bool:
    """Return whether the slow tests of all modules are run."""
    return bool(config.option.markexpr.startswith("slow"))


def is_judged_again(module: Path, config: pytest.Config) -> bool:
    """Return whether Apache Spark answers the fast tests of a module too, in the slow tier."""
    return is_slow_tier(config) and module in again_by_spark()


def says(pattern: re.Pattern[str], module: Path) -> bool:
    """Return whether the text of a module has this."""
    return bool(pattern.search(module.read_text(encoding="utf-8")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put every test into one of two tiers, `fast` and `slow`.

    A whole tier leaves out what another commit draws; named modules or tests are run.
    """
    tiers: dict[str, list[pytest.Item]] = {"fast": [], "slow": []}
    for item in items:
        for fixture in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(FIXTURES[fixture])
        marks = {mark.name for mark in item.iter_markers()}
        module = ROOT / item.nodeid.partition("::")[0]
        if "spark" in marks and is_judged_again(module, config):
            item.add_marker("jvm")
            marks.add("jvm")
        if "spark" in getattr(item, "fixturenames", ()) and not ("spark" in marks and says(JUDGES, module)):
            raise pytest.UsageError(f"{item.nodeid} uses the Spark session: its module must say so with a mark")
        is_slow = bool(marks & SLOW) and "smoke" not in marks
        if is_slow and not (says(SAYS_SLOW, module) or is_judged_again(module, config)):
            raise pytest.UsageError(f"{item.nodeid} is slow: its module must say so with a mark")
        tier = "slow" if is_slow else "fast"
        item.add_marker(tier)
        tiers[tier].append(item)
    names_tests = any("::" in argument for argument in config.args)
    if not names_tests and (left_out := waiting(tiers.get(config.option.markexpr, []))):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what all tests have imported out of every later garbage collection."""
    gc.collect()
    gc.freeze()


class ByModule(LoadScopeScheduling):
    """Gives each worker whole modules, because what a module's tests share is made once."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = next((scope for scope in LONG if scope in self.workqueue), None)
        if longest:
            self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByModule:
    """Let parallel workers take whole modules; `--dist loadgroup` of pytest-xdist 3.8 knows no groups in pytest 9.2."""
    return ByModule(config, log)


@pytest.fixture(autouse=True)
def _apache_spark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests marked `jvm` are about Apache Spark itself, whatever engine judges elsewhere."""
    if request.node.get_closest_marker("jvm"):
        monkeypatch.setenv(ENGINE_VARIABLE, Engine.SPARK)


@pytest.fixture(scope="session")
def apache_spark(pytestconfig: pytest.Config) -> "Iterator[SparkSession]":
    """Apache Spark, one for all tests that need it and not another engine."""
    from harness.analysis.engine.session import CONF_VARIABLE, spark_session, tuned

    with shared(pytestconfig, SPARK) as running:
        running.callback(gc.collect)  # objects that call the JVM when they are collected cannot do so later
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(CONF_VARIABLE, "spark.driver.memory=4g")  # with 2 GB a fifth of its time is garbage
            session = running.enter_context(spark_session())
        running.enter_context(tuned(session, 0))
        yield session


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    """The engine that judges: Sail or what CHAOS_ENGINE names; Apache Spark where it is marked or drawn."""
    if by_jvm() or request.node.get_closest_marker("jvm") or is_judged_again(request.path, request.config):
        yield request.getfixturevalue(SPARK)
        return
    from harness.analysis.engine.session import spark_session, tuned

    with spark_session(anywhere=True) as session, tuned(session, 0):
        yield session
        gc.collect()  # frames release on the server what is stored of them
    gc.freeze()  # what is left is mostly modules, which the next collections need not scan


@pytest.fixture(scope="session")
def docker_images() -> "Iterator[DockerEngine]":
    """A Docker engine with the images of this checkout, built if need be; without an engine the test is skipped."""
    from harness.cluster.containers.building import build
    from harness.cluster.containers.engine import Engine as DockerEngine
    from harness.cluster.containers.engine import EngineUnavailable

    try:
        engine = DockerEngine.connect()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    with engine:
        build(engine, BuildInSilence())
        yield engine


@pytest.fixture
def engine_proxy(docker_images: "DockerEngine") -> Iterator[EngineProxy]:
    """A way to the engine that a test may close; all that is started meanwhile goes this way."""
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as short,  # a socket's path has room for 108 bytes
        pytest.MonkeyPatch.context() as environment,  # of its own: what began before this fixture ends without it
    ):
        proxy = EngineProxy(Path(short, "engine.sock"))
        environment.setenv("DOCKER_HOST", proxy.url)
        yield proxy
        proxy.close()


class BuildInSilence:
    """A build without progress output."""

    def started(self, step: str, doing: str) -> None: ...

    def line(self, text: str) -> None: ...

    def finished(self, step: str, came_to: str) -> None: ...
