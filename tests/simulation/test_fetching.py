"""Reading ahead, with leaders that answer when they are told to."""

import asyncio
from types import SimpleNamespace
from typing import Any

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.wire.messages import FetchRequest
from harness.simulation.clients.fetching import Fetching
from harness.simulation.clients.metadata import Leader
from harness.simulation.loop import run

PLACE = ("orders", 0)


def batch(first: int, *values: str, epoch: int) -> bytes:
    records = [Record(timestamp_ms=1, key=None, value=value.encode(), offset=first) for value in values]
    return build_batch(records, base_offset=first, leader_epoch=epoch)


class TwoLeaders:
    """Stands for the cluster, in which broker 1 follows broker 0 as leader; each fetch waits for its answer."""

    def __init__(self) -> None:
        self.leaders = {PLACE: Leader(broker_id=0, leader_epoch=0)}
        self.fetches: dict[int, asyncio.Future[bytes]] = {}
        self.fetch_offsets: list[int] = []
        self.asked_epochs: list[int] = []
        self.ends: dict[int, asyncio.Future[int]] = {}
        """Of brokers that do not say at once where an epoch ends."""

    @property
    def broker_ids(self) -> list[int]:
        return [0, 1]

    def led_by(self, broker_id: int, _places: Any) -> list[tuple[str, int]]:
        return [place for place, leader in self.leaders.items() if leader.broker_id == broker_id]

    def refresh_soon(self) -> None:
        """Nothing to learn."""

    async def ask(self, broker_id: int, message: Any, _version: int) -> Any:
        if not isinstance(message, FetchRequest):
            self.asked_epochs.append(message.topics[0].partitions[0].leader_epoch)
            end_offset = await self.ends[broker_id] if broker_id in self.ends else 4
            answer = SimpleNamespace(error_code=0, end_offset=end_offset, leader_epoch=2)
            return SimpleNamespace(topics=[SimpleNamespace(partitions=[answer])])
        self.fetch_offsets.append(message.topics[0].partitions[0].fetch_offset)
        self.fetches[broker_id] = asyncio.get_running_loop().create_future()
        records = await self.fetches[broker_id]
        answer = SimpleNamespace(partition_index=0, error_code=0, records=records, aborted_transactions=None)
        return SimpleNamespace(responses=[SimpleNamespace(topic="orders", partitions=[answer])])


async def all_is_quiet() -> None:
    await asyncio.sleep(1)  # of virtual time, which jumps when nothing is due


def test_what_a_former_leader_answers_late_says_nothing_about_the_position() -> None:
    assert run(asked_after_a_late_answer()) == [2]


async def asked_after_a_late_answer() -> list[int]:
    """Return the epochs that a reader asked the next leader about."""
    cluster = TwoLeaders()
    fetching = Fetching(cluster)  # type: ignore[arg-type]
    fetching.assign({PLACE: 0})
    fetching.look_again()
    await all_is_quiet()
    cluster.leaders[PLACE] = Leader(broker_id=1, leader_epoch=2)
    fetching.look_again()
    await all_is_quiet()
    cluster.fetches[1].set_result(batch(0, "a", "b", "c", "d", epoch=2))
    await all_is_quiet()
    cluster.fetches[0].set_result(batch(0, "a", epoch=0))
    await all_is_quiet()
    assert [record.value for record in fetching.take()] == ["a", "b", "c", "d"]
    cluster.leaders[PLACE] = Leader(broker_id=1, leader_epoch=3)
    fetching.look_again()
    await all_is_quiet()
    fetching.stop()
    return cluster.asked_epochs


def test_where_a_former_leader_says_late_that_an_epoch_ends_is_not_about_the_records_since() -> None:
    assert run(offsets_fetched_around_a_late_end()) == [0, 1, 1, 4]


async def offsets_fetched_around_a_late_end() -> list[int]:
    """Return the offsets that a reader fetched from, the last of them after the former leader's late word."""
    cluster = TwoLeaders()
    fetching = Fetching(cluster)  # type: ignore[arg-type]
    fetching.assign({PLACE: 0})

    async def led(broker_id: int, leader_epoch: int) -> None:
        cluster.leaders[PLACE] = Leader(broker_id, leader_epoch)
        fetching.look_again()
        await all_is_quiet()

    async def read(broker_id: int, records: bytes) -> None:
        cluster.fetches[broker_id].set_result(records)
        await all_is_quiet()
        fetching.take()
        await all_is_quiet()

    await led(0, leader_epoch=0)
    await read(0, batch(0, "a", epoch=0))
    cluster.ends[0] = asyncio.get_running_loop().create_future()
    await led(0, leader_epoch=1)
    cluster.fetches[0].set_result(b"")
    await all_is_quiet()
    await led(1, leader_epoch=2)
    await read(1, batch(1, "b", "c", "d", epoch=2))
    cluster.ends[0].set_result(1)
    await all_is_quiet()
    fetching.stop()
    return cluster.fetch_offsets
