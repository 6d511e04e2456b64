"""A broker that dies at any step of a cleaning starts again with a whole log: old, new, or some of both.

A record that was gone already may be back, where the segment that held it outlived the crash; it goes again with the
next cleaning, and no reader is misled: a reader of the whole log gets the same.
"""

from dataclasses import dataclass

import pytest

from harness.broker.log.log import Log
from harness.broker.log.manager import LogManager
from harness.broker.log.swap import finish_swap
from harness.simulation.disk import MemoryFile, MemoryStorage
from tests.broker.cleaner.compacted import COMPACTED, bases, batch, clean, compacted_log, contents, reopened, rolled

OLD, CLEAN, SWAP = "old", ".cleaned", ".swap"


class Crash(BaseException):
    """The broker is dead; no handler of an error has a say."""


@dataclass(eq=False)
class MortalStorage(MemoryStorage):
    """A disk whose broker dies before the step of that number."""

    steps_left: int | None = None

    def step(self) -> None:
        if self.steps_left == 0:
            raise Crash
        if self.steps_left is not None:
            self.steps_left -= 1

    def take(self, size: int) -> None:
        self.step()
        super().take(size)

    def commit(self) -> None:
        self.step()
        super().commit()

    def move(self, old: str, new: str) -> None:
        self.step()
        super().move(old, new)

    def remove(self, path: str) -> None:
        self.step()
        super().remove(path)


def dirty_log(storage: MemoryStorage) -> Log:
    """Six segments of two records, of which the cleaner makes two; synced, with indexes on disk."""
    log = compacted_log(storage, segment_bytes=160)
    for key in "abcabdabeabf":
        log.append_as_leader(batch((key, f"{key}-{log.log_end_offset}")), 3)
    log.append_as_leader(batch(("z", "last")), 3)
    log.flush()
    log.seal()
    log.expect_gaps()
    log.settings = compacted_log(segment_bytes=500).settings
    return log


LAST = {"a": "a-9", "b": "b-10", "c": "c-2", "d": "d-5", "e": "e-8", "f": "f-11", "z": "last"}


async def steps_of_a_cleaning() -> int:
    storage = MortalStorage()
    log = dirty_log(storage)
    storage.steps_left = 10_000
    await clean(log)
    assert bases(log) == [0, 6, 12]
    return 10_000 - storage.steps_left


@pytest.mark.parametrize("power_lost", [False, True])
async def test_a_crash_at_any_step_leaves_a_whole_log(power_lost: bool) -> None:
    steps = await steps_of_a_cleaning()
    assert steps > 20
    layouts = set()
    for step in range(steps):
        storage = MortalStorage()
        log = dirty_log(storage)
        before = contents(log)
        storage.steps_left = step
        with pytest.raises(Crash):
            await clean(log)
        storage.steps_left = None
        if power_lost:
            storage.lose_power()
        layouts.add(tuple(name for name in storage.list("t-0") if ".log" in name))
        again = reopened(storage, cleaned_to=0, recovery_point=13, segment_bytes=500)
        records = contents(again)
        assert {key: value for _, key, value in records} == LAST, f"step {step}"
        assert set(records) <= set(before)
        assert again.log_end_offset == 13
        assert {name.rpartition(".")[2] for name in storage.list("t-0")} <= {
            "log",
            "index",
            "timeindex",
            "leader-epoch-checkpoint",
            "snapshot",
        }
        await clean(rolled(again))
        assert {key: value for _, key, value in contents(again)} == LAST
        assert len(contents(again)) == len(LAST)
    assert len(layouts) >= (2 if power_lost else 8)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        pytest.param({0: OLD, 5: OLD, 10: OLD}, {0: OLD, 5: OLD, 10: OLD}, id="nothing was begun"),
        pytest.param({0: OLD + CLEAN, 5: OLD, 10: OLD}, {0: OLD, 5: OLD, 10: OLD}, id="what was half made goes"),
        pytest.param({0: OLD + SWAP, 5: OLD, 10: OLD}, {0: SWAP, 10: OLD}, id="no old segment was removed yet"),
        pytest.param({0: SWAP, 5: OLD, 10: OLD}, {0: SWAP, 10: OLD}, id="the first one was"),
        pytest.param({0: SWAP, 10: OLD}, {0: SWAP, 10: OLD}, id="all were"),
        pytest.param({0: OLD, 5: OLD + SWAP, 10: OLD}, {0: OLD, 5: SWAP, 10: OLD}, id="a swap of a later segment"),
        pytest.param({0: OLD + CLEAN, 5: SWAP, 10: OLD}, {0: OLD, 5: SWAP, 10: OLD}, id="one of each"),
    ],
)
def test_what_a_start_makes_of_what_it_finds(files: dict[int, str], left: dict[int, str]) -> None:
    storage = MemoryStorage()
    storage.make_folder("t-0")
    for base_offset, kinds in files.items():
        for kind in (OLD, CLEAN, SWAP):
            if kind in kinds:
                add_segment(storage, base_offset, kind)
    finish_swap(storage, "t-0")
    names = {name for name in storage.list("t-0") if name.endswith(".log")}
    assert names == {f"{base_offset:020d}.log" for base_offset in left}
    assert storage.list("t-0") == sorted(
        names | {f"{base:020d}{ending}" for base, kind in left.items() if kind == OLD for ending in INDEXES}
    )
    for base_offset, kind in left.items():
        assert kind.encode() in storage.read(f"t-0/{base_offset:020d}.log")


