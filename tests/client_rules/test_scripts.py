"""The rules alone: which step comes next, and what is written down of it, given the answers of some shell."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from harness.client_rules.committing import Committing
from harness.client_rules.reading import Reading
from harness.client_rules.sending import Sending
from harness.client_rules.steps import (
    DONE,
    Commit,
    Pause,
    Poll,
    Question,
    ReadFromTheStart,
    Restart,
    Script,
    Step,
    StepResult,
)
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType, Record
from harness.store.recording import Recorder

ORDERS = ("orders", 0)
END, COMMITTED = Question(OpKind.END_OFFSET, ORDERS), Question(OpKind.FETCH_COMMITTED, ORDERS)
BEGIN = [Restart(), ReadFromTheStart(), Poll()]
SILENCE = StepResult(error="no broker answers")
PARAMETERS = {
    "acks": -1,
    "keys": 5,
    "value_bytes": 0,
    "message_timeout_ms": 1000,
    "commit_interval_s": 1.0,
    "restart_interval_s": 1.0,
    "final_read_timeout_s": 10.0,
    "reread": False,
}


class Clock:
    """Goes on by as much as each step takes."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def plan(**parameters: object) -> ClientPlan:
    return ClientPlan(
        process="client-1",
        workload="w",
        role="r",
        bootstrap_servers="",
        topics={"orders": 1},
        seed=1,
        parameters={**PARAMETERS, **parameters},
    )


def recorder(operations: list[Operation]) -> Recorder:
    return Recorder("client-1", operations.append, lambda: 0)


def record(offset: int) -> Record:
    return Record(topic="orders", partition=0, offset=offset, value=f"v{offset}")


def steps_of(
    script: Script[object], answer: Callable[[Step], StepResult], clock: Clock, *, step_s: float = 0.25
) -> list[Step]:
    """Return the steps of a script, each of which takes a while, or as long as a pause is."""
    steps = []
    step = next(script)
    try:
        while True:
            steps.append(step)
            clock.now_s += step.length_s if isinstance(step, Pause) else step_s
            step = script.send(answer(step))
    except StopIteration:
        return steps


def in_turn(answers: Mapping[type, Iterable[StepResult]]) -> Callable[[Step], StepResult]:
    """Return a shell that has these answers for steps of a kind, and then nothing to say."""
    waiting = {kind: iter(each) for kind, each in answers.items()}
    return lambda step: next(waiting.get(type(step), iter(())), DONE)


class TestReading:
    @pytest.mark.parametrize(
        ("answers", "parameters", "expected"),
        [
            pytest.param(
                {Question: [StepResult(offset=0)] * 3}, {},
                [*BEGIN, END, Poll(), Poll(), END, COMMITTED],
                id="nothing to read: the end settles, and nothing is committed",
            ),
            pytest.param(
                {Poll: [StepResult(records=(record(4),))], Question: [StepResult(offset=5)] * 3}, {},
                [*BEGIN, END, Poll(), Poll(), END, Commit({ORDERS: 5}), COMMITTED],
                id="what was read is committed in the end",
            ),
            pytest.param(
                {Poll: [StepResult(records=(record(0),)), DONE, DONE, StepResult(records=(record(1),))],
                 Question: [StepResult(offset=2)] * 3}, {},
                [*BEGIN, END, Poll(), Poll(), Poll(), END, Commit({ORDERS: 2}), COMMITTED],
                id="it polls until the end is reached",
            ),
            pytest.param(
                {Question: [StepResult(offset=3, log_start=3)] * 3}, {},
                [*BEGIN, END, Poll(), Poll(), END, Commit({ORDERS: 3}), COMMITTED],
                id="a log that starts later is read to its end by starting there",
            ),
            pytest.param(
                {Question: [SILENCE, StepResult(offset=0), StepResult(offset=0), SILENCE, StepResult(offset=0)]}, {},
                [*BEGIN, END, Pause(0.1), END, Poll(), Poll(), END, COMMITTED, Pause(0.1),
                 COMMITTED],
                id="a question without an answer is put again",
            ),
            pytest.param(
                {Question: [SILENCE] * 3}, {"final_read_timeout_s": 0.3},
                [*BEGIN, END, Pause(0.1), END, COMMITTED],
                id="past the deadline every question is put once more",
            ),
            pytest.param(
                {Question: [StepResult(offset=0)] * 3}, {"reread": True},
                [*BEGIN, ReadFromTheStart(), END, Poll(), Poll(), END, COMMITTED],
                id="everything is read once more",
            ),
        ],
    )  # fmt: skip
    def test_its_steps_when_it_is_to_stop_after_one_poll(
        self, answers: dict[type, list[StepResult]], parameters: dict[str, object], expected: list[Step]
    ) -> None:
        clock = Clock()
        rules = Reading(plan(**parameters), recorder([]), clock)
        answer = in_turn(answers)

        def act(step: Step) -> StepResult:
            if isinstance(step, Commit):
                rules.commits.decided(ORDERS)
            return answer(step)

        assert steps_of(rules.script(lambda: clock.now_s > 0.5), act, clock) == expected

    def test_it_commits_at_every_interval_and_waits_for_none(self) -> None:
        clock, operations = Clock(), list[Operation]()
        rules = Reading(plan(final_read_timeout_s=1.0), recorder(operations), clock)
        offsets = iter(range(100))
        steps = steps_of(
            rules.script(lambda: clock.now_s > 3),
            lambda step: (
                StepResult(records=(record(next(offsets)),)) if isinstance(step, Poll) else StepResult(offset=0)
            ),
            clock,
        )
        assert [step for step in steps if isinstance(step, Commit)] == [Commit({ORDERS: 4})]
        assert [each.type for each in operations if each.kind is OpKind.COMMIT] == [OpType.INVOKE]
        assert rules.commits.undecided.keys() == {ORDERS}

    def test_every_try_of_a_question_is_an_operation(self) -> None:
        operations: list[Operation] = []
        rules = Reading(plan(), recorder(operations), Clock())
        answers = in_turn({Question: [SILENCE, StepResult(offset=-1001)]})
        steps_of(rules.ask(OpKind.FETCH_COMMITTED, ORDERS, deadline_s=9.0), answers, Clock())
        assert [(each.index, each.type, each.offset, each.group, each.error) for each in operations] == [
            (0, OpType.INVOKE, -1, "client-1", ""),
            (0, OpType.FAIL, -1, "client-1", "no broker answers"),
            (1, OpType.INVOKE, -1, "client-1", ""),
            (1, OpType.OK, -1, "client-1", ""),
        ]


