"""Producer ids: no two producers get the same one, whatever two brokers and ZooKeeper do."""

import asyncio

import pytest

from harness.broker.administration.producer_ids import BLOCK_SIZE, ProducerIds
from harness.broker.zookeeper.client import SessionExpired
from harness.broker.zookeeper.znodes import PRODUCER_ID_BLOCK, MalformedZnode, ProducerIdBlock
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper


async def session(ensemble: Ensemble) -> SimulatedZooKeeper:
    zookeeper = SimulatedZooKeeper(ensemble)
    await zookeeper.connect()
    return zookeeper


def ids(broker_id: int, zookeeper: SimulatedZooKeeper) -> ProducerIds:
    return ProducerIds(broker_id=broker_id, zookeeper=lambda: zookeeper)


async def test_brokers_hand_out_ids_of_their_own_blocks() -> None:
    ensemble = Ensemble()
    ensemble.put(PRODUCER_ID_BLOCK)
    first, second = ids(1, await session(ensemble)), ids(2, await session(ensemble))
    both = await asyncio.gather(*(each.next_id() for each in (first, second) for _ in range(BLOCK_SIZE + 1)))
    assert len(set(both)) == 2 * (BLOCK_SIZE + 1)
    block = ProducerIdBlock.decode(ensemble.nodes[PRODUCER_ID_BLOCK].data)
    assert (block.first, block.last) == (3 * BLOCK_SIZE, 4 * BLOCK_SIZE - 1)
    assert await first.next_id() in range(4 * BLOCK_SIZE)


async def test_the_block_is_written_as_kafka_writes_it() -> None:
    ensemble = Ensemble()
    ensemble.put(PRODUCER_ID_BLOCK)
    assert [await ids(3, await session(ensemble)).next_id() for _ in range(2)] == [0, BLOCK_SIZE]
    written = b'{"version":1,"broker":3,"block_start":"1000","block_end":"1999"}'
    assert ensemble.nodes[PRODUCER_ID_BLOCK].data == written


async def test_without_a_session_nobody_gets_an_id_and_none_is_lost() -> None:
    ensemble = Ensemble()
    ensemble.put(PRODUCER_ID_BLOCK)
    over = await session(ensemble)
    await over.close()
    sessions = [over, await session(ensemble)]
    producer_ids = ProducerIds(broker_id=1, zookeeper=lambda: sessions.pop(0))
    with pytest.raises(SessionExpired):
        await producer_ids.next_id()
    assert await producer_ids.next_id() == 0


async def test_a_block_without_sense_is_never_overwritten() -> None:
    ensemble = Ensemble()
    ensemble.put(PRODUCER_ID_BLOCK, b"{}")
    with pytest.raises(MalformedZnode):
        await ids(1, await session(ensemble)).next_id()
