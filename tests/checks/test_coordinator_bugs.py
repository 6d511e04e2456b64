"""A check finds each planted bug in a coordinator's log, and nothing in a log without one."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from harness.analysis.facts.build import built_facts
from harness.analysis.sources.reading import read
from harness.contracts import registry
from harness.contracts.checks import handed_to
from harness.simulation.loop import SimulatedLoop
from harness.store.folder import RunFolder
from tests.analysis.run_folders import RunWriter
from tests.broker.coordinator.planted_bugs import BUGS, played
from tests.checks.answers import STRICT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOLD = {name: bug for name, bug in BUGS.items() if bug.found_by}


@pytest.fixture(scope="module")
def findings(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The checks that find something, by the planted bug; by `right <bug>` without it."""
    root = tmp_path_factory.mktemp("runs")
    folders = []
    with asyncio.Runner(loop_factory=SimulatedLoop) as virtual:
        for name, bug in TOLD.items():
            for run, planted in ((f"right {name}", ()), (name, (name,))):
                _, events = virtual.run(played(bug.play, *planted))
                writer = RunWriter(RunFolder(root / run))
                for event in events:
                    writer.event(1, event)
                writer.close()
                folders.append(writer.folder)
    checks = [registry.check(name) for name in sorted({bug.found_by for bug in TOLD.values()})]
    results: dict[str, set[str]] = {folder.root.name: set() for folder in folders}
    with built_facts(read(spark, folders, root / "rows"), root / "facts") as facts:
        for check in checks:
            for row in check.findings(handed_to(check, facts), STRICT).collect():
                results[row.run_id].add(check.name)
    return results


@pytest.mark.parametrize("bug", TOLD)
def test_a_coordinator_with_a_bug_is_found_out(bug: str, findings: dict[str, set[str]]) -> None:
    assert (findings[bug], findings[f"right {bug}"]) == ({TOLD[bug].found_by}, set())
