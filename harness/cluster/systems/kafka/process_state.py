"""What is known of one process from the lines that it has logged so far, for lines that do not say it again."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.broker.wire.sentinels import NO_EPOCH
from harness.events import NO_OFFSET, ControlledPartition, IsrPropose, ProduceResponse
from harness.values import TopicPartition

LEADER, FOLLOWER = "leader", "follower"
LATE_NS = 1_000_000_000
"""For so long after an answer a thread may yet log what it did before it: a high watermark, an ISR that it proposed."""
LONGEST_GAP_NS = 100_000_000
"""As so long counts a gap between two lines: a process that is stopped in it logs the rest when it goes on."""
MOST_APPENDED = 1000
"""Of so many batches of a partition an answer is awaited; some never get one, as those of acks=0."""


@dataclass(slots=True, kw_only=True)
class Replica:
    """A replica as its broker has told of it."""

    role: str
    leader_epoch: int
    isr: list[int]
    """Empty on a follower."""
    zk_version: int
    start_offset: int = NO_OFFSET
    """Of a leader: where its log ended when its epoch began."""
    isr_size: int = 0
    """Of a leader: how many are in its ISR, or would be in that which it proposed last."""
    fetches_since: int = NO_EPOCH
    """Of a follower: the leader epoch that its fetcher was started in; it is stopped after the epoch has changed."""


@dataclass(slots=True, kw_only=True)
class Appended:
    """A batch that a leader appended."""

    last_offset: int
    leader_epoch: int
    isr_size: int
    """The most members that its ISR has had since, those that the leader proposed among them."""


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a leader answered a producer, until no thread has anything to log from before it."""

    time_ns: int
    due_ns: int
    """When that is, in the time that the log went on for."""
    key: TopicPartition
    acks: int
    base_offset: int
    batch: Appended
    high_watermark: int
    """The highest that was told so far."""
    correlation_id: int
    client: str
    duration_ms: float

    @property
    def event(self) -> ProduceResponse:
        """What is known of it in the end."""
        return ProduceResponse(
            correlation_id=self.correlation_id,
            client=self.client,
            topic=self.key[0],
            partition=self.key[1],
            acks=self.acks,
            base_offset=self.base_offset,
            last_offset=self.batch.last_offset,
            error=0,
            isr_size=self.batch.isr_size,
            high_watermark=self.high_watermark,
            leader_epoch=self.batch.leader_epoch,
            duration_ms=self.duration_ms,
        )


@dataclass(slots=True, kw_only=True)
class ControlRequest:
    """A control request of which a part was told."""

    controller_epoch: int
    partitions: dict[TopicPartition, ControlledPartition] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessState:
    """One process; the next one begins anew."""

    begun_before: bool = False
    """Whether it told something before the lines that are read, so that a replica without a role may have one."""
    session: int = 0
    """Id of its ZooKeeper session; 0 for none."""
    broker_epoch: int = -1
    """czxid of its registration."""
    expired: bool = False
    quorum_epoch: int = -1
    """Epoch in which it leads the quorum of controllers; -1 if it does not."""
    disk_error: str = ""
    """The last that it told of."""
    handed_over: bool = False
    """Whether the controller has moved all leaders away from it."""
    replicas: dict[TopicPartition, Replica] = field(default_factory=dict)
    """Those that it leads or follows."""
    log_ends: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    """Of a leader its last; of a follower the least that it can be, for its rises there are not told."""
    follower_ends: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    """Where the logs of followers end, by what they fetched last from this process."""
    proposals: dict[TopicPartition, IsrPropose] = field(default_factory=dict)
    """The last of each partition to take a follower in; the log end is logged later."""
    appended: dict[TopicPartition, dict[int, Appended]] = field(default_factory=dict)
    """As leader, without an answer, by first offset."""
    answers: deque[Answer] = field(default_factory=deque)
    """Those that are not due yet, in order."""
    requests: dict[tuple[int, int], "ControlRequest"] = field(default_factory=dict)
    """LeaderAndIsr requests that it is at, by sender and correlation id."""
    deletions: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    """Replicas to delete: the controller that asked, its controller epoch, and the leader epoch."""

    time_ns: int = 0
    """The instant of the line that is read."""
    lasted_ns: int = 0
    """For how long the log has gone on."""

    def reads(self, time_ns: int) -> None:
        """Note the instant of a line; two threads may log in another order than that of their instants."""
        gap_ns = time_ns - self.time_ns if self.time_ns else 0
        self.lasted_ns += min(max(gap_ns, 0), LONGEST_GAP_NS)
        self.time_ns = time_ns

    def due(self) -> Iterator[Answer]:
        """Yield the answers of which everything was logged by now, and forget them."""
        while self.answers and self.answers[0].due_ns <= self.lasted_ns:
            yield self.answers.popleft()

    def reaches(self, key: TopicPartition, high_watermark: int) -> None:
        """Note how far a high watermark is."""
        self.high_watermarks[key] = high_watermark
        for answer in self.answers:
            if answer.key == key:
                answer.high_watermark = max(answer.high_watermark, high_watermark)

    def has_in_sync(self, key: TopicPartition, size: int) -> None:
        """Note how many are in the ISR of a partition that it leads, or would be."""
        self.replicas[key].isr_size = size
        batches = [*self.appended.get(key, {}).values(), *(each.batch for each in self.answers if each.key == key)]
        for batch in batches:
            batch.isr_size = max(batch.isr_size, size)

    def appends(self, key: TopicPartition, base_offset: int, batch: Appended) -> None:
        """Note a batch that a producer may get an answer about."""
        batches = self.appended.setdefault(key, {})
        batches[base_offset] = batch
        if len(batches) > MOST_APPENDED:
            del batches[next(iter(batches))]

    def forgets(self, key: TopicPartition) -> None:
        """Forget a replica that is gone."""
        for known in (self.replicas, self.log_ends, self.high_watermarks, self.follower_ends, self.proposals):
            known.pop(key, None)
        self.appended.pop(key, None)

    def previous_epoch(self, key: TopicPartition) -> int:
        """Return the epoch before this one; Kafka's own lines of followers have the present one for it."""
        before = self.replicas.get(key)
        return NO_EPOCH if before is None else before.leader_epoch
