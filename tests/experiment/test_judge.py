from pathlib import Path

import pytest

from harness.contracts.registry import Kind, names
from harness.experiment.judge import checks_of, not_judged
from tests.simulation.scenarios import scenario

KAFKA = scenario(system="kafka:3.9.1", driver="process")


def test_a_run_is_judged_by_the_checks_of_which_its_system_leaves_evidence() -> None:
    assert checks_of(scenario()) == []  # all
    asked = KAFKA.model_copy(update={"checks": ["I24", "I14"]})
    assert checks_of(asked) == ["I14"]


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        pytest.param("I24", "kafka:3.9.1 tells nothing of fetch_resp", id="no such lines"),
        pytest.param("I29", "kafka:3.9.1 tells nothing of ctl_recv.live_brokers", id="lines without a field"),
        pytest.param("I14", None, id="lines without a field that it does not ask about"),
        pytest.param("I10", None, id="a log that tells of no compaction where nothing is compacted"),
    ],
)
def test_a_check_is_not_judged_where_the_system_says_nothing_of_what_it_asks_about(
    tmp_path: Path, check: str, reason: str | None
) -> None:
    answers = {answer.check: answer.reason for answer in not_judged(KAFKA)}
    assert answers.get(check) == reason


@pytest.mark.parametrize(
    ("system", "judged"),
    [
        pytest.param("kafka:0.10.2.2", 27, id="the oldest"),
        pytest.param("kafka:3.3.2", 27, id="one that words its roles otherwise"),
        pytest.param("kafka:3.9.1", 38, id="the last with ZooKeeper"),
        pytest.param("kafka:4.4.0", 36, id="one without"),
    ],
)
def test_how_many_promises_are_judged_of_a_release_is_what_the_documents_say(
    tmp_path: Path, system: str, judged: int
) -> None:
    declaration = scenario(system=system, driver="process")
    assert len(names(Kind.CHECK)) - len(not_judged(declaration)) == judged
    documents = [Path("README.md"), Path("docs/scenarios.md"), Path("CHANGELOG.md")]
    assert all(str(judged) in each.read_text(encoding="utf-8") for each in documents[: 2 if judged == 27 else 3])


@pytest.mark.parametrize("check", [pytest.param(name, id=name) for name in ("I2", "I4", "I18", "I20")])
def test_what_zookeeper_tells_is_enough_for_some_promises_on_every_release(tmp_path: Path, check: str) -> None:
    declaration = scenario(system="kafka:0.10.2.2", driver="process")
    assert check not in {answer.check for answer in not_judged(declaration)}


@pytest.mark.parametrize(
    ("minutes", "reason"),
    [
        pytest.param("60", "kafka:3.9.1 tells nothing of offset_retired", id="one may in the time of a run"),
        pytest.param("61", None, id="none can in that time"),
    ],
)
def test_commits_are_judged_where_none_can_expire_of_which_the_system_says_nothing(
    tmp_path: Path, minutes: str, reason: str | None
) -> None:
    declaration = scenario(
        system="kafka:3.9.1", driver="process", cluster={"properties": {"offsets.retention.minutes": minutes}}
    )
    answers = {answer.check: answer.reason for answer in not_judged(declaration)}
    assert (answers.get("I16"), answers.get("offset-regression")) == (reason, reason)
