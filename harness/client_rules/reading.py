"""A consumer's rules: poll every partition and commit; at the end read to the end, and read the commits back."""

from collections.abc import Callable, Mapping

from harness.client_rules.committing import Commits
from harness.client_rules.steps import (
    RETRY_S,
    Pause,
    Poll,
    ReadFromTheStart,
    Restart,
    Script,
    StepResult,
    ask,
    partitions_of,
)
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder
from harness.values import TopicPartition

SETTLE_S = 0.5
"""The end counts as final when it is unchanged for this long."""
LIVE, AGAIN = "assign", "reread"
"""Modes of a poll: following the log as it grows, and a second read from the start."""


class Reading:
    """One consumer process, in a group of its own."""

    def __init__(self, plan: ClientPlan, recorder: Recorder, now_s: Callable[[], float]) -> None:
        self.commits = Commits(plan.process, recorder)
        self.positions: dict[TopicPartition, int] = {}
        """Next offset that a poll may return, of every partition that was read."""
        self._committed: dict[TopicPartition, int] = {}
        """Highest position that was sent in a commit; a commit never goes back on purpose."""
        self._mode = LIVE
        self._isolation: str = plan.parameters.get("isolation", "")
        self._partitions = partitions_of(plan.topics)
        self._plan = plan
        self._recorder = recorder
        self._now_s = now_s

    def script(self, stopped: Callable[[], bool]) -> Script[bool]:
        """Poll and commit until `stopped`; then read to the end, commit, and read the commits back.

        Returns whether it has read to the end.
        """
        parameters = self._plan.parameters
        yield Restart()
        yield from self.read_from_the_start(LIVE)
        commit_due_s = self._now_s() + parameters["commit_interval_s"]
        while not stopped():
            yield from self.poll()
            if self._now_s() >= commit_due_s:
                yield from self.commit()
                commit_due_s = self._now_s() + parameters["commit_interval_s"]
        deadline_s = self._now_s() + parameters["final_read_timeout_s"]
        if parameters["reread"]:
            yield from self.read_from_the_start(AGAIN)
        whole = yield from self.read_to_the_end(deadline_s)
        yield from self._commit_the_rest(deadline_s)
        for partition in self._partitions:
            yield from self.ask(OpKind.FETCH_COMMITTED, partition, deadline_s)
        return whole

    def read_from_the_start(self, mode: str) -> Script[None]:
        """Reset the positions to each partition's first records."""
        self._mode = mode
        self.positions = {}
        yield ReadFromTheStart()

    def poll(self) -> Script[None]:
        """Take the available records; a poll failed when it gave an error and nothing else."""
        invoked = self._recorder.invoke(OpKind.POLL, mode=self._mode, isolation=self._isolation)
        answer = yield Poll()
        for record in answer.records:
            self.positions[record.topic, record.partition] = record.offset + 1
        for partition, position in answer.passed.items():
            if position > self.positions.get(partition, 0):
                self.positions[partition] = position
        outcome = OpType.OK if answer.records or answer.error is None else OpType.FAIL
        self._recorder.end(invoked, outcome, records=answer.records, error=answer.error or "")

    def commit(self) -> Script[None]:
        """Start a commit of the advanced positions, unless one is still in flight.

        Polls continue meanwhile: waiting for the answer would stop this process from reading while its group has no
        coordinator.
        """
        positions = sorted(self.positions.items())
        moved = {partition: to for partition, to in positions if to > self._committed.get(partition, -1)}
        if moved and not self.commits.undecided:
            self._committed |= moved
            yield self.commits.invoke(moved)

    def _commit_the_rest(self, deadline_s: float) -> Script[None]:
        """Commit the last positions and wait for the answers."""
        yield from self._await_commit(deadline_s)
        yield from self.commit()
        yield from self._await_commit(deadline_s)

    def _await_commit(self, deadline_s: float) -> Script[None]:
        while self.commits.undecided and self._now_s() < deadline_s:
            yield from self.poll()

    def read_to_the_end(self, deadline_s: float) -> Script[bool]:
        """Read until the ends of all partitions are reached and stay where they are; False past the deadline."""
        settled: dict[TopicPartition, int | None] = {}
        while self._now_s() < deadline_s:
            ends: dict[TopicPartition, int | None] = {}
            for partition in self._partitions:
                ends[partition] = yield from self._end_of(partition, deadline_s)
            if None not in ends.values() and ends == settled:
                return True
            settled = ends
            settle_s = self._now_s() + SETTLE_S
            while self._now_s() < deadline_s and (self._now_s() < settle_s or self._is_behind(ends)):
                yield from self.poll()
        return False

    def _is_behind(self, ends: Mapping[TopicPartition, int | None]) -> bool:
        return any(end is not None and self.positions.get(partition, 0) < end for partition, end in ends.items())

    def _end_of(self, partition: TopicPartition, deadline_s: float) -> Script[int | None]:
        """Return the high watermark of a partition; reading continues at the log's start if that is later."""
        answer = yield from self.ask(OpKind.END_OFFSET, partition, deadline_s)
        if answer is None:
            return None
        if answer.log_start is not None:
            self.positions.setdefault(partition, answer.log_start)
        return answer.offset

    def ask(self, kind: OpKind, partition: TopicPartition, deadline_s: float) -> Script[StepResult | None]:
        """Ask until there is an answer or the deadline has passed; every try is an operation."""
        while True:
            answer = yield from ask(self._recorder, self._plan.process, kind, partition, self._isolation)
            if answer is not None or self._now_s() >= deadline_s:
                return answer
            yield Pause(RETRY_S)
