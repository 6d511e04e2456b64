"""The rules of a member alone: what it does when its group speaks to it, and in which order it is written down."""

from collections.abc import Callable, Generator, Iterator
from itertools import islice

import pytest

from harness.client_rules.steps import (
    DONE,
    Assign,
    Commit,
    Leave,
    Pause,
    Poll,
    Question,
    Restart,
    Step,
    StepResult,
    Subscribe,
    Unassign,
    carry_out,
)
from harness.client_rules.subscribing import Subscribing
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType, Record
from harness.store.recording import Recorder

ORDERS, OTHERS = ("orders", 0), ("orders", 1)
PARAMETERS = {
    "group": "group-1",
    "instance": "",
    "assignor": "range",
    "commits": "manual",
    "max_poll_interval_ms": 1000,
    "commit_interval_s": 0.5,
    "stay_s": 0.0,
    "away_s": 1.0,
    "final_read_timeout_s": 5.0,
}


def record(offset: int, partition: int = 0) -> Record:
    return Record(topic="orders", partition=partition, offset=offset, value=f"v{offset}")


class Shell:
    """Does what the rules say, with a clock that goes on by as much as each step takes."""

    def __init__(self, committed: int | None = 5, end: int = 5, *, at_once: bool = False, **parameters: object) -> None:
        plan = ClientPlan(
            process="member-1",
            workload="w",
            role="member",
            bootstrap_servers="",
            topics={"orders": 2},
            seed=1,
            parameters={**PARAMETERS, **parameters},
        )
        self.operations: list[Operation] = []
        self.steps: list[Step] = []
        self.now_s = 0.0
        self.committed, self.end = committed, end
        self.refusals: Iterator[int] = iter(())
        self.polls: Iterator[Callable[[], StepResult]] = iter(())
        recorder = Recorder("member-1", self.operations.append, lambda: 0)
        self.rules = Subscribing(plan, recorder, lambda: self.now_s, at_once=lambda: at_once)
        self.rules.known_as("m-1", 1)

    def act(self, step: Step) -> StepResult:
        self.steps.append(step)
        self.now_s += step.length_s if isinstance(step, Pause) else 0.25
        match step:
            case Poll():
                return next(self.polls, lambda: DONE)()
            case Question(OpKind.END_OFFSET, _):
                return StepResult(offset=self.end)
            case Question():
                return (
                    StepResult(error="no broker answers")
                    if self.committed is None
                    else StepResult(offset=self.committed)
                )
            case Commit(positions, _):
                for partition in positions:
                    self.rules.commits.decided(partition, next(self.refusals, 0))
        return DONE

    def do(self, script: Generator[Step, StepResult, object]) -> None:
        carry_out(script, self.act)

    def assign(self, *records: Record) -> StepResult:
        """Assign both partitions within a poll that gives these records afterwards."""
        self.do(self.rules.assigned([ORDERS, OTHERS]))
        return StepResult(records=records)

    @property
    def written(self) -> list[str]:
        """What is written down, each operation in a few words."""
        return [_describe(each) for each in self.operations]


def _describe(operation: Operation) -> str:
    what = f"{operation.kind} {operation.partition}" if operation.partition >= 0 else str(operation.kind)
    offsets = f" at {operation.offset}" if operation.offset >= 0 else ""
    records = "".join(f" {each.partition}:{each.offset}" for each in operation.records)
    return f"{operation.index} {operation.type} {what}{offsets}{records}"


def test_an_assigned_partition_is_read_from_where_the_group_has_come_to() -> None:
    shell = Shell(committed=5)
    shell.do(shell.rules.assigned([OTHERS]))
    assert shell.steps == [Question(OpKind.FETCH_COMMITTED, OTHERS), Assign({OTHERS: 5})]
    assert shell.written == [
        "0 invoke assigned 1",
        "1 invoke fetch_committed 1",
        "1 ok fetch_committed 1 at 5",
        "0 ok assigned 1 at 5",
    ]


@pytest.mark.parametrize(
    ("committed", "position", "outcome"),
    [
        pytest.param(-1001, -1, OpType.OK, id="a group that committed nothing begins at the start"),
        pytest.param(None, None, OpType.INFO, id="unknown if no coordinator answers"),
    ],
)
def test_where_reading_begins_without_a_committed_offset(
    committed: int | None, position: int | None, outcome: OpType
) -> None:
    shell = Shell(committed=committed)
    shell.do(shell.rules.assigned([ORDERS]))
    assert shell.steps[-1] == Assign({ORDERS: position})
    assert (shell.operations[-1].kind, shell.operations[-1].type) == (OpKind.ASSIGNED, outcome)


