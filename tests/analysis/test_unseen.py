"""Of no check is it a PASS that its subject is absent in one partition of three, or of one group or broker of three."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.analysis import subjects
from harness.analysis.check_helpers.configurations import PROPERTIES_KNOWN
from harness.analysis.check_helpers.open_requests import CLIENTS_LIVE, DEADLINE_S
from harness.analysis.check_helpers.transactions import TRANSACTIONS_WHOLE
from harness.analysis.subjects import subjects_of
from harness.analysis.tables.schemas import TABLES
from harness.analysis.unseen import Unseen, unseen_of
from harness.contracts import registry
from harness.contracts.checks import Check, Settings, Subject
from harness.store.history import READ_COMMITTED, Sign
from tests.analysis.fact_rows import Row, facts, held, read, replica, sent
from tests.analysis.protocol_rows import in_force, stepped, superseded, version_of
from tests.analysis.transaction_rows import sent_in
from tests.checks.answers import STRICT

pytestmark = pytest.mark.spark

CHECKS = [registry.check(name) for name in registry.names(registry.Kind.CHECK)]
SUBJECTS = list(dict.fromkeys(subject for check in CHECKS for subject in subjects_of(check)))
THREE, TWO = (0, 1, 2), (0, 1)
Rows = Callable[[Sequence[int]], list[Row]]
"""Evidence of three pieces, of which those that are named are seen."""


def sends(**each: Any) -> list[Row]:
    return [sent(f"v{number}", 0, partition=number, index=number, **each) for number in THREE]


def of_fact(fact: str) -> tuple[Rows, str]:
    """Return the evidence for a fact that must have rows wherever something is, and how the third place is called."""
    columns = {column.name for column in TABLES[fact].columns}
    if {"topic", "partition"} <= columns:
        known: list[Row] = [read("v", 0, partition=n) for n in THREE] if fact == "consumer_fetches" else sends()
        return lambda seen: [*known, *((fact, {"topic": "orders", "partition": n}) for n in seen)], "orders-2"
    if "topic" in columns:
        rows = [sent("v", 0, topic=f"t{number}") for number in THREE]
        more = {"present": True} if "present" in columns else {}
        return lambda seen: [*rows, *((fact, {"topic": f"t{n}"} | more) for n in seen)], "t2"
    return lambda seen: [*replicas(), *((fact, {"broker": n}) for n in seen)], "broker 2"


def replicas() -> list[Row]:
    return [("partition_states", {"topic": "orders", "partition": 0, "assignment": [*THREE]})]


def commits(**each: Any) -> list[Row]:
    row = {"source": "client", "kind": "commit", "outcome": "ok", "topic": "orders", "partition": 0, "process": "c"}
    return [("committed_offsets", row | {"group": f"g{number}"} | each) for number in THREE]


def begun(partition: int, epoch: int, *, leader: int) -> Row:
    row = {"topic": "orders", "partition": partition, "leader_epoch": epoch, "zxid": epoch, "leader": leader}
    return "leader_epochs", row


def members() -> list[Row]:
    return [("ownerships", {"group": f"g{number}", "process": f"c{number}"}) for number in THREE]


def told(fact: str) -> Rows:
    more = {"source": "coordinator"} if fact == "group_generations" else {}
    return lambda seen: [*members(), *((fact, {"group": f"g{number}"} | more) for number in seen)]


def registered(*sources: str) -> Rows:
    return lambda seen: [
        ("registrations", {"broker": broker, "czxid": broker, "source": source})
        for broker in THREE
        for source in (sources if broker in seen else sources[:1])
    ]


def looked(sign: Sign, partition: int, *, shown: bool = True) -> Row:
    return "liveness", {"topic": "orders", "partition": partition, "sign": sign, "shown": shown}


def signs(*both: Sign) -> Rows:
    """Of the partition that is not seen, one sign of the two is known."""
    return lambda seen: [*sends(), *(looked(s, n) for n in THREE for s in (both if n in seen else both[:1]))]


def of_coordinator(partition: int, *, whole: bool) -> Row:
    return "transactions", {"topic": "__transaction_state", "partition": partition, "whole": whole}


def waiting() -> list[Row]:
    """A request without an end of each of three clients."""
    return [sent("v", invoke_ns=0, complete_ns=None, process=f"p{number}") for number in THREE]


def later(number: int) -> Row:
    """Another request of a client, after the deadline of the one without an end."""
    return sent("w", 0, invoke_ns=0, complete_ns=DEADLINE_S * 1_000_000_000, process=f"p{number}")


SPECIAL: dict[Subject, tuple[Rows, str]] = {
    subjects.RECORDS_READ: (
        lambda seen: [*sends(), *(read(f"v{number}", 0, partition=number) for number in seen)],
        "orders-2",
    ),
    subjects.ENDS_READ: (
        lambda seen: [*sends(), *(read(f"v{n}", 0, partition=n) for n in seen), *(end(1, n) for n in THREE)],
        "orders-2",
    ),
    subjects.TRANSACTIONS_READ: (
        lambda seen: [
            *sends(transaction_outcome="committed"),
            *(read(f"v{number}", 0, partition=number, isolation=READ_COMMITTED) for number in seen),
        ],
        "orders-2",
    ),
    CLIENTS_LIVE: (lambda seen: [*waiting(), *(later(number) for number in seen), later(9)], "client p2"),
    subjects.RECORDS_PLACED: (
        lambda seen: [*sends()[: len(seen)], *(sent("v", partition=2, outcome="ok") for _ in THREE[len(seen) :])],
        "orders-2",
    ),
    subjects.RECORDS_KEPT: (
        lambda seen: [
            *(sent(f"v{number}", 0, topic="deleted", partition=number) for number in THREE),
            *(read(f"v{number}", 0, topic="deleted", partition=number) for number in seen),
            read("v", 1, topic="deleted", partition=2),
        ],
        "deleted-2",
    ),
    subjects.STEPS_KEPT: (
        lambda seen: [stepped(0, 2 if n not in seen else 1, topic="compacted", partition=n) for n in THREE],
        "compacted-2",
    ),
    subjects.BROKERS_TELL: (
        lambda seen: [
            *replicas(),
            *registered("zookeeper")(THREE),
            *(("leadership_claims", {"broker": n}) for n in seen),
        ],
        "broker 2",
    ),
    subjects.ELECTIONS_TOLD: (
        lambda seen: [
            *(begun(n, 1, leader=2) for n in THREE),
            *(begun(3, epoch, leader=1) for epoch in (0, 1)),
            *(("elections", {"topic": "orders", "partition": n}) for n in seen),
        ],
        "orders-2",
    ),
    subjects.COMMITS_READ_BACK: (lambda seen: [*commits(), *commits(kind="fetch")[: len(seen)]], "g2 of orders-0"),
    subjects.COMMITS_LOGGED: (lambda seen: [*commits(), *commits(source="log")[: len(seen)]], "g2"),
    subjects.COMMITS_TAKEN: (
        lambda seen: [*commits(), *(("group_commits", {"group": f"g{number}"}) for number in seen)],
        "g2",
    ),
    subjects.groups_in("group_generations"): (told("group_generations"), "g2"),
    subjects.groups_in("group_states"): (told("group_states"), "g2"),
    subjects.GROUPS_LOADED: (
        lambda seen: [
            *(("group_states", {"group": f"g{number}", "offsets_partition": number}) for number in THREE),
            *(("group_loads", {"topic": "__consumer_offsets", "partition": number}) for number in seen),
        ],
        "__consumer_offsets-2",
    ),
    subjects.GROUPS_READ: (lambda seen: [*members(), *(read("v", 0, process=f"c{n}") for n in seen)], "g2"),
    subjects.REGISTRATIONS_MATCHED: (registered("zookeeper", "broker"), "broker 2"),
    subjects.signs_of(Sign.LED, Sign.IN_SYNC): (signs(Sign.LED, Sign.IN_SYNC), "orders-2"),
    subjects.signs_of(Sign.PRODUCE, Sign.FETCH): (signs(Sign.FETCH, Sign.PRODUCE), "orders-2"),
    PROPERTIES_KNOWN: (
        lambda seen: [
            *(in_force("5", topic=f"t{n}") for n in THREE),
            *(version_of(f"topics/t{n}", "5" if n in seen else None) for n in THREE),
        ],
        "t2",
    ),
    TRANSACTIONS_WHOLE: (lambda seen: [of_coordinator(n, whole=n in seen) for n in THREE], "__transaction_state-2"),
}
"""Subjects that do not follow from a fact that a check needs."""


def evidence_of(subject: Subject) -> tuple[Rows, str] | None:
    """Return what a subject's pieces are known by; none for one whose pieces are all seen by their nature."""
    if subject in SPECIAL:
        return SPECIAL[subject]
    return of_fact(subject.facts[-1]) if subject.unseen else None


