"""Three logs under any appends, elections, fetches and failures: equal epochs mean equal records, commits stay."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.broker.log.batch import build_batch, iter_batches
from harness.broker.log.log import Log
from harness.broker.log.records import Record
from harness.broker.replicas.replication import (
    FollowerProgress,
    follower_high_watermark,
    may_join_isr,
    next_high_watermark,
    truncation_after,
    truncation_without_epochs,
)
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import everything, new_log, opened

REPLICAS = (0, 1, 2)
LAG_S = 10.0
NO_EPOCH = -1

replicas = st.sampled_from(REPLICAS)
picks = st.integers(0, 5)
"""Which of those that can."""


def _picked(able: list[int], pick: int) -> int:
    return able[pick % len(able)]


@dataclass
class Decided:
    """The partition's state in ZooKeeper."""

    leader: int = 0
    leader_epoch: int = 0
    isr: frozenset[int] = frozenset(REPLICAS)


@dataclass
class Replica:
    """One log, and what its broker believes."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    log: Log = field(init=False)
    knows: Decided = field(default_factory=lambda: Decided(leader=-1, leader_epoch=NO_EPOCH))
    high_watermark: int = 0
    checkpointed: int = 0
    """Its high watermark on disk."""
    truncating: bool = False
    epoch_start: int = 0
    followers: dict[int, FollowerProgress] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = new_log(self.storage)

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def prints(self) -> list[tuple[int, int, int]]:
        """Base offset, leader epoch and CRC of every batch."""
        return [(h.base_offset, h.leader_epoch, h.crc) for h, _ in iter_batches(everything(self.log))]

    def truncate(self, to: int) -> None:
        self.log.truncate_to(to)
        self.high_watermark = min(self.high_watermark, self.end)


class ReplicatedLogs(RuleBasedStateMachine):
    """`committed` holds the leader epoch and CRC of every batch below any leader's high watermark."""

    def __init__(self) -> None:
        super().__init__()
        self.decided = Decided()
        self.replicas = [Replica() for _ in REPLICAS]
        self.committed: dict[int, tuple[int, int]] = {}
        self.written = 0
        self.tell(REPLICAS)

    def leaders(self) -> list[int]:
        """Brokers that believe that they lead."""
        return [number for number, replica in enumerate(self.replicas) if replica.knows.leader == number]

    def followers(self, *, truncating: bool) -> list[int]:
        """Followers in the leader's epoch: others are fenced."""
        return [
            number
            for number, (replica, knows) in enumerate((each, each.knows) for each in self.replicas)
            if number != knows.leader >= 0
            and replica.truncating == truncating
            and self.replicas[knows.leader].knows.leader_epoch == knows.leader_epoch
        ]

    @precondition(lambda self: bool(self.leaders()))
    @rule(pick=picks, count=st.integers(1, 3))
    def append(self, pick: int, count: int) -> None:
        number = _picked(self.leaders(), pick)
        self.written += 1
        records = [Record(value=b"%d.%d" % (self.written, at), timestamp_ms=at) for at in range(count)]
        replica = self.replicas[number]
        replica.log.append_as_leader(build_batch(records), replica.knows.leader_epoch)
        self.commit(number)

    @rule(number=replicas)
    def hear(self, number: int) -> None:
        """A LeaderAndIsr reaches a broker."""
        replica, news = self.replicas[number], self.decided
        if replica.knows.leader_epoch == news.leader_epoch:
            return
        led = replica.knows.leader == number
        replica.knows = Decided(news.leader, news.leader_epoch, news.isr)
        if news.leader != number:
            replica.truncating = True
            return
        assert self.committed.items() <= {base: tuple(rest) for base, *rest in replica.prints()}.items(), "incomplete"
        replica.log.assign_epoch(news.leader_epoch, replica.end)
        replica.epoch_start = replica.end
        for other in set(REPLICAS) - {number}:
            progress = replica.followers.setdefault(other, FollowerProgress())
            progress.start_term(replica.end, 0.0, in_isr=other in news.isr, was_leader=led)
        self.commit(number)

    @precondition(lambda self: self.followers(truncating=True))
    @rule(pick=picks)
    def truncate(self, pick: int) -> None:
        """A follower takes a step back, as its leader's epochs say."""
        replica = self.replicas[_picked(self.followers(truncating=True), pick)]
        leader = self.replicas[replica.knows.leader]
        asked_epoch = replica.log.epochs.latest_epoch
        if asked_epoch == NO_EPOCH:
            step = truncation_without_epochs(replica.high_watermark)
        else:
            answer = leader.log.epochs.end_offset_for(asked_epoch, leader.end)
            own = replica.log.epochs.end_offset_for(answer.epoch, replica.end)
            step = truncation_after(answer, own, replica.end, replica.high_watermark)
        replica.truncate(step.to)
        replica.truncating = not step.done

    @precondition(lambda self: self.followers(truncating=False))
    @rule(pick=picks, max_bytes=st.sampled_from([1, 200, 1 << 20]))
    def fetch(self, pick: int, max_bytes: int) -> None:
        """A follower fetches; its leader sees what it has, and may take it into the ISR."""
        number = _picked(self.followers(truncating=False), pick)
        replica = self.replicas[number]
        leader = self.replicas[replica.knows.leader]
        progress = leader.followers[number]
        assert replica.end <= leader.end
        progress.fetched(replica.end, leader.end, 0.0)
        joins = may_join_isr(replica.end, leader.high_watermark, leader.epoch_start)
        if joins and number not in leader.knows.isr:
            self.propose(replica.knows.leader, leader.knows.isr | {number})
        records = leader.log.read(replica.end, max_bytes=max_bytes, up_to=leader.end, at_least_one=True)
        self.commit(replica.knows.leader)
        if records:
            replica.log.append_as_follower(records)
        replica.high_watermark = follower_high_watermark(leader.high_watermark, 0, replica.end)

    @rule(rounds=st.integers(1, 3))
    def go_on(self, rounds: int) -> None:
        """All get the latest state, and followers fetch for a while."""
        self.tell(REPLICAS)
        for _ in range(rounds):
            for truncating in (True, False):
                for pick in range(len(self.followers(truncating=truncating)))[::-1]:
                    self.truncate(pick) if truncating else self.fetch(pick, 1 << 20)

    @precondition(lambda self: bool(self.leaders()))
    @rule(pick=picks, out=replicas)
    def shrink(self, pick: int, out: int) -> None:
        """A leader finds that a follower lags."""
        number = _picked(self.leaders(), pick)
        replica = self.replicas[number]
        if out in replica.knows.isr - {number}:
            replica.followers[out].last_caught_up_s = -LAG_S - 1
            self.propose(number, replica.knows.isr - {out})
            self.commit(number)

    @rule(number=replicas, hearing=st.sets(replicas))
    def elect(self, number: int, hearing: set[int]) -> None:
        if number in self.decided.isr:
            self.decided = Decided(number, self.decided.leader_epoch + 1, self.decided.isr)
            self.tell(hearing)

    @rule(number=replicas, hearing=st.sets(replicas))
    def expire(self, number: int, hearing: set[int]) -> None:
        """A broker is taken for dead, but lives on as what it was."""
        others = self.decided.isr - {number}
        if others:
            leader = self.decided.leader if self.decided.leader != number else min(others)
            self.decided = Decided(leader, self.decided.leader_epoch + 1, others)
            self.tell(hearing)

    @rule(number=replicas, torn=st.none() | st.integers(0, 9))
    def lose_power(self, number: int, torn: int | None) -> None:
        """A host loses what it had not synced; it has been missed, unless it was the last in sync."""
        self.expire(number, set())
        if self.decided.isr != {number}:
            self.replicas[number].storage.lose_power(None if torn is None else random.Random(torn))
            self.reopen(number)

    @rule(number=replicas)
    def reopen(self, number: int) -> None:
        """A broker is killed, starts again, before or after it was missed, and is told what it is."""
        old = self.replicas[number]
        replica = self.replicas[number] = Replica(old.storage, checkpointed=old.checkpointed)
        replica.log, _ = opened(old.storage, recovery_point=old.log.recovery_point)
        replica.high_watermark = min(old.checkpointed, replica.end)
        self.hear(number)

    @rule(number=replicas)
    def flush(self, number: int) -> None:
        self.replicas[number].log.flush()

    @rule(number=replicas)
    def checkpoint(self, number: int) -> None:
        self.replicas[number].checkpointed = self.replicas[number].high_watermark

    def tell(self, hearing: Iterable[int]) -> None:
        for number in hearing:
            self.hear(number)

    def propose(self, number: int, isr: frozenset[int]) -> None:
        """A leader writes its ISR, compared by version: a replaced one cannot."""
        knows = self.replicas[number].knows
        if (knows.leader_epoch, knows.isr) == (self.decided.leader_epoch, self.decided.isr):
            self.decided.isr = knows.isr = isr

    def commit(self, number: int) -> None:
        replica = self.replicas[number]
        replica.high_watermark = next_high_watermark(
            replica.high_watermark, replica.end, replica.knows.isr, replica.followers, 0.0, LAG_S
        )
        for base, epoch, crc in replica.prints():
            if base < replica.high_watermark:
                assert self.committed.setdefault(base, (epoch, crc)) == (epoch, crc), "committed twice"

    @invariant()
    def equal_epochs_mean_equal_records(self) -> None:
        logs = [replica.prints() for replica in self.replicas]
        for ours in logs:
            for theirs in logs:
                common = [at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a[:2] == b[:2]]
                assert not common or ours[: common[-1] + 1] == theirs[: common[-1] + 1]

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for replica in self.replicas:
            for base, epoch, _ in replica.prints():
                assert replica.log.epochs.epoch_at(base) == epoch


ReplicatedLogs.TestCase.settings = settings(max_examples=150, stateful_step_count=50, derandomize=True)
TestReplicatedLogs = ReplicatedLogs.TestCase
