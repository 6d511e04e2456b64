"""The rules of a group member: read the assigned partitions from the committed positions, and commit.

Callbacks arrive within a poll, or while the member leaves: a shell then carries out what `assigned`, `revoked` or
`lost` yield before it continues. Records before a callback end one poll, those after it begin another.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from harness.client_rules.committing import Commits
from harness.client_rules.steps import (
    RETRY_S,
    Assign,
    Leave,
    Pause,
    Poll,
    Restart,
    Script,
    StepResult,
    Subscribe,
    Unassign,
    ask,
    partitions_of,
)
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType, Record
from harness.store.recording import Identity, Recorder
from harness.values import TopicPartition

SUBSCRIBED = "subscribe"
"""Mode of a member's polls."""
EAGER, COOPERATIVE = "eager", "cooperative"
PROTOCOLS = {"range": EAGER, "cooperative-sticky": COOPERATIVE}
"""By the assignor's name, whether a rebalance revokes everything (eager) or only what moves (cooperative)."""
MANUAL, AUTOMATIC, TRANSACTIONAL = "manual", "automatic", "transactional"
"""How a member commits: by itself, by its library, or in transactions."""
SETTLE_S = 0.5
"""Between two checks whether the group has reached the end."""
LEFT_S = 1.0
"""How long to wait after leaving, so that the coordinator's log lines about it are written before the run ends.

Of an instance, which leaves without a request, that is when its session is over.
"""


