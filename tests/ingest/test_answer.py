"""What an answer is worth: promises without evidence are named and do not count, everything else does."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.ingest.answer import HistoryResult, all_answers, divided, doubted, needed_for, settings_in_words
from harness.ingest.settings import AllowedSettings
from harness.store.result import CheckResult, Remark
from harness.verdict import ExitCode, SystemVerdict
from tests.verdicts import FAIL, PASS, UNKNOWN


def needing(name: str, *needs: str) -> Any:
    return SimpleNamespace(name=name, promise=f"promise of {name}", needs=needs)


def answered(check: str, verdict: SystemVerdict, **more: Any) -> CheckResult:
    return CheckResult(check=check, promise="p", verdict=verdict, **more)


def result_of(*checks: CheckResult, damaged: bool = False) -> HistoryResult:
    remarks = [Remark(text="a hole", forbids_pass=True)] if damaged else []
    return HistoryResult(
        name="h", evidence={}, settings=[], checks=list(checks), unjudged=[], remarks=remarks, counts={}
    )


@pytest.mark.parametrize(
    ("result", "code"),
    [
        pytest.param(result_of(answered("a", PASS)), ExitCode.HELD, id="all that was judged holds"),
        pytest.param(result_of(answered("a", PASS), answered("b", FAIL)), ExitCode.VIOLATED, id="one is broken"),
        pytest.param(result_of(answered("a", PASS), answered("b", UNKNOWN)), ExitCode.INCONCLUSIVE, id="no answer"),
        pytest.param(result_of(answered("a", PASS), damaged=True), ExitCode.INCONCLUSIVE, id="damaged evidence"),
        pytest.param(result_of(answered("a", FAIL), damaged=True), ExitCode.VIOLATED, id="broken all the same"),
        pytest.param(result_of(), ExitCode.INCONCLUSIVE, id="nothing judged is no pass"),
    ],
)
def test_what_a_history_comes_to(result: HistoryResult, code: ExitCode) -> None:
    assert result.exit_code is code
    assert result.as_json()["exit_code"] == code


def test_a_promise_without_evidence_is_named_with_what_it_takes() -> None:
    checks = [needing("held", "sends"), needing("unproven", "sends", "partition_states", "topics", "leader_epochs")]
    counts = {"sends": 3, "partition_states": 0, "topics": 0, "leader_epochs": 0}
    answers = [answered("held", PASS), answered("unproven", UNKNOWN)]
    judged, (unjudged,) = divided(checks, answers, counts, {"operations": ["ops.jsonl"]})
    assert judged == answers[:1]
    assert (unjudged.check, unjudged.facts) == ("unproven", ["partition_states", "topics", "leader_epochs"])
    (needed,) = unjudged.needed
    assert needed.startswith("--zookeeper: `/brokers/topics/…/state`, `/brokers/topics/…`")
    shown = result_of(*judged).model_copy(update={"unjudged": [unjudged]})
    assert all_answers(shown)[1].reason == f"no evidence; it takes {needed}"


@pytest.mark.parametrize(
    ("facts", "evidence", "needed"),
    [
        pytest.param(["high_watermarks"], {}, ["--state-changes: `hw`"], id="one kind"),
        pytest.param(
            ["leader_isrs", "appends"], {}, ["--state-changes: `hw`, `append`"], id="lines of a kind together"
        ),
        pytest.param(
            ["registrations"],
            {},
            ["--zookeeper: `/brokers/ids/…`, or --state-changes: `broker_registered`"],
            id="one or the other",
        ),
        pytest.param(
            ["registrations", "appends"],
            {},
            ["--state-changes: `broker_registered`, `append`"],
            id="what is needed anyway",
        ),
        pytest.param(
            ["end_offsets"],
            {"operations": ["x"]},
            ["--operations: kind `end_offset` (has none)"],
            id="given without them",
        ),
    ],
)
def test_evidence_that_is_needed_is_said_in_the_words_of_the_options(
    facts: list[str], evidence: dict[str, list[str]], needed: list[str]
) -> None:
    assert needed_for(facts, evidence) == needed


def test_nobody_is_accused_of_what_an_unseen_election_may_excuse() -> None:
    lost, phantom = (answered("lost-write", FAIL, violations=2, reason="lost a"), answered("phantom", FAIL))
    allowed = AllowedSettings(unclean_leader_election=True)
    doubtful, sure = doubted([lost, phantom], allowed, {"leader_epochs": 0})
    assert (doubtful.verdict, sure) == (UNKNOWN, phantom)
    assert doubtful.reason.endswith("no leader epochs are known: 2 times, first: lost a")
    assert doubted([lost], allowed, {"leader_epochs": 4}) == [lost]
    assert doubted([lost], AllowedSettings(), {"leader_epochs": 0}) == [lost]


def test_every_setting_is_said_and_whether_it_is_assumed() -> None:
    answers = {
        each.name: (each.value, each.assumed) for each in settings_in_words(AllowedSettings(acks=1, idempotence=False))
    }
    assert answers == {
        "acks": ("1", False),
        "min_insync_replicas": ("1", True),
        "unclean_leader_election": ("false", True),
        "idempotence": ("false", False),
        "power_loss": ("false", True),
        "read_from_start": ("false", True),
    }