def test_a_callback_ends_the_poll_that_it_comes_in_and_begins_another() -> None:
    shell = Shell()

    def revoked_within() -> StepResult:
        shell.do(shell.rules.revoked([ORDERS, OTHERS], (record(5),)))
        return StepResult(records=())

    shell.polls = iter([lambda: shell.assign(), revoked_within])
    shell.do(shell.rules.poll())
    shell.operations.clear()
    shell.do(shell.rules.poll())
    assert shell.written == [
        "6 invoke poll",
        "6 ok poll 0:5",
        "7 invoke revoked 0 at 6",
        "8 invoke revoked 1 at 5",
        "9 invoke commit 0 at 6",
        "9 ok commit 0 at 6",
        "7 ok revoked 0 at 6",
        "8 ok revoked 1 at 5",
        "10 invoke poll",
        "10 ok poll",
    ]


@pytest.mark.parametrize("commits", ["manual", "automatic"])
def test_what_is_lost_is_not_committed(commits: str) -> None:
    shell = Shell(commits=commits)
    shell.polls = iter([lambda: shell.assign(record(5))])
    shell.do(shell.rules.poll())
    shell.steps.clear()
    shell.do(shell.rules.lost([ORDERS]))
    assert shell.steps == [Unassign((ORDERS,))]
    assert shell.written[-2:] == ["6 invoke lost 0 at 6", "6 ok lost 0 at 6"]


def test_a_commit_that_was_refused_is_tried_again() -> None:
    shell, stopped = Shell(), iter([False] * 6)
    shell.polls = iter([lambda: shell.assign(record(5))])
    shell.refusals = iter([27, 0])
    list(islice(_steps(shell, lambda: next(stopped, True)), 16))
    commits = [each for each in shell.operations if each.kind is OpKind.COMMIT]
    assert [(each.type, each.offset) for each in commits] == [
        (OpType.INVOKE, 6),
        (OpType.INFO, 6),
        (OpType.INVOKE, 6),
        (OpType.OK, 6),
    ]


def _steps(shell: Shell, stopped: Callable[[], bool]) -> Iterator[Step]:
    script = shell.rules.script(stopped)
    step = next(script)
    while True:
        yield step
        try:
            step = script.send(shell.act(step))
        except StopIteration:
            return


def test_subscribing_ends_with_the_first_assignment_and_nothing_before_it_is_a_poll() -> None:
    shell = Shell()

    def nothing_for_it() -> StepResult:
        shell.do(shell.rules.assigned([]))
        return DONE

    shell.polls = iter([lambda: DONE, nothing_for_it])
    list(islice(_steps(shell, lambda: False), 5))
    assert shell.written[:4] == ["0 invoke subscribe", "0 ok subscribe", "1 invoke poll", "1 ok poll"]


def test_a_member_knows_who_it_was_when_it_is_thrown_out() -> None:
    shell = Shell()
    shell.rules.known_as("m-1", 7)
    shell.rules.known_as("", -1)
    shell.do(shell.rules.lost([ORDERS]))
    assert {(each.member, each.generation, each.group) for each in shell.operations} == {("m-1", 7, "group-1")}


@pytest.mark.parametrize(
    ("committed", "whole"),
    [pytest.param(5, True, id="its group is at the end"), pytest.param(4, False, id="its group is not, in time")],
)
def test_it_leaves_when_its_group_has_come_to_the_end_or_time_is_up(committed: int, whole: bool) -> None:
    shell = Shell(committed=committed, end=5)
    assert carry_out(shell.rules.script(lambda: True), shell.act) is whole
    assert shell.steps[:2] == [Restart(), Subscribe()]
    assert shell.steps[-2:] == [Leave(), Pause(1.0)]
    assert (shell.now_s > 6.0) is not whole


def test_who_is_to_leave_at_once_reads_no_further() -> None:
    shell = Shell(committed=4, end=5, at_once=True)
    assert not carry_out(shell.rules.script(lambda: True), shell.act)
    assert shell.steps == [Restart(), Subscribe(), Leave(), Pause(1.0)]


@pytest.mark.parametrize(
    ("assigned", "last_line"),
    [
        pytest.param(False, "0 fail subscribe", id="before it was assigned anything"),
        pytest.param(True, "6 fail poll", id="while it reads"),
    ],
)
def test_who_was_fenced_ends_with_the_reason_and_begins_anew(assigned: bool, last_line: str) -> None:
    shell = Shell()
    first = shell.assign if assigned else lambda: DONE
    shell.polls = iter([first, lambda: StepResult(error="FENCED_INSTANCE_ID", is_over=True)])
    steps = list(islice(_steps(shell, lambda: False), 12))
    lives = [step for step in steps if isinstance(step, Restart | Subscribe | Leave)]
    assert lives == [Restart(), Subscribe(), Leave(), Restart(), Subscribe()]
    assert last_line in shell.written
    assert [each.error for each in shell.operations if each.type is OpType.FAIL] == ["FENCED_INSTANCE_ID"]


def test_a_restless_member_leaves_and_comes_back() -> None:
    shell = Shell(stay_s=2.0)
    steps = list(islice(_steps(shell, lambda: False), 60))
    lives = [step for step in steps if isinstance(step, Subscribe | Leave)]
    assert lives[:4] == [Subscribe(), Leave(), Subscribe(), Leave()]
