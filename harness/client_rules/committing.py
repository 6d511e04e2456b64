"""The commits of a group and their records: one operation a partition, one request for all."""

from collections.abc import Callable, Mapping
from typing import Protocol

from harness.broker.wire.error_codes import ErrorCode
from harness.client_rules.outcomes import commit_outcome
from harness.client_rules.steps import RETRY_S, Commit, Pause, Restart, Script, ask, partitions_of
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind
from harness.store.recording import Recorder
from harness.values import TopicPartition


class Commits:
    """The commits of one group, one after the other."""

    def __init__(self, group: str, recorder: Recorder, mode: str = "") -> None:
        self.undecided: dict[TopicPartition, Operation] = {}
        """Operations of the commit in flight."""
        self.acknowledged: dict[TopicPartition, int] = {}
        """The last position confirmed as stored."""
        self._group = group
        self._recorder = recorder
        self._mode = mode

    def invoke(self, positions: Mapping[TopicPartition, int], *, wait: bool = False) -> Commit:
        """Return the commit of some positions, and record it."""
        self.undecided = {
            (topic, partition): self._recorder.invoke(
                OpKind.COMMIT, topic=topic, partition=partition, offset=offset, group=self._group, mode=self._mode
            )
            for (topic, partition), offset in positions.items()
        }
        return Commit(dict(positions), wait)

    def decided(self, partition: TopicPartition, code: int = ErrorCode.NONE, error: str = "") -> None:
        """Record the outcome for one partition."""
        invoked = self.undecided.pop(partition)
        self._recorder.end(invoked, commit_outcome(code), error=error)
        if code == ErrorCode.NONE:
            self.acknowledged[partition] = invoked.offset

    def answered(self, partition: TopicPartition, offset: int, code: int, error: str) -> None:
        """Record a commit that was unknown before its answer."""
        self.invoke({partition: offset})
        self.decided(partition, code, error)


class GroupRules(Protocol):
    """The rules of a client in a group."""

    commits: Commits

    def script(self, stopped: Callable[[], bool]) -> Script[object]:
        """Work until `stopped`, then finish."""
        ...


class Committing:
    """A process that only commits: rising positions; after each restart it continues from those it reads back."""

    def __init__(self, plan: ClientPlan, recorder: Recorder, now_s: Callable[[], float]) -> None:
        self.commits = Commits(plan.process, recorder)
        self.positions = dict.fromkeys(partitions_of(plan.topics), 0)
        """Highest position that was sent in a commit, or read back."""
        self._plan = plan
        self._recorder = recorder
        self._now_s = now_s

    def script(self, stopped: Callable[[], bool]) -> Script[None]:
        """Commit and restart until `stopped`; then read everything back."""
        while True:
            yield Restart()
            yield from self.read_back(self._now_s() + self._plan.parameters["final_read_timeout_s"])
            if stopped():
                return
            restart_s = self._now_s() + self._plan.parameters["restart_interval_s"]
            while not stopped() and self._now_s() < restart_s:
                yield self.commit()
                yield Pause(self._plan.parameters["commit_interval_s"], until_stopped=True)

    def commit(self) -> Commit:
        """Return a commit of every partition, one position further."""
        self.positions = {partition: position + 1 for partition, position in self.positions.items()}
        return self.commits.invoke(self.positions, wait=True)

    def read_back(self, deadline_s: float) -> Script[None]:
        """Read every position back, and continue from there."""
        for partition in self.positions:
            while self._now_s() < deadline_s:
                answer = yield from ask(self._recorder, self._plan.process, OpKind.FETCH_COMMITTED, partition)
                if answer is not None:
                    self.positions[partition] = max(self.positions[partition], answer.offset)
                    break
                yield Pause(RETRY_S)
