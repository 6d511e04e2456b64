"""Periodic work on logs, while their topics are deleted."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from harness.broker.configs.config import parse_config
from harness.broker.log.log import Log
from harness.broker.replicas.housekeeping import Housekeeping
from harness.broker.replicas.partition import Partition
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import SMALL, end_transaction, write_in_transaction
from tests.broker.recording_state_log import RecordingStateLog
from tests.broker.replicas.test_partition import ME, NOW_S, hosting, state

PROPERTIES = {
    "broker.id": str(ME),
    "listeners": "PLAINTEXT://host:1",
    "zookeeper.connect": "host:2",
    "log.dirs": "d",
    "log.flush.scheduler.interval.ms": "1",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "1",
}


@pytest.mark.parametrize(
    "turn", [pytest.param((Log, "flush"), id="flush"), pytest.param((Partition, "retain"), id="retention")]
)
async def test_a_log_that_is_deleted_before_its_turn_is_left_alone(
    turn: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are gone: an error of the disk would take all replicas there offline."""
    replicas, _ = hosting(MemoryStorage())
    for number in (0, 1):
        partition = replicas.host("t", number)
        partition.log.settings = replace(SMALL, flush_ms=0)
        partition.make_leader(state(isr=(ME,)), NOW_S)
        for sequence in range(9):
            write_in_transaction(partition.log, sequence)
        end_transaction(partition.log, commits=False)
        partition.advance_high_watermark(NOW_S, cause="append")
    (owner, name), done = turn, list[int]()
    work: Any = getattr(owner, name)

    def works(self: Any, *arguments: Any) -> Any:
        number = self.partition if isinstance(self, Log) else self.key[1]
        done.append(number)
        result = work(self, *arguments)
        if replicas.get("t", 1) is not None:
            replicas.delete("t", 1)
        return result

    monkeypatch.setattr(owner, name, works)
    housekeeping = Housekeeping(
        replicas=replicas,
        config=parse_config(PROPERTIES),
        wall_ms=lambda: 1 << 50,
        state_log=RecordingStateLog([]),
    )
    housekeeping.start()
    await asyncio.sleep(0.02)
    await housekeeping.stop()
    assert set(done) == {0}