INDEXES = (".index", ".timeindex")


def add_segment(storage: MemoryStorage, base_offset: int, kind: str) -> None:
    """Records that say which file they are in: of an old segment five, of one that is new up to offset 9."""
    name = f"t-0/{base_offset:020d}"
    last = base_offset + 4 if kind == OLD else 9
    data = bytearray(batch(*[("k", kind)] * (last - base_offset + 1)))
    data[:8] = base_offset.to_bytes(8, "big")
    if kind == OLD:
        for ending in INDEXES:
            storage.files[name + ending] = MemoryFile(storage)
    storage.files[f"{name}.log{'' if kind == OLD else kind}"] = MemoryFile(storage, data)


# --- what a broker knows at its start ---


def manager(storage: MemoryStorage) -> LogManager:
    logs = LogManager(storage, COMPACTED)
    logs.load()
    return logs


async def cleaned_by_a_broker(storage: MemoryStorage) -> Log:
    logs = manager(storage)
    log = logs.get_or_create("t", 0)
    for key in "abababcd":
        log.append_as_leader(batch((key, key)), 0)
    await clean(rolled(log))
    await logs.checkpoint_cleaner_offsets()
    return log


@pytest.mark.parametrize(
    ("checkpoint", "cleaned_to"),
    [
        pytest.param(b"0\n1\nt 0 8\n", 8, id="a checkpoint says how far it was cleaned"),
        pytest.param(b"garbage", 0, id="one that cannot be read: all is dirty, and offsets may be missing"),
    ],
)
async def test_a_start_after_a_crash_takes_gaps_for_what_they_are(checkpoint: bytes, cleaned_to: int) -> None:
    storage = MemoryStorage()
    log = await cleaned_by_a_broker(storage)
    storage.replace("cleaner-offset-checkpoint", checkpoint)
    again = manager(storage).get("t", 0)
    assert again is not None
    assert contents(again) == contents(log) == [(4, "a", "a"), (5, "b", "b"), (6, "c", "c"), (7, "d", "d")]
    assert (again.log_end_offset, again.cleaned_to) == (8, cleaned_to)


def test_without_a_cleaner_a_gap_is_damage() -> None:
    storage = MemoryStorage()
    log = compacted_log(storage, segment_bytes=160)
    for key in "abcdef":
        log.append_as_leader(batch((key, key)), 0)
    storage.remove(log.segments[1].path)
    assert reopened(storage).log_end_offset == 2
    assert log.cleaned_to is None


async def test_the_checkpoint_is_kafkas() -> None:
    storage = MemoryStorage()
    await cleaned_by_a_broker(storage)
    assert storage.read("cleaner-offset-checkpoint") == b"0\n1\nt 0 8\n"


@pytest.mark.parametrize(
    ("change", "checkpoint"),
    [
        pytest.param(lambda logs, log: log.truncate_to(6), b"0\n1\nt 0 5\n", id="to the start of the last segment"),
        pytest.param(lambda logs, log: log.truncate_fully_and_start_at(50), b"0\n1\nt 0 8\n", id="not upwards"),
        pytest.param(lambda logs, log: log.truncate_fully_and_start_at(3), b"0\n1\nt 0 3\n", id="to the only segment"),
        pytest.param(lambda logs, log: logs.delete("t", 0), b"0\n0\n", id="forgotten with the log"),
    ],
)
async def test_a_truncation_lowers_the_checkpoint_at_once(change: object, checkpoint: bytes) -> None:
    storage = MemoryStorage()
    await cleaned_by_a_broker(storage)
    logs = manager(storage)
    assert callable(change)
    change(logs, logs.get("t", 0))
    assert storage.read("cleaner-offset-checkpoint") == checkpoint


async def test_a_follower_takes_a_leaders_gaps_and_finds_them_after_a_crash() -> None:
    leader = await cleaned_by_a_broker(MemoryStorage())
    leader.append_as_leader(batch(("e", "e")), 0)
    storage = MemoryStorage()
    follower = manager(storage).get_or_create("t", 0)
    data = leader.read(0, max_bytes=1 << 20, up_to=9, at_least_one=True)
    follower.append_as_follower(data)
    assert storage.read("cleaner-offset-checkpoint") == b"0\n1\nt 0 0\n"
    again = manager(storage).get("t", 0)
    assert again is not None
    assert contents(again) == contents(leader)
    assert (again.log_end_offset, again.cleaned_to) == (9, 0)


async def test_a_log_that_is_cut_within_a_gap_ends_where_it_was_cut() -> None:
    leader = await cleaned_by_a_broker(MemoryStorage())
    leader.append_as_leader(batch(("e", "e")), 0)
    leader.truncate_to(8)
    assert leader.log_end_offset == 8
    leader.truncate_to(2)
    assert (leader.log_end_offset, contents(leader)) == (2, [])
    assert leader.append_as_leader(batch(("f", "f")), 1).base_offset == 2
