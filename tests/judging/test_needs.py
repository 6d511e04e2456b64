import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.systems.system import system_named
from harness.contracts.registry import Kind, names
from harness.judging.assessment import within_holes
from harness.judging.needs import answerable
from harness.run.emits import emits_of, logged_by
from harness.run.holes import under_load
from harness.store.folder import RunFolder
from harness.store.phase_log import Quiescence
from harness.store.result import CheckResult
from tests.simulation.scenarios import scenario
from tests.verdicts import FAIL, UNKNOWN

KAFKA = scenario(system="kafka:3.9.1", driver="process")


def test_a_run_is_judged_by_the_checks_of_which_its_system_leaves_evidence() -> None:
    assert answerable(scenario()).judged == []  # all
    asked = KAFKA.model_copy(update={"checks": ["I24", "I14"]})
    assert answerable(asked).judged == ["I14"]


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        pytest.param("I24", "kafka:3.9.1 does not log fetch_resp", id="no such lines"),
        pytest.param("I29", "kafka:3.9.1 does not log ctl_recv.live_brokers", id="lines without a field"),
        pytest.param("I14", None, id="lines without a field that it does not ask about"),
        pytest.param("I10", None, id="a log without compactions where nothing is compacted"),
    ],
)
def test_a_check_is_not_judged_where_the_system_says_nothing_of_what_it_asks_about(
    tmp_path: Path, check: str, reason: str | None
) -> None:
    answers = {answer.check: answer.reason for answer in answerable(KAFKA).without_evidence}
    assert answers.get(check) == reason


@pytest.mark.parametrize(
    "check", [pytest.param("I9", id="equal replicas"), pytest.param("I10", id="acknowledged records")]
)
def test_a_compacted_topic_is_judged_of_releases_that_log_no_leaderships(check: str) -> None:
    compacted = KAFKA.topics[0].model_copy(update={"config": {"cleanup.policy": "compact"}})
    before = KAFKA.model_copy(update={"system": "kafka:3.0.2", "topics": [compacted], "checks": [check]})
    assert answerable(before).judged == [check]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, None, id="its brokers are the controllers"),
        pytest.param(
            {"separate_controllers": True}, "the logs of separate controllers are not collected", id="others are"
        ),
    ],
)
def test_leaders_of_a_quorum_are_known_by_the_logs_of_brokers(changes: dict[str, Any], reason: str | None) -> None:
    cluster = KAFKA.cluster.model_copy(update={"controllers": 3, **changes})
    declaration = KAFKA.model_copy(update={"system": "kafka:4.4.0", "cluster": cluster})
    answers = {answer.check: answer.reason for answer in answerable(declaration).without_evidence}
    assert answers.get("quorum-leader-resigns") == reason


EVERYTHING = logged_by(system_named("python"))


def without(kind: str, *fields: str) -> dict[str, list[str]]:
    """Return what brokers log without a kind of event, or without these fields of it."""
    stated = {name: list(known) for name, known in EVERYTHING.items()}
    stated[kind] = [name for name in stated[kind] if name not in fields]
    return stated if fields else {name: known for name, known in stated.items() if name != kind}


@pytest.mark.parametrize(
    ("recorded", "untried"),
    [
        pytest.param(EVERYTHING, {}, id="everything that they log today"),
        pytest.param(
            without("logs_close"),
            dict.fromkeys(["clean-stops", "log-starts", "recovery-points"], "logs_close"),
            id="no end of a life, which accuses the start after it",
        ),
        pytest.param(
            without("ctl_send", "live_brokers"),
            {"live-brokers": "ctl_send.live_brokers"},
            id="an event without a field",
        ),
        pytest.param(
            without("segment_delete"),
            dict.fromkeys(["retention", "step-by-step"], "segment_delete"),
            id="no deletions, which the model walks too",
        ),
        pytest.param({**EVERYTHING, "later": ["new"]}, {}, id="more than this version knows"),
    ],
)
def test_a_check_is_not_judged_where_the_recording_harness_logged_less_than_it_asks_about(
    recorded: Mapping[str, Sequence[str]], untried: Mapping[str, str]
) -> None:
    emits = emits_of(scenario(), recorded)
    lacking = "an earlier version of the harness recorded this run, in which python does not log {}"
    answers = answerable(scenario(), emits).without_evidence
    assert {answer.check: answer.reason for answer in answers} == {
        check: lacking.format(kind) for check, kind in untried.items()
    }
    assert set(answerable(scenario(), emits).judged or names(Kind.CHECK)) == set(names(Kind.CHECK)) - untried.keys()


