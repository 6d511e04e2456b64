"""What an answer is worth: promises without evidence are named and do not count, everything else does."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.analysis.judge import Judgement
from harness.analysis.tables.schemas import TABLES
from harness.contracts import registry
from harness.ingest.answer import (
    HistoryResult,
    all_answers,
    described_settings,
    divided,
    doubted,
    needed_for,
    undecided,
)
from harness.ingest.settings import AllowedSettings
from harness.store.result import CheckResult, Remark
from harness.verdict import ExitCode, SystemVerdict
from tests.verdicts import FAIL, PASS, UNKNOWN


def needing(name: str, *needs: str) -> Any:
    return SimpleNamespace(name=name, promise=f"promise of {name}", needs=needs, about=None)


def judged(*answers: CheckResult, counts: dict[str, int], **more: Any) -> Judgement:
    return Judgement(run_id="h", checks=[*answers], remarks=[], counts=counts, **more)


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
    given = {"operations": ["ops.jsonl"]}
    of_evidence, (unjudged,) = divided(checks, judged(*answers, counts=counts), given)
    assert of_evidence == answers[:1]
    assert (unjudged.check, unjudged.facts) == ("unproven", ["partition_states", "topics", "leader_epochs"])
    (needed,) = unjudged.needed
    assert needed.startswith("--zookeeper: `/brokers/topics/…/state`, `/brokers/topics/…`")
    shown = result_of(*of_evidence).model_copy(update={"unjudged": [unjudged]})
    assert all_answers(shown)[1].reason == f"no evidence; it needs {needed}"


def test_what_was_not_seen_in_evidence_that_was_given_is_unknown_with_its_reason() -> None:
    checks, counts = (
        [needing("reads", "sends", "polls"), needing("logs", "sends", "replicas")],
        dict.fromkeys(TABLES, 0),
    )
    answers = [answered("reads", UNKNOWN, reason="no rows in polls"), answered("logs", UNKNOWN)]
    judgement = judged(*answers, counts=counts | {"sends": 3}, unseen={"reads": "3 of 3", "logs": "3 of 3"})
    (of_reads,), (unjudged,) = divided(checks, judgement, {"operations": ["ops.jsonl"]})
    assert (of_reads.check, of_reads.verdict, of_reads.reason) == ("reads", UNKNOWN, "3 of 3")
    assert unjudged.check == "logs"


@pytest.mark.parametrize(
    ("name", "absent", "needed"),
    [
        pytest.param("lost-write", True, ["acknowledged records (there are none)"], id="there is none of it"),
        pytest.param(
            "I16", False, ["--replicas: groups with acknowledged commits"], id="evidence that shows it is not given"
        ),
    ],
)
def test_a_promise_whose_subject_the_history_does_not_have_is_not_judged(
    name: str, absent: bool, needed: list[str]
) -> None:
    absent_of = frozenset({name} if absent else ())
    judgement = judged(answered(name, PASS), counts=dict.fromkeys(TABLES, 1), absent=absent_of)
    (unjudged,) = divided([registry.check(name)], judgement, {"operations": ["ops.jsonl"]})[1]
    assert unjudged.needed == needed


@pytest.mark.parametrize(
    ("answer", "deciding", "verdict", "reason"),
    [
        pytest.param(
            answered("duplicate", FAIL, violations=2, reason="a was read twice"),
            ["idempotence=true"],
            UNKNOWN,
            "the answer depends on settings that are not stated (if they apply: --set idempotence=true): "
            "2 times, first: a was read twice",
            id="what may be excused accuses of nothing",
        ),
        pytest.param(
            answered("I20", PASS, notes=1),
            ["unclean_leader_election=false"],
            UNKNOWN,
            "the answer depends on settings that are not stated (if they apply: --set unclean_leader_election=false)",
            id="what may be a violation is no PASS",
        ),
        pytest.param(answered("I9", FAIL, violations=1, reason="r"), [], FAIL, "r", id="it hangs on nothing"),
        pytest.param(answered("I9", UNKNOWN, reason="r"), ["acks=all"], UNKNOWN, "r", id="it could not answer anyway"),
    ],
)
def test_an_answer_that_hangs_on_a_setting_names_what_decides_it(
    answer: CheckResult, deciding: list[str], verdict: SystemVerdict, reason: str
) -> None:
    (result,) = undecided([answer], {answer.check: deciding} if deciding else {})
    assert (result.verdict, result.reason) == (verdict, reason)


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
            ["--zookeeper: `/brokers/ids/…`, or --state-changes: `broker_registered` and `leave_request`"],
            id="one or the other",
        ),
        pytest.param(
            ["registrations", "appends"],
            {},
            ["--state-changes: `broker_registered` and `leave_request`, `append`"],
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
        each.name: (each.value, each.assumed) for each in described_settings(AllowedSettings(acks=1, idempotence=False))
    }
    assert answers == {
        "acks": ("1", False),
        "min_insync_replicas": ("all", True),
        "unclean_leader_election": ("false", True),
        "idempotence": ("false", False),
        "power_loss": ("false", True),
        "read_from_start": ("true", True),
        "deleting_topics": ("none", True),
        "compacted_topics": ("none", True),
        "every_event": ("true", True),
    }
