import re
import subprocess
import sys

import pytest

from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.errors import PluginError
from harness.scenario.catalogue import catalogue
from harness.sweep.summary import finding_key

HEAVY = ("pyspark", "great_expectations", "confluent_kafka", "kazoo", "docker", "airflow", "plotly", "kafka")


def test_plugins_are_found_by_their_file_names() -> None:
    assert "expire-session" in registry.names(Kind.FAULT)
    assert registry.names(Kind.WORKLOAD) == [
        "administer",
        "consume-group",
        "exactly-once",
        "play-scripts",
        "produce-consume",
        "transact",
    ]
    assert all(listed.summary for kind in (Kind.FAULT, Kind.WORKLOAD, Kind.CHECK) for listed in registry.plugins(kind))


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        PluginError, match=r"unknown fault 'kil' \(did you mean kill\?\); known: add-partitions, bounce, "
    ):
        registry.fault("kil")
    with pytest.raises(PluginError, match="unknown driver 'vm'"):
        registry.driver_class("vm")


@pytest.mark.parametrize(
    ("driver", "refused"),
    [
        ("process", ["custom", "drop-packets"]),
        (
            "simulated",
            [
                "cpu-limit",
                "custom",
                "drop-packets",
                "file-limit",
                "hostile-client",
                "memory-limit",
                "slow-sync",
                "upgrade",
            ],
        ),
        ("docker", ["custom", "upgrade"]),
    ],
)
def test_a_driver_refuses_what_it_has_no_power_for(driver: str, refused: list[str]) -> None:
    able = registry.capabilities(driver)
    kinds = registry.names(Kind.FAULT)
    assert [name for name in kinds if not able >= set(registry.fault(name).requires)] == refused


@pytest.mark.parametrize("what", ["scenarios", "faults", "workloads", "checks", "drivers", "planted-bugs"])
def test_the_catalogue_has_a_sentence_for_everything(what: str) -> None:
    entries = catalogue(what)
    assert entries
    assert all(name and summary for name, summary in entries)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import harness.cli.app", id="the command line"),
        pytest.param(
            "from harness.scenario.catalogue import catalogue; catalogue('checks'); catalogue('faults')", id="a list"
        ),
        pytest.param("from harness.scenario.file import load_scenario; load_scenario('smoke')", id="a scenario"),
        pytest.param("import harness.phases", id="the phases"),
    ],
)
def test_nothing_heavy_is_imported_for(program: str) -> None:
    check = f"import sys; {program}; print([name for name in {HEAVY!r} if name in sys.modules])"
    imported = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert imported.stdout.strip() == "[]"


def test_a_check_is_shown_by_number_and_name_and_known_without_importing_it() -> None:
    checks = [registry.check(name) for name in registry.names(Kind.CHECK)]
    titles = {check.name: check.title for check in checks}
    assert titles == {name: registry.check_title(name) for name in titles}
    for name, title in titles.items():
        assert re.fullmatch(r"I\d+ [a-z]+(-[a-z]+)*" if re.match(r"I\d", name) else re.escape(name), title)
        assert title.startswith(name)
    assert len({title.rpartition(" ")[2] for title in titles.values()}) == len(titles)
    assert registry.check_title("gone") == "gone"


@pytest.mark.parametrize("text", ["I10", "i10", "leader-completeness", "I10 leader-completeness"])
def test_a_check_is_meant_by_its_number_its_name_or_both(text: str) -> None:
    assert registry.check_key(text) == "I10"
    assert finding_key(f"{text} unknown") == "I10 unknown"