STARTED = ("drive started", "collect started")
DONE = ("drive started", "drive ended", "collect started")


def log_of(folder: RunFolder, entries: Sequence[str], last: Mapping[str, Any]) -> None:
    """Write a phase log with these entries; the last one says more."""
    lines: list[dict[str, Any]] = [
        {"phase": entry.split()[0], "event": entry.split()[1], "error": ""} for entry in entries
    ]
    lines[-1] |= last
    folder.phases.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("log", "quiescence", "kinds"),
    [
        pytest.param(DONE, Quiescence(), [], id="the cluster was quiescent"),
        pytest.param(STARTED, Quiescence(), [], id="after a drive that was killed too"),
        pytest.param(DONE, Quiescence(unsettled=["they changed"]), ["replicas"], id="replicas had not caught up"),
        pytest.param(DONE, Quiescence(loaded=["client a runs"]), ["replicas", "state_changes"], id="a client went on"),
        pytest.param(DONE, None, [], id="an earlier version, whose drive ended the load"),
        pytest.param(
            STARTED, None, ["replicas", "state_changes"], id="an earlier version, whose drive was killed under load"
        ),
        pytest.param(("drive started", "drive ended"), None, [], id="nothing was collected"),
    ],
)
def test_evidence_of_several_brokers_is_compared_only_if_nothing_wrote_while_it_was_copied(
    tmp_path: Path, log: tuple[str, ...], quiescence: Quiescence | None, kinds: list[str]
) -> None:
    folder = RunFolder(tmp_path)
    entries = [*log, "collect ended"] if log[-1] == "collect started" else log
    log_of(folder, entries, {"quiescence": quiescence.model_dump()} if quiescence else {})
    holes = under_load(folder)
    assert [hole.kind for hole in holes] == kinds
    checks = [CheckResult(check=name, promise="p", verdict=FAIL, violations=1) for name in ("I10", "I29")]
    judged = {answer.check: answer.verdict for answer in within_holes(checks, holes, answerable(scenario()).evidence)}
    assert judged == {"I10": UNKNOWN if kinds else FAIL, "I29": UNKNOWN if "state_changes" in kinds else FAIL}


def test_replicas_that_were_dumped_until_collect_was_cut_off_are_not_compared(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    log_of(folder, DONE, {})
    (hole,) = under_load(folder)
    assert hole.text == "not comparable: nothing proves that they had caught up: the phase collect was cut off"


@pytest.mark.parametrize("check", [pytest.param(name, id=name) for name in ("I2", "I4", "I18", "I20")])
def test_what_zookeeper_tells_is_enough_for_some_promises_on_every_release(tmp_path: Path, check: str) -> None:
    declaration = scenario(system="kafka:0.10.2.2", driver="process")
    assert check not in {answer.check for answer in answerable(declaration).without_evidence}


@pytest.mark.parametrize(
    ("minutes", "reason"),
    [
        pytest.param("60", "kafka:3.9.1 does not log offset_retired", id="one may in the time of a run"),
        pytest.param("61", None, id="none can in that time"),
    ],
)
def test_commits_are_judged_where_none_can_expire_of_which_the_system_says_nothing(
    tmp_path: Path, minutes: str, reason: str | None
) -> None:
    declaration = scenario(
        system="kafka:3.9.1", driver="process", cluster={"properties": {"offsets.retention.minutes": minutes}}
    )
    answers = {answer.check: answer.reason for answer in answerable(declaration).without_evidence}
    assert (answers.get("I16"), answers.get("offset-regression")) == (reason, reason)
