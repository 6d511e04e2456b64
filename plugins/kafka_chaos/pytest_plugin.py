"""What pytest gets from this project: the fixture `kafka_cluster`, and the options of the conformance suite.

`kafka_cluster` is one cluster for all tests of a session; `@pytest.mark.kafka_cluster(system="kafka:4.4.0")` asks for
another one. Each test has a prefix of its own for topics and groups. After it, whatever was disturbed is healed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from kafka_chaos.testing_cluster import Clusters, KafkaCluster

MARK = "kafka_cluster"
TAKEN = ("system", "brokers", "properties", "needs")
"""What the mark says, by name."""
SHOWN = 200
"""State changes that the output of a failed test has, the last ones."""
USED = pytest.StashKey["KafkaCluster"]()
"""The cluster of a test, also where a fixture that uses it fails."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; `kafka_chaos.conformance` says what each means."""
    group = parser.getgroup("kafka-chaos", "Kafka chaos harness")
    group.addoption(
        "--chaos-plugins", action="append", default=[], metavar="NAME", help="a distribution or folder, or fault:nap"
    )
    group.addoption(
        "--chaos-fault", action="append", default=[], metavar="NAME=YAML", help="target, duration or parameters"
    )
    group.addoption("--chaos-driver", default="", help="on which faults run")
    group.addoption("--chaos-system", default="python", help="what drivers start, and what kafka_cluster is")
    parser.addini("chaos_plugins", "plugins that the conformance suite tests", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and ignore two warnings of kafka-python, which an application cannot mend."""
    config.addinivalue_line("markers", f"{MARK}({', '.join(TAKEN)}): what the fixture kafka_cluster of this test is")
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Use the folder of plugins whose `tests/` has the module, as `chaos new` writes it."""
    if module_path.parent.name == "tests":
        from harness.system.plugins import use_folders

        use_folders([module_path.parents[1]])


@pytest.fixture(scope="session")
def _kafka_clusters() -> Iterator[Clusters]:
    from kafka_chaos.testing_cluster import Clusters

    with Clusters() as clusters:
        yield clusters


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest, _kafka_clusters: Clusters) -> Iterator[KafkaCluster]:
    """Three brokers that speak Kafka's protocol, with a prefix for this test; healed when it ends."""
    from harness.errors import HarnessError

    wanted = {"system": request.config.getoption("chaos_system")} | _marked(request.node)
    try:
        cluster = _kafka_clusters.of_test(request.node.name, wanted)
    except HarnessError as error:
        pytest.fail(f"no cluster: {error}", pytrace=False)
    request.node.stash[USED] = cluster
    yield cluster
    cluster.heal()


def _marked(test: pytest.Item) -> dict[str, Any]:
    mark = test.get_closest_marker(MARK)
    if mark is None:
        return {}
    if mark.args or mark.kwargs.keys() - set(TAKEN):
        given = ", ".join([*map(repr, mark.args), *mark.kwargs])
        pytest.fail(f"the mark {MARK} takes {', '.join(f'{name}=' for name in TAKEN)}, not {given}", pytrace=False)
    return dict(mark.kwargs)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the brokers did beside the output of a test that failed."""
    report = yield
    cluster = item.stash.get(USED, None)
    if report.failed and cluster is not None:
        report.sections.append(("state changes of kafka_cluster", _changes_of(cluster)))
    return report


def _changes_of(cluster: KafkaCluster) -> str:
    """Return what the brokers did, or why that is unknown; the test's own failure is always shown."""
    from harness.errors import HarnessError

    try:
        return cluster.describe_changes(SHOWN)
    except (HarnessError, OSError) as error:
        return f"not to be had: {error}"
