"""Steps between rules and shell: rules yield the next step, the shell carries it out and answers with its result.

A script of rules is a generator, so that blocking shells (real clients) and asynchronous ones (simulated clients)
can carry it out.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from harness.store.history import Operation, OpKind, OpType, Record
from harness.store.recording import Recorder
from harness.values import TopicPartition

T = TypeVar("T")

RETRY_S = 0.1
"""Between two tries of a question."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Close all connections, and open new ones."""


@dataclass(frozen=True, slots=True)
class ReadFromTheStart:
    """Make the next poll return each partition's first records."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Take the records that are available after a moment."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Send one commit of these positions; `Commits.decided` receives the outcome of each."""

    positions: Mapping[TopicPartition, int]
    wait: bool = False
    """Wait until all of it is decided."""


@dataclass(frozen=True, slots=True)
class Question:
    """Ask once for the end of a partition, or for the group's committed offset of it."""

    kind: OpKind
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for a while."""

    length_s: float
    until_stopped: bool = False
    """Whether it ends early when the process must stop."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Become a member of the group; what it assigns comes within later polls."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Read these partitions too."""

    positions: Mapping[TopicPartition, int | None]
    """Where to begin: -1 for the log's start, None for the group's committed position."""


@dataclass(frozen=True, slots=True)
class Unassign:
    """Stop reading these partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Give back the assignment, and leave the group."""


@dataclass(frozen=True, slots=True)
class InitTransactions:
    """Make a producer the present one of its transactional id; an earlier one of this process is closed."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class BeginTransaction:
    """Begin a transaction, without a request."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class Send:
    """Hand a record to its transactional producer; `Sending` receives the outcome."""

    invoked: Operation


@dataclass(frozen=True, slots=True)
class AwaitSends:
    """Wait until every record of a producer is decided."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class SendOffsets:
    """Make these positions of the group part of the transaction, as the member that the shell knows."""

    transactional_id: str
    positions: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Commit or abort the transaction."""

    transactional_id: str
    commit: bool


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """Drop a producer; a transaction that is open stays open."""

    transactional_id: str


TransactionStep = InitTransactions | BeginTransaction | Send | AwaitSends | SendOffsets | EndTransaction | CloseProducer
Step = (
    Restart
    | ReadFromTheStart
    | Poll
    | Commit
    | Question
    | Pause
    | Subscribe
    | Assign
    | Unassign
    | Leave
    | TransactionStep
)


class Failure(StrEnum):
    """What a failed step leaves to a transactional producer (KIP-691)."""

    RETRIABLE = "retriable"
    """The step may be tried again."""
    ABORTABLE = "abortable"
    """The transaction can only be aborted."""
    FATAL = "fatal"
    """The producer can only be closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of a step."""

    records: tuple[Record, ...] = ()
    """Of a poll."""
    offset: int = -1
    """Of a question; negative for none."""
    log_start: int | None = None
    """Of a question for the end, if the shell knows it."""
    error: str | None = None
    """Why there is no answer, or only a part of it."""
    is_over: bool = False
    """Of a poll: whether this client is fenced for good, as another one has its instance (KIP-345)."""
    passed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of a poll: how far partitions are read, past markers and records that are not returned."""
    failure: Failure | None = None
    """Of a transactional producer's step."""
    had_no_effect: bool = False
    """Of a failed step: whether it is certain that nothing was done."""


DONE = StepResult()
NO_MEMBER_YET = StepResult(error="it was no member of the group when it read", failure=Failure.ABORTABLE)
"""Of offsets for a transaction, which a coordinator also takes, unfenced, from a client without a generation."""
Script = Generator[Step, StepResult, T]


def carry_out(script: Script[T], act: Callable[[Step], StepResult]) -> T:
    """Return the result of a script, each of its steps carried out by `act`."""
    try:
        step = next(script)
        while True:
            step = script.send(act(step))
    except StopIteration as end:
        result: T = end.value
        return result


async def carry_out_async(script: Script[T], act: Callable[[Step], Awaitable[StepResult]]) -> T:
    """Return the result of a script, each of its steps awaited."""
    try:
        step = next(script)
        while True:
            step = script.send(await act(step))
    except StopIteration as end:
        result: T = end.value
        return result


def ask(
    recorder: Recorder, group: str, kind: OpKind, partition: TopicPartition, isolation: str = ""
) -> Script[StepResult | None]:
    """Return the answer to one question, None when there was none; one try is one operation."""
    topic, number = partition
    is_committed = kind is OpKind.FETCH_COMMITTED
    invoked = recorder.invoke(
        kind,
        topic=topic,
        partition=number,
        group=group if is_committed else "",
        isolation="" if is_committed else isolation,
    )
    answer = yield Question(kind, partition)
    if answer.error is not None:
        recorder.end(invoked, OpType.FAIL, error=answer.error)
        return None
    recorder.end(invoked, OpType.OK, offset=max(-1, answer.offset))
    return answer


def partitions_of(topics: Mapping[str, int]) -> list[TopicPartition]:
    """Return every partition of some topics, in order."""
    return [(topic, partition) for topic, count in sorted(topics.items()) for partition in range(count)]
