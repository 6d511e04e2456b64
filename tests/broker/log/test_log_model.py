"""Any sequence of appends, truncations, flushes, restarts and power losses leaves what a plain list would hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.broker.log.epoch_cache import LeaderEpochCache
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import at_once, batch, headers, new_log, opened


class LogMachine(RuleBasedStateMachine):
    """`batches` holds (base offset, last offset, epoch) of each batch that must be in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = MemoryStorage()
        self.log = new_log(self.storage)
        self.batches: list[tuple[int, int, int]] = []
        self.start = 0
        self.flushed = 0
        self.epoch = 0
        self.times: dict[int, int] = {}
        """The timestamp of every offset that was ever written, as it was written last."""

    @property
    def end(self) -> int:
        return self.batches[-1][1] + 1 if self.batches else self.start

    @rule(count=st.integers(1, 5), newer=st.integers(0, 2), time=st.integers(0, 30))
    def append_as_leader(self, count: int, newer: int, time: int) -> None:
        self.epoch += newer
        assert self.log.append_as_leader(batch(count, timestamp_ms=time), self.epoch).base_offset == self.end
        self.times |= {self.end + number: time + number for number in range(count)}
        self.batches.append((self.end, self.end + count - 1, self.epoch))

    @rule(counts=st.lists(st.integers(1, 5), min_size=1, max_size=6))
    def append_as_follower(self, counts: list[int]) -> None:
        sent = b""
        for count in counts:
            sent += batch(count, base_offset=self.end, epoch=self.epoch)
            self.times |= {self.end + number: number for number in range(count)}
            self.batches.append((self.end, self.end + count - 1, self.epoch))
        self.log.append_as_follower(sent)

    @rule(back=st.integers(-2, 12))
    def truncate(self, back: int) -> None:
        offset = max(self.end - back, 0)
        self.log.truncate_to(offset)
        self.batches = [b for b in self.batches if b[1] < offset]
        self.start = min(self.start, offset)
        self.flushed = min(self.flushed, offset)

    @rule(ahead=st.integers(0, 10))
    def start_over(self, ahead: int) -> None:
        self.start = self.end + ahead
        self.batches = []
        self.flushed = self.start
        self.log.truncate_fully_and_start_at(self.start)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule()
    def checkpoint(self) -> None:
        at_once(self.log.flush_rolled())
        self.flushed = max(self.flushed, self.log.recovery_point)

    @rule(clean=st.booleans(), large=st.booleans())
    def restart(self, clean: bool, large: bool) -> None:
        if clean:
            self.log.flush()
            for segment in self.log.segments if large else self.log.segments[:-1]:
                segment.seal()
        self.reopen(clean=clean)

    @rule()
    def lose_power(self) -> None:
        """At least what was flushed is left; a truncation syncs what stands before it in its segment, too."""
        self.storage.lose_power()
        flushed = self.flushed
        self.reopen(clean=False)
        self.batches = [b for b in self.batches if b[1] < self.log.log_end_offset]
        self.flushed = self.end
        assert self.end >= flushed

    @precondition(lambda self: self.batches)
    @rule(left=st.integers(0, 60))
    def fill_the_disk(self, left: int) -> None:
        self.storage.space_left = left
        try:
            self.log.append_as_leader(batch(), self.epoch)
        except OSError:
            self.storage.space_left = None
        else:
            raise AssertionError("a batch of more than 60 bytes cannot have fitted")

    def reopen(self, *, clean: bool) -> None:
        self.log, _ = opened(
            self.storage,
            clean=clean,
            recovery_point=self.log.recovery_point,
            log_start_offset=self.log.log_start_offset,
        )
        self.flushed = self.end

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        stored = self.log.read(self.start, max_bytes=1 << 20, up_to=self.end, at_least_one=True)
        assert [(h.base_offset, h.last_offset, h.leader_epoch) for h in headers(stored)] == self.batches

    @invariant()
    def every_batch_can_be_read_by_any_of_its_offsets(self) -> None:
        for base, last, _ in self.batches[::3]:
            for offset in (base, last):
                batches = headers(self.log.read(offset, max_bytes=1, up_to=self.end, at_least_one=True))
                assert [(h.base_offset, h.last_offset) for h in batches] == [(base, last)]

    @invariant()
    def every_time_is_found(self) -> None:
        held = [offset for base, last, _ in self.batches for offset in range(base, last + 1)]
        for time in (0, 3, 17, 34):
            wanted = next(((offset, self.times[offset]) for offset in held if self.times[offset] >= time), None)
            assert self.log.offset_for_timestamp(time) == wanted

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        wanted = LeaderEpochCache()
        for base, _, epoch in self.batches:
            wanted.assign(epoch, base)
        assert list(self.log.epochs)[: len(wanted)] == list(wanted)
        assert all(entry.start_offset >= self.end for entry in list(self.log.epochs)[len(wanted) :])

    @invariant()
    def nothing_is_held_to_be_synced_that_is_not(self) -> None:
        assert self.log.recovery_point <= min(self.flushed, self.end)


LogMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, derandomize=True)
TestLogModel = LogMachine.TestCase