def called(subject: Subject) -> str:
    return f"{subject.what} {subject.unseen}"


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> Unseen:
    """A run for each subject of which two pieces are seen, and one of which all are, by one job."""
    runs: dict[str, list[Row]] = {}
    for subject in SUBJECTS:
        for seen in (TWO, THREE):
            if evidence := evidence_of(subject):
                runs[f"{called(subject)}: {len(seen)}"] = evidence[0](seen)
    runs["nothing"] = []
    return unseen_in(spark, runs, replace(STRICT, deleting_topics="deleted", compacted_topics="compacted"))


def unseen_in(spark: SparkSession, runs: dict[str, list[Row]], settings: Settings = STRICT) -> Unseen:
    rows = [(fact, row | {"run_id": run_id}) for run_id, of_run in runs.items() for fact, row in of_run]
    return unseen_of(CHECKS, facts(spark, *rows), runs, settings)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_subject_that_is_absent_in_one_place_of_three_is_said_with_the_place(check: Check, judged: Unseen) -> None:
    assert subjects_of(check), "a check says what it is about, or needs a fact from which that follows"
    for subject in subjects_of(check):
        if evidence := evidence_of(subject):
            run_id = f"{called(subject)}: 2"
            assert (run_id, check.name) not in judged.absent or subject is not getattr(check, "about", None)
            if (run_id, check.name) not in judged.absent:
                assert f"1 of 3 {called(subject)}: {evidence[1]}" in judged.reasons[run_id, check.name]
            assert called(subject) not in judged.reasons.get((f"{called(subject)}: 3", check.name), "")