class Subscribing:
    """One member of a group, over all its restarts."""

    def __init__(
        self,
        plan: ClientPlan,
        recorder: Recorder,
        now_s: Callable[[], float],
        *,
        library_commits: bool = False,
        at_once: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make the rules of one member.

        Args:
            plan: The group, and its parameters.
            recorder: Records its operations.
            now_s: A clock.
            library_commits: Whether the library commits by itself, and reports it to `commits.answered`.
            at_once: Whether a stopped member leaves at once, even if there are records left to read.
        """
        self._at_once = at_once
        self.group: str = plan.parameters["group"]
        self.protocol = PROTOCOLS[plan.parameters["assignor"]]
        self.commits = Commits(self.group, recorder, plan.parameters["commits"])
        self.positions: dict[TopicPartition, int] = {}
        """Of each partition that it owns, the next offset that a poll will return; -1 if unknown."""
        self.library_commits = library_commits
        self._commits_manually = plan.parameters["commits"] == MANUAL
        self._commit_due_s = 0.0
        self._subscribing: Operation | None = None
        """Until the first assignment."""
        self._poll: Operation | None = None
        self._in_poll = False
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._plan = plan
        self._recorder = recorder
        self._now_s = now_s

    def known_as(self, member: str, generation: int) -> None:
        """Record the member's new identity; an evicted library has cleared its own, so the last known one counts."""
        if member:
            instance = self._plan.parameters["instance"]
            self._recorder.identity = Identity(member=member, instance=instance, generation=generation)

    def script(self, stopped: Callable[[], bool]) -> Script[bool]:
        """Be a member until `stopped`, or come and go; then read until the group reaches the end, and leave.

        Returns whether the group has, by the checks made so far.
        """
        stay_s, away_s = self._plan.parameters["stay_s"], self._plan.parameters["away_s"]
        while True:
            yield from self._subscribe()
            until_s = self._now_s() + self._about(stay_s) if stay_s else float("inf")
            while not stopped() and self._now_s() < until_s:
                yield from self._work()
            if stopped():
                break
            yield from self._leave()
            yield Pause(self._about(away_s), until_stopped=True)
        whole = False
        if not self._at_once():
            whole = yield from self.read_to_the_end(self._now_s() + self._plan.parameters["final_read_timeout_s"])
        yield from self._leave()
        silent_s = self._plan.parameters["session_timeout_ms"] / 1000 if self._plan.parameters["instance"] else 0.0
        yield Pause(silent_s + LEFT_S)
        return whole

    def _about(self, length_s: float) -> float:
        return length_s * self._rng.uniform(0.5, 1.5)

    def _subscribe(self) -> Script[None]:
        yield Restart()
        self._recorder.identity = Identity(instance=self._plan.parameters["instance"])
        self.positions = {}
        self._subscribing = self._recorder.invoke(
            OpKind.SUBSCRIBE, group=self.group, mode=self._plan.parameters["assignor"]
        )
        yield Subscribe()

    def _leave(self) -> Script[None]:
        leaving = self._recorder.invoke(OpKind.LEAVE, group=self.group)
        yield Leave()
        self._recorder.end(leaving, OpType.OK)

    def _work(self) -> Script[None]:
        """Poll, and commit when due; a fenced member starts again, as a supervised application would."""
        if (yield from self.poll()):
            yield from self._leave()
            yield Pause(self._about(self._plan.parameters["away_s"]), until_stopped=True)
            yield from self._subscribe()
        elif self._commits_manually and self._now_s() >= self._commit_due_s:
            yield from self._commit()
            self._commit_due_s = self._now_s() + self._plan.parameters["commit_interval_s"]

    # --- polling and committing ---

    def poll(self) -> Script[bool]:
        """Take records, and return whether it was fenced; a poll before the first assignment is no operation."""
        self._in_poll = True
        self._begin_poll()
        answer = yield Poll()
        self._end_poll(answer)
        self._in_poll = False
        if answer.is_over and self._subscribing is not None:
            self._recorder.end(self._subscribing, OpType.FAIL, error=answer.error or "")
            self._subscribing = None
        return answer.is_over

    def _begin_poll(self) -> None:
        if self._in_poll and self._subscribing is None:
            self._poll = self._recorder.invoke(OpKind.POLL, group=self.group, mode=SUBSCRIBED)

    def _end_poll(self, answer: StepResult) -> None:
        for record in answer.records:
            self.positions[record.topic, record.partition] = record.offset + 1
        for partition, position in answer.passed.items():
            if partition in self.positions:
                self.positions[partition] = max(position, self.positions[partition])
        if self._poll is not None:
            outcome = OpType.OK if answer.records or answer.error is None else OpType.FAIL
            self._recorder.end(self._poll, outcome, records=answer.records, error=answer.error or "")
            self._poll = None

    def _commit(self, among: Iterable[TopicPartition] | None = None) -> Script[None]:
        """Commit positions that advanced since the last stored commit, and wait for the answer."""
        moved = {
            partition: self.positions[partition]
            for partition in sorted(self.positions if among is None else among)
            if self.positions.get(partition, -1) > self.commits.acknowledged.get(partition, -1)
        }
        if moved:
            yield self.commits.invoke(moved, wait=True)

    # --- what the group says ---

    def assigned(self, partitions: Iterable[TopicPartition], before: tuple[Record, ...] = ()) -> Script[None]:
        """Own partitions from now on, and read each from the group's committed position.

        Args:
            partitions: The new ones.
            before: Records that this poll returned before.
        """
        invoked = self._begin(OpKind.ASSIGNED, partitions, before)
        deadline_s = self._now_s() + self._plan.parameters["max_poll_interval_ms"] / 2000
        positions: dict[TopicPartition, int | None] = {}
        for partition in invoked:
            answer = yield from self._committed(partition, deadline_s)
            positions[partition] = None if answer is None else max(-1, answer.offset)
        yield Assign(positions)
        for partition, operation in invoked.items():
            position = positions[partition]
            self.positions[partition] = -1 if position is None else position
            self.commits.acknowledged[partition] = self.positions[partition]
            if position is None:
                error = "the committed position of the group is unknown"
                self._recorder.end(operation, OpType.INFO, error=error)
            else:
                self._recorder.end(operation, OpType.OK, offset=position)
        self._end_subscribe()
        self._begin_poll()

    def revoked(self, partitions: Iterable[TopicPartition], before: tuple[Record, ...] = ()) -> Script[None]:
        """Commit how far partitions have been read, and give them back."""
        yield from self._give_up(OpKind.REVOKED, partitions, before)

    def lost(self, partitions: Iterable[TopicPartition], before: tuple[Record, ...] = ()) -> Script[None]:
        """Give up partitions that may belong to another member by now."""
        yield from self._give_up(OpKind.LOST, partitions, before)

    def _give_up(self, kind: OpKind, partitions: Iterable[TopicPartition], before: tuple[Record, ...]) -> Script[None]:
        invoked = self._begin(kind, partitions, before)
        if kind is OpKind.REVOKED and self._commits_manually:
            yield from self._commit(invoked)
        yield Unassign(tuple(invoked))
        for partition, operation in invoked.items():
            self.positions.pop(partition, None)
            self._recorder.end(operation, OpType.OK)
        self._begin_poll()

    def _begin(
        self, kind: OpKind, partitions: Iterable[TopicPartition], before: tuple[Record, ...]
    ) -> dict[TopicPartition, Operation]:
        self._end_poll(StepResult(records=before))
        return {
            (topic, partition): self._recorder.invoke(
                kind,
                topic=topic,
                partition=partition,
                offset=self.positions.get((topic, partition), -1),
                group=self.group,
                mode=self.protocol,
            )
            for topic, partition in sorted(partitions)
        }

    def _end_subscribe(self) -> None:
        if self._subscribing is not None:
            identity = self._recorder.identity
            known = replace(self._subscribing, member=identity.member, generation=identity.generation)
            self._recorder.end(known, OpType.OK)
            self._subscribing = None

    def _committed(self, partition: TopicPartition, deadline_s: float) -> Script[StepResult | None]:
        """Return the committed position of the group; None if no coordinator answers in time."""
        while True:
            answer = yield from ask(self._recorder, self.group, OpKind.FETCH_COMMITTED, partition)
            if answer is not None or self._now_s() >= deadline_s:
                return answer
            yield Pause(RETRY_S)

    # --- the end ---

    def read_to_the_end(self, deadline_s: float) -> Script[bool]:
        """Work until the group has committed the end of every partition; False past the deadline."""
        left = partitions_of(self._plan.topics)
        while left and self._now_s() < deadline_s:
            settle_s = self._now_s() + SETTLE_S
            while self._now_s() < settle_s:
                yield from self._work()
            behind = []
            for partition in left:
                if not (yield from self._is_at_the_end(partition)):
                    behind.append(partition)
                yield from self._work()
            left = behind
        return not left

    def _is_at_the_end(self, partition: TopicPartition) -> Script[bool]:
        end = yield from ask(self._recorder, self.group, OpKind.END_OFFSET, partition)
        committed = yield from ask(self._recorder, self.group, OpKind.FETCH_COMMITTED, partition)
        return end is not None and committed is not None and max(0, committed.offset) >= end.offset
