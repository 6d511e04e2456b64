"""The suites on tables of the facts, and the stored form of each."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import FINDING_COLUMNS
from tests.analysis.fact_rows import RUN, Row, committed, controller, fetched, held, led, marked
from tests.analysis.group_rows import reported, stored, took

_HERE = {"run_id": RUN, "topic": "orders", "partition": 0}


def changed(isr: list[int], zxid: int, **other: object) -> dict[str, Any]:
    """A change of an ISR."""
    row = {**_HERE, "life": 1, "zxid": zxid, "zk_version": zxid, "leader": 1, "leader_epoch": 0, "new_isr": isr}
    row |= {"may_be_empty": False, "has_removed_replicas": False}
    return row | {"old_isr": [1, 2, 3], "assignment": [1, 2, 3]} | other


def finding(severity: str, **other: object) -> dict[str, Any]:
    """A finding."""
    row = {**_HERE, "check": "I1", "severity": severity, "message": "An epoch went back.", "evidence": ["{}"]}
    return row | other


def counted(row: Row) -> dict[str, Any]:
    """The row with its place in the sequence, as the fact has it."""
    _, values = row
    at = values["complete_ns"] if values["kind"] == "commit" else values["invoke_ns"]
    return values | {"counts_ns": at}


def rows(*named: Row) -> list[dict[str, Any]]:
    """The rows of facts without the names of these."""
    return [row for _, row in named]


def produced(offset: int, sequence: int, **other: Any) -> Row:
    """A record of an idempotent producer."""
    return held(1, f"v{offset}", offset, producer_id=7, producer_epoch=0, sequence=sequence, **other)


CASES = {
    "leader_epochs": {
        "epochs grow, one leader each": (rows(led(1, 0), led(-1, 1), led(2, 2)), []),
        "an epoch comes twice in ZooKeeper": (
            rows(led(1, 1, zxid=5), led(1, 1, zxid=6)),
            ["leader_epochs_to_increase"],
        ),
        "an epoch goes back": (rows(led(1, 3, zxid=5), led(1, 2, zxid=6)), ["leader_epochs_to_increase"]),
        "each partition has its own epochs": (rows(led(1, 1, zxid=5), led(1, 1, zxid=6, partition=1)), []),
        "each run has its own epochs": (rows(led(1, 1, zxid=5), led(1, 1, zxid=6, run_id="run-2")), []),
        "each life of a topic has its own epochs": (rows(led(1, 1, zxid=5), led(1, 0, zxid=6, life=2)), []),
        "a broker claims another's epoch": (
            rows(led(1, 0), led(2, 0, zxid=None, life=None)),
            ["one_leader_per_leader_epoch"],
        ),
        "a topic of the same name has another leader in its epoch": (rows(led(1, 0), led(2, 0, zxid=200, life=2)), []),
        "no leader is no second leader": (rows(led(-1, 1), led(2, 1, zxid=None)), []),
        "an old controller decides": (
            rows(led(1, 0, controller_epoch=2), led(2, 1, controller_epoch=1)),
            ["controller_epochs_never_to_go_back"],
        ),
        "an unclean election that is allowed": (rows(led(1, 0, unclean=True, unclean_allowed=True)), []),
        "an unclean election that is not": (
            rows(led(1, 0, unclean=True, unclean_allowed=False)),
            ["unclean_elections_only_where_allowed"],
        ),
        "an unclean election that was allowed or not, unknown": (rows(led(1, 0, unclean=True)), []),
        "an epoch below zero": (rows(led(1, -1)), ["column_values_to_be_between"]),
    },
    "controller_epochs": {
        "each follows the one before": (rows(controller(1, 1, zxid=5), controller(2, 2, zxid=9)), []),
        "a broker says what ZooKeeper says": (rows(controller(1, 1, zxid=5), controller(1, 1, zxid=None)), []),
        "one is left out": (
            rows(controller(1, 1, zxid=5), controller(2, 3, zxid=9)),
            ["controller_epochs_to_be_continuous"],
        ),
        "a quorum leaves one out": (
            rows(controller(1, 1, zxid=5, source="quorum"), controller(2, 3, zxid=9, source="quorum")),
            [],
        ),
        "one comes twice": (
            rows(controller(1, 1, zxid=5), controller(1, 1, zxid=9)),
            ["controller_epochs_to_be_continuous"],
        ),
        "another broker claims it": (
            rows(controller(1, 1, zxid=5), controller(2, 1, zxid=None)),
            ["one_controller_per_controller_epoch"],
        ),
        "the controller is unknown": (rows(controller(None, 1, zxid=5), controller(2, 1, zxid=None)), []),
        "an epoch that there is not": (rows(controller(1, 0, zxid=5)), ["column_values_to_be_between"]),
    },
    "isr_changes": {
        "it shrinks and grows": ([changed([1, 2], 5), changed([2, 1, 3], 6)], []),
        "it is empty while there is no leader": ([changed([], 5, leader=-1)], ["isr_never_to_be_empty"]),
        "it is empty where others may lead": ([changed([], 5, leader=-1, may_be_empty=True)], []),
        "the last member stays though it does not lead": ([changed([2], 5, leader=-1)], []),
        "a member comes twice": ([changed([1, 1], 5)], ["isr_members_once"]),
        "a stranger is in it": ([changed([1, 4], 5)], ["isr_within_replicas"]),
        "a member is no replica any more": ([changed([1, 4], 5, has_removed_replicas=True)], []),
        "the assignment is unknown": ([changed([1, 4], 5, assignment=None)], []),
        "the leader is not in it": ([changed([2, 3], 5)], ["leader_in_isr"]),
        "a version comes again": (
            [changed([1, 2], 5, zk_version=3), changed([1], 6, zk_version=3)],
            ["zk_versions_to_increase"],
        ),
        "a topic of the same name begins anew": (
            [changed([1, 2], 5, zk_version=3), changed([1], 6, zk_version=0, life=2)],
            [],
        ),
    },
    "high_watermarks": {
        "it follows the log": (rows(marked(1, 0, 4, 4, seq=1), marked(1, 4, 6, 9, seq=2)), []),
        "it is past the end": (rows(marked(1, 0, 5, 4)), ["high_watermarks_not_to_pass_log_end"]),
        "it goes back under one leader": (
            rows(marked(1, 0, 6, 9, seq=1), marked(1, 6, 4, 9, seq=2)),
            ["high_watermarks_never_to_go_back"],
        ),
        "two threads log their rises in another order": (
            rows(marked(1, 4, 6, 9, seq=1), marked(1, 0, 4, 9, seq=2), marked(1, 4, 4, 9, seq=3)),
            [],
        ),
        "it goes back without a word": (
            rows(marked(1, 0, 4, 9, seq=1), marked(1, 4, 6, 9, seq=2), marked(1, 2, 4, 9, seq=3)),
            ["high_watermarks_never_to_go_back"],
        ),
        "it goes back on a follower": (
            rows(marked(1, 0, 6, 9, seq=1, role="follower"), marked(1, 6, 4, 9, seq=2, role="follower")),
            [],
        ),
        "the next leader begins lower": (
            rows(marked(1, 0, 6, 9, seq=1), marked(1, 6, 4, 9, seq=2, leader_epoch=1)),
            [],
        ),
        "it goes back with the broker's restart": (
            rows(marked(1, 0, 6, 9, seq=1), marked(1, 6, 4, 9, seq=2, incarnation="next")),
            [],
        ),
    },
    "committed_offsets": {
        "a commit is read back": ([counted(committed(5, at=(1, 2))), counted(fetched(5, at=(3, 4)))], []),
        "less than was committed is read back": (
            [counted(committed(5, at=(1, 2))), counted(fetched(4, at=(3, 4)))],
            ["committed_offsets_never_to_regress"],
        ),
        "the commit has vanished": (
            [counted(committed(5, at=(1, 2))), counted(fetched(-1, at=(3, 4)))],
            ["committed_offsets_never_to_regress"],
        ),
        "a group rewinds": (
            [counted(committed(5, at=(1, 2))), counted(committed(3, at=(3, 4))), counted(fetched(3, at=(5, 6)))],
            [],
        ),
        "a commit that does not count": ([counted(committed(5, at=(1, 2))), fetched(4, at=(3, 4))[1]], []),
        "another group": ([counted(committed(5, at=(1, 2))), counted(fetched(4, at=(3, 4), group="g1"))], []),
        "a reader commits what it read": ([counted(committed(5, at=(1, 2), readable_end=5))], []),
        "a reader commits more than there is": (
            [counted(committed(6, at=(1, 2), readable_end=5))],
            ["committed_offsets_not_to_pass_end"],
        ),
        "a commit past the end that was refused": ([committed(6, at=(1, 2), readable_end=5, outcome="fail")[1]], []),
        "less than no offset": ([counted(committed(-2, at=(1, 2)))], ["column_values_to_be_between"]),
        "an outcome that there is not": (
            [counted(committed(5, at=(1, 2), outcome="maybe"))],
            ["column_values_to_be_in_set"],
        ),
    },
    "group_generations": {
        "each partition has one member": (
            rows(*stored("a", 0, 1), *stored("b", 2), reported("a"), reported("b", 1)),
            [],
        ),
        "a coordinator stores one for two": (rows(*stored("a", 0), *stored("b", 0)), ["partitions_to_have_one_owner"]),
        "two members are told the same": (rows(reported("a"), reported("b")), ["partitions_to_have_one_owner"]),
        "an instance is told it twice": (rows(reported("a/i"), reported("b/i")), []),
        "a generation is stored again for an instance": (rows(*stored("a", 0), *stored("b", 0, seq=1)), []),
        "generations grow": (rows(*stored("a", 0), *stored("b", 0, generation=2, seq=1)), []),
        "a generation goes back": (
            rows(*stored("a", 0, generation=2), *stored("b", 0, seq=1)),
            ["generations_never_to_go_back"],
        ),
        "the group had ended": (
            rows(*stored("a", 0, generation=2), *(("", row | {"life": 1}) for _, row in stored("b", 0, seq=1))),
            [],
        ),
        "the next coordinator has an older one": (
            rows(*stored("a", 0, generation=2), *stored("b", 0, seq=1, epoch=4)),
            [],
        ),
    },
    "group_commits": {
        "a member commits in its generation": (rows(took("a", 2)), []),
        "a non-member commits": (rows(took("", -1)), []),
        "a member commits in an older one": (rows(took("a", 1)), ["commits_of_the_current_generation"]),
        "that is refused": (rows(took("a", 1, error=22)), []),
        "an unknown group": (rows(took("a", 1, current=None)), []),
    },
    "records": {
        "replicas agree": (rows(held(1, "a", 0), held(2, "a", 0), held(1, "b", 9), held(2, "b", 9)), []),
        "one is behind": (rows(held(1, "a", 0), held(2, "a", 0), held(1, "b", 9)), []),
        "an offset holds two records": (rows(held(1, "a", 0), held(1, "a", 0)), ["one_record_per_offset"]),
        "replicas differ": (rows(held(1, "a", 0), held(2, "b", 0)), ["replicas_to_hold_the_same_records"]),
        "a tail of an older epoch differs": (rows(held(1, "a", 0, epoch=1), held(2, "b", 0, epoch=2)), []),
        "an older epoch comes after a newer one": (
            rows(held(1, "a", 0, epoch=2), held(1, "b", 1, epoch=1)),
            ["leader_epochs_never_to_go_back_in_the_log"],
        ),
        "a producer counts on": (rows(produced(0, 0), produced(1, 1), produced(5, 2)), []),
        "a producer's record comes twice": (rows(produced(0, 0), produced(1, 0)), ["producer_sequences_to_increase"]),
        "a producer that is not idempotent": (rows(produced(0, -1), produced(1, -1)), []),
    },
    "findings": {
        "there is no finding": ([], []),
        "an expected finding and a note": ([finding("expected"), finding("note")], []),
        "a violation": ([finding("expected"), finding("violation")], ["no_violations"]),
        "a finding that nothing shows": ([finding("note", evidence=[])], ["findings_to_have_evidence"]),
        "a severity that there is not": ([finding("oops")], ["column_values_to_be_in_set"]),
    },
}


@pytest.fixture(scope="module")
def validated(gx_context: Any) -> Callable[[str, list[dict[str, Any]]], list[str]]:
    """Validate rows by a suite: call with its name and the rows, to get the types of expectation that failed."""
    from great_expectations.core import ValidationDefinition

    from expectations.suites import SUITES
    from expectations.tables import NULLABLE

    source = gx_context.data_sources.add_pandas("tables of runs")
    suites = {suite.name: suite for suite in SUITES}
    definitions = {
        name: ValidationDefinition(
            name=name,
            data=source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole"),
            suite=gx_context.suites.add(suite.build()),
        )
        for name, suite in suites.items()
    }

    def failed(name: str, rows: list[dict[str, Any]]) -> list[str]:
        table = TABLES.get(suites[name].table)
        columns = [(column.name, column.type) for column in table.columns] if table else FINDING_COLUMNS
        more = [("readable_end", "bigint")] if name == "committed_offsets" else []
        schema = pa.schema([(column, ARROW_TYPES[type_]) for column, type_ in [*columns, *more]])
        frame = pa.Table.from_pylist(rows, schema).to_pandas(types_mapper=NULLABLE.get)
        result: Any = definitions[name].run(batch_parameters={"dataframe": frame})
        assert not [r for r in result.results if "'raised_exception': True" in str(r.exception_info)]
        return [r.expectation_config.type.removeprefix("expect_") for r in result.results if not r.success]

    return failed


@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(name, case, id=f"{name}: {case}") for name, cases in CASES.items() for case in cases],
)
def test_a_suite_fails_by_the_expectation_that_is_broken(
    name: str, case: str, validated: Callable[[str, list[dict[str, Any]]], list[str]]
) -> None:
    rows, types = CASES[name][case]
    assert validated(name, rows) == types


def test_every_expectation_of_every_suite_is_broken_by_a_case() -> None:
    from expectations.suites import SUITES

    for suite in SUITES:
        types = {each.expectation_type.removeprefix("expect_") for each in suite.expectations}
        assert {type_ for _, broken in CASES[suite.name].values() for type_ in broken} >= types - NEVER_BROKEN


NEVER_BROKEN = {"column_values_to_not_be_null"}
"""No reader of evidence makes such a row."""


def test_a_loss_excuses_only_what_it_explains() -> None:
    from expectations.suites import COMMITTED_OFFSETS

    excused = [
        each
        for each in COMMITTED_OFFSETS.where_losses_are_allowed().build().expectations
        if getattr(each, "mostly", 1) == 0
    ]
    assert [each.expectation_type for each in excused] == [
        "expect_committed_offsets_never_to_regress",
        "expect_committed_offsets_not_to_pass_end",
    ]
    as_built: list[Any] = COMMITTED_OFFSETS.build().expectations
    assert all(each.mostly == 1 for each in as_built)


def test_the_stored_suites_are_those_in_code() -> None:
    from expectations.suites import SUITES, as_json, stored_at

    for suite in SUITES:
        assert stored_at(suite).read_text(encoding="utf-8") == as_json(suite), "run python -m expectations"
    assert {path.stem for path in stored_at(SUITES[0]).parent.glob("*.json")} == {suite.name for suite in SUITES}


def test_a_stored_suite_is_read_back_as_the_same_expectations() -> None:
    from great_expectations.core.expectation_suite import ExpectationSuite

    from expectations.suites import SUITES, stored_at

    for suite in SUITES:
        stored = json.loads(stored_at(suite).read_text(encoding="utf-8"))
        read = ExpectationSuite(name=stored["name"], expectations=stored["expectations"])
        assert [expectation.configuration for expectation in read.expectations] == [
            expectation.configuration for expectation in suite.build().expectations
        ]