@pytest.mark.parametrize("check", [check for check in CHECKS if check.about], ids=lambda check: check.name)
def test_a_check_whose_subject_is_nowhere_has_nothing_to_judge(check: Check, judged: Unseen) -> None:
    assert ("nothing", check.name) in judged.absent


ENDED = [sent("a", 0), sent("b", 1, index=1), sent("c", 2, index=2), read("a", 0)]
"""Readers ended before the last two that were acknowledged."""


def end(offset: int, partition: int = 0) -> Row:
    row = {"topic": "orders", "partition": partition, "offset": offset, "invoke_ns": 5, "complete_ns": 6}
    return "end_offsets", row


READS = {
    "readers ended before the last acknowledged record": (ENDED, 2),
    "not read": (ENDED[:3], 3),
    "they were read at other offsets": ([*ENDED, read("b", 7), read("c", 8)], 0),
    "a reader passed them, which lost-write judges": ([*ENDED, read("d", 9)], 0),
    "no send was acknowledged": ([sent("a")], 0),
    "acks=0 is never acknowledged": ([sent("a", outcome="ok", acks=0)], 0),
    "an acknowledged record without an offset was read": ([sent("a", outcome="ok"), read("a", 0)], 0),
    "an acknowledged record without an offset was not read": ([sent("a", outcome="ok"), read("b", 0)], 1),
    "the topic was deleted": ([*ENDED, ("topics", {"topic": "orders", "present": False})], 0),
    "a cleaner may have taken one of them": ([*ENDED, superseded(1)], 1),
    "the partition ends before them, and acks=all had promised them": ([*ENDED, end(1)], 2),
    "the partition ends before them, and acks=1 promises little": (
        [ENDED[0], ENDED[3], sent("b", 1, index=1, acks=1), end(1)],
        0,
    ),
    "the partition goes on, and acks=1 promises little": (
        [ENDED[0], ENDED[3], sent("b", 1, index=1, acks=1), end(2)],
        1,
    ),
}


def test_what_no_reader_came_to(spark: SparkSession) -> None:
    judged = unseen_in(spark, {name: rows for name, (rows, _) in READS.items()})
    said = {name: judged.reasons.get((name, "phantom"), "0 of") for name in READS}
    assert {name: int(reason.split()[0]) for name, reason in said.items()} == {
        n: count for n, (_, count) in READS.items()
    }


ABORTED: dict[str, Any] = {"transaction_outcome": "aborted"}
LAST_READ = [sent("a", 0), read("a", 0)]
ENDS = {
    "the log goes on with what was never acknowledged": ([*LAST_READ, sent("b", index=1), end(2)], 1),
    "others wrote there": ([*LAST_READ, end(8)], 7),
    "the last answer is what holds": ([*LAST_READ, end(1)], 0),
    "readers came further": ([*LAST_READ, read("b", 1), end(1)], 0),
    "what was never acknowledged was never read": ([sent("a"), read("c", 0, partition=1), end(3)], 3),
    "a dump shows what lies there": ([*LAST_READ, end(8), replica(1, 8)], 0),
    "the topic was deleted": ([*LAST_READ, end(8), ("topics", {"topic": "orders", "present": False})], 0),
    "records of an aborted transaction lie there, and its marker": (
        [*LAST_READ, sent_in("b", 1, **ABORTED), sent_in("c", 2, **ABORTED), end(4)],
        0,
    ),
    "others wrote behind an aborted transaction": ([*LAST_READ, sent_in("b", 1, **ABORTED), end(5)], 2),
    "the marker of what was read last lies there": ([sent_in("a", 0), read("a", 0), end(2)], 0),
    "markers of earlier transactions do not lie there": (
        [*(sent_in(f"v{n}", 2 * n, n) for n in range(3)), *(read(f"v{n}", 2 * n) for n in range(3)), end(8)],
        2,
    ),
    "a transaction goes on there, and the one before it has ended": (
        [sent_in("a", 0, 0), sent_in("b", 2, 1), sent_in("c", 3, 1, **ABORTED), read("a", 0), read("b", 2), end(6)],
        1,
    ),
    "no client wrote or read there": ([*LAST_READ, end(8, 5)], 0),
}


