from pathlib import Path

import pytest

from harness.contracts.registry import Kind, names
from harness.experiment.judge import checks_of, not_judged
from harness.store.folder import RunFolder
from harness.store.version import GROUPED, VERSION, WATCHED
from tests.simulation.scenarios import scenario

KAFKA = scenario(system="kafka:3.9.1", driver="process")
OF_GROUPS = {"i33", "i34", "i35", "i36", "i37", "i38", "i39"}
NEWER = {"i26", "i28", "i29", "i30", "i31", "i32", "i40", *OF_GROUPS}


@pytest.mark.parametrize(
    ("version", "named", "left_out"),
    [
        pytest.param(VERSION, [], None, id="a run of today is judged by all"),
        pytest.param(WATCHED - 1, [], NEWER, id="a run in which nobody looked for life is judged as it was then"),
        pytest.param(GROUPED - 1, [], OF_GROUPS, id="one in which groups had no members is not asked about them"),
        pytest.param(WATCHED - 1, ["I31"], None, id="what a scenario asks for is tried"),
    ],
)
def test_which_checks_judge_a_run(tmp_path: Path, version: int, named: list[str], left_out: set[str] | None) -> None:
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {version}}}', encoding="utf-8")
    chosen = checks_of(folder, scenario(checks=named))
    assert chosen == named if left_out is None else {*names(Kind.CHECK)} - {*chosen} == left_out


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
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {VERSION}}}', encoding="utf-8")
    answers = {answer.check: answer.reason for answer in not_judged(folder, KAFKA)}
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
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {VERSION}}}', encoding="utf-8")
    declaration = scenario(system=system, driver="process")
    assert len(names(Kind.CHECK)) - len(not_judged(folder, declaration)) == judged
    documents = [Path("README.md"), Path("docs/scenarios.md"), Path("CHANGELOG.md")]
    assert all(str(judged) in each.read_text(encoding="utf-8") for each in documents[: 2 if judged == 27 else 3])


@pytest.mark.parametrize("check", [pytest.param(name, id=name) for name in ("I2", "I4", "I18", "I20")])
def test_what_zookeeper_tells_is_enough_for_some_promises_on_every_release(tmp_path: Path, check: str) -> None:
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {VERSION}}}', encoding="utf-8")
    declaration = scenario(system="kafka:0.10.2.2", driver="process")
    assert check not in {answer.check for answer in not_judged(folder, declaration)}


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
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {VERSION}}}', encoding="utf-8")
    declaration = scenario(
        system="kafka:3.9.1", driver="process", cluster={"properties": {"offsets.retention.minutes": minutes}}
    )
    answers = {answer.check: answer.reason for answer in not_judged(folder, declaration)}
    assert (answers.get("I16"), answers.get("offset-regression")) == (reason, reason)