class TestCommitting:
    def test_it_commits_rising_positions_and_goes_on_after_a_restart_from_what_it_reads_back(self) -> None:
        clock, operations = Clock(), list[Operation]()
        rules = Committing(plan(commit_interval_s=0.5), recorder(operations), clock)
        stored = iter([-1, 9, 11])

        def act(step: Step) -> StepResult:
            if isinstance(step, Commit):
                rules.commits.decided(ORDERS)
            return StepResult(offset=next(stored)) if isinstance(step, Question) else DONE

        pause = Pause(0.5, until_stopped=True)
        assert steps_of(rules.script(lambda: clock.now_s > 3), act, clock) == [
            *(Restart(), COMMITTED, Commit({ORDERS: 1}, wait=True), pause, Commit({ORDERS: 2}, wait=True), pause),
            *(Restart(), COMMITTED, Commit({ORDERS: 10}, wait=True), pause),
            *(Restart(), COMMITTED),
        ]
        assert {each.type for each in operations} == {OpType.INVOKE, OpType.OK}

    def test_past_the_deadline_nothing_more_is_read_back(self) -> None:
        clock = Clock()
        rules = Committing(plan(), recorder([]), clock)
        steps = steps_of(rules.read_back(deadline_s=0.6), lambda _: SILENCE, clock)
        assert steps == [COMMITTED, Pause(0.1), COMMITTED, Pause(0.1)]


class TestSending:
    @pytest.mark.parametrize(
        ("value_bytes", "values"),
        [
            pytest.param(0, ["client-1-1", "client-1-2"], id="just long enough to be unique"),
            pytest.param(14, ["client-1-00001", "client-1-00002"], id="as long as the scenario says"),
        ],
    )
    def test_values_are_unique(self, value_bytes: int, values: list[str]) -> None:
        rules = Sending(plan(value_bytes=value_bytes), recorder([]))
        assert [rules.invoke().value for _ in values] == values

    def test_who_was_killed_goes_on_with_other_values(self) -> None:
        operations: list[Operation] = []
        rules = Sending(plan(), Recorder("client-1", operations.append, lambda: 0, first_index=2))
        assert rules.invoke().value == "client-1-3"

    def test_a_record_in_the_log_may_be_at_an_offset_that_nobody_said(self) -> None:
        operations: list[Operation] = []
        rules = Sending(plan(), recorder(operations))
        rules.acknowledged(rules.invoke(), -1001)
        assert (operations[-1].type, operations[-1].offset) == (OpType.OK, -1)