HOLDS: list[Row] = [
    *(("registrations", {"broker": n, "source": "zookeeper"}) for n in (0, 1)),
    ("leadership_claims", {"broker": 0}),
]
SAYS_IT_LIVES: Row = ("registrations", {"broker": 1, "source": "broker"})


def assigned(topic: str, *brokers: int) -> Row:
    return "partition_states", {"topic": topic, "partition": 0, "assignment": list(brokers)}


TELL = {
    "the log of one that holds a replica has nothing of it": ([assigned("orders", 0, 1), SAYS_IT_LIVES], True),
    "it held one of a deleted topic only, and has a log": (
        [assigned("orders", 0), assigned("gone", 0, 1), SAYS_IT_LIVES],
        False,
    ),
    "it held one of a deleted topic only, and has no log": ([assigned("orders", 0), assigned("gone", 0, 1)], True),
}


def test_a_broker_that_held_deleted_topics_alone_need_not_have_heard_of_them(spark: SparkSession) -> None:
    gone: Row = ("topics", {"topic": "gone", "present": False})
    judged = unseen_in(spark, {name: [*HOLDS, gone, *rows] for name, (rows, _) in TELL.items()})
    told = {name: "broker 1" in judged.reasons.get((name, "I1"), "") for name in TELL}
    assert told == {name: silent for name, (_, silent) in TELL.items()}


def test_what_lies_past_the_last_record_that_was_read_forbids_a_pass(spark: SparkSession) -> None:
    judged = unseen_in(spark, {name: rows for name, (rows, _) in ENDS.items()})
    for check in ("phantom", "duplicate", "aborted-read"):
        said = {name: judged.reasons.get((name, check), "0 of") for name in ENDS}
        assert {name: int(reason.split()[0]) for name, reason in said.items()} == {
            name: count for name, (_, count) in ENDS.items()
        }
    assert not any(check == "lost-write" for _, check in judged.reasons), "it promises what was acknowledged"


def test_a_sign_that_is_missing_says_why_the_next_one_was_not_looked_for(spark: SparkSession) -> None:
    runs = {
        "produced alone": [*sends()[:1], looked(Sign.PRODUCE, 0)],
        "not produced": [*sends()[:1], looked(Sign.PRODUCE, 0, shown=False)],
    }
    reasons = unseen_in(spark, runs).reasons
    assert ("produced alone", "I32") in reasons
    assert ("not produced", "I32") not in reasons


def test_a_partition_whose_records_were_all_deleted_has_none_to_show(spark: SparkSession) -> None:
    shown = [*sends(), held(1, "v0", 0), held(1, "v1", 0, partition=1)]
    runs = {
        "deleted": [*shown, replica(1, 1, log_start_offset=1, partition=2)],
        "one replica has not": [*shown, replica(1, 1, log_start_offset=1, partition=2), replica(2, 1, partition=2)],
        "never written": [*shown, replica(1, 0, partition=2)],
        "no dump": shown,
    }
    judged = unseen_in(spark, runs)
    missing = {run for run in runs if "have no rows in replica_records" in judged.reasons.get((run, "unseen"), "")}
    assert missing == runs.keys() - {"deleted"}


def test_what_no_reader_passed_is_unseen_where_readers_began_anywhere(spark: SparkSession) -> None:
    rows = {
        "run": [sent("a", 0), sent("b", 1, index=1), read("b", 1)],
        "gap": [sent("b", 1), read("a", 0), read("c", 2, process="late")],
        "passed": [sent("b", 1), read("a", 0), read("c", 2)],
    }
    anywhere = Settings(
        acks=frozenset({-1}),
        min_insync_replicas=1,
        unclean_leader_election=False,
        idempotence=True,
        read_from_start=False,
    )
    assert ("run", "lost-write") not in unseen_in(spark, rows).reasons
    reasons = unseen_in(spark, rows, anywhere).reasons
    assert reasons["run", "lost-write"].startswith("1 of 2 acknowledged records")
    assert reasons["gap", "lost-write"].startswith("1 of 1 acknowledged records")
    assert ("passed", "lost-write") not in reasons
