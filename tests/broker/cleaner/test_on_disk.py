"""A cleaned log on a real disk: it is found again, and Kafka's own dump tool reads it."""

from pathlib import Path

import pytest

from harness.broker.log.batch import Numbering
from harness.broker.log.compression import CODEC_NAMES
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.log import Log
from harness.broker.log.manager import LogManager
from tests.broker.cleaner.compacted import COMPACTED, bases, batch, clean, contents, rolled
from tests.kafka_tools import dumps, needs_kafka, takes_turns

pytestmark = pytest.mark.real_time("a real disk, for which a thread of its own waits")

LEFT = [(10, "k-0", "0"), (11, "k-1", "1"), (12, "k-2", "2"), (13, "k-3", "3"), (14, "k-4", "4"), (15, "gone", None)]


def manager(folder: Path) -> LogManager:
    logs = LogManager(FileStorage(folder), COMPACTED)
    logs.load()
    return logs


async def cleaned(logs: LogManager) -> Log:
    """Batches of all codecs, a tombstone, and an emptied batch of an idempotent producer."""
    log = logs.get_or_create("t", 0)
    for _ in range(2):
        for codec in CODEC_NAMES:
            log.append_as_leader(
                batch((f"k-{codec}", f"{codec}"), codec=codec, numbering=Numbering(9, 0, log.log_end_offset)), 3
            )
    for codec in CODEC_NAMES:
        log.append_as_leader(batch((f"k-{codec}", f"{codec}"), codec=codec), 3)
    log.append_as_leader(batch(("gone", None)), 3)
    await clean(rolled(log))
    await logs.checkpoint_cleaner_offsets()
    return log


async def test_a_cleaned_log_is_found_again_after_a_stop_and_after_a_crash(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = await cleaned(logs)
    assert contents(log) == LEFT
    before = bases(log)
    log.close()
    crashed = manager(tmp_path)
    reopened = crashed.get("t", 0)
    assert reopened is not None
    assert (contents(reopened), bases(reopened), reopened.cleaned_to) == (LEFT, before, 16)
    crashed.close_clean()
    again = manager(tmp_path).get("t", 0)
    assert again is not None
    assert (contents(again), again.log_end_offset) == (LEFT, 16)
    names = {path.name for path in (tmp_path / "t-0").iterdir()}
    assert not {name for name in names if name.endswith((".cleaned", ".swap"))}


def dumped(folder: Path) -> str:
    return "".join(dumps(sorted(folder.glob("t-0/*.log"))).values())


@pytest.mark.cluster
@needs_kafka
@takes_turns
async def test_kafka_reads_what_a_cleaner_has_left(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    await cleaned(logs)
    logs.close_clean()
    dump = dumped(tmp_path)
    assert dump.count("isvalid: true") == dump.count("baseOffset: ") > 0
    assert "isvalid: false" not in dump
    assert [f"offset: {offset} " in dump for offset, _, _ in LEFT] == [True] * len(LEFT)
    assert "deleteHorizonMs: OptionalLong[" in dump
