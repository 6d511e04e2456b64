import json
import random

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.rules import ProtocolRules, rules_with
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.registration import (
    BrokerIdTaken,
    LiveBroker,
    ensure_persistent_paths,
    read_live_brokers,
    read_or_create_cluster_id,
    register_broker,
)
from harness.broker.zookeeper.znodes import PERSISTENT_PATHS, BrokerRegistration, new_uuid
from harness.events import BrokerRegistered
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

PATH = "/brokers/ids/1"
RIGHT = ProtocolRules()


def registration(broker_id: int = 1) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=broker_id, endpoints=(Endpoint(name="REPL", host="h", port=broker_id),), timestamp_ms=0
    )


async def session(server: Ensemble) -> SimulatedZooKeeper:
    zk = SimulatedZooKeeper(server)
    await zk.connect()
    return zk


@pytest.fixture
def server() -> Ensemble:
    made = Ensemble()
    made.put("/brokers/ids")
    return made


async def test_a_registration_is_created_empty_and_set_in_one_multi(server: Ensemble) -> None:
    zk, log = await session(server), RecordingStateLog(events=[])
    epoch = await register_broker(zk, registration(), previous_session_id=0, state_log=log, rules=RIGHT)
    node = server.nodes[PATH]
    assert (node.czxid, node.version, node.owner) == (epoch, 1, zk.session_id)
    assert json.loads(node.data)["endpoints"] == ["REPL://h:1"]
    assert log.events == [BrokerRegistered(czxid=epoch)]


async def test_a_registration_of_this_session_is_taken_as_it_stands(server: Ensemble) -> None:
    zk, log = await session(server), RecordingStateLog(events=[])
    server.lose_answer_to = PATH
    epoch = await register_broker(zk, registration(), previous_session_id=0, state_log=log, rules=RIGHT)
    assert server.nodes[PATH].czxid == epoch
    assert log.events == [BrokerRegistered(czxid=epoch)]


async def test_a_registration_of_the_session_before_is_replaced(server: Ensemble) -> None:
    old, zk, log = await session(server), await session(server), RecordingStateLog(events=[])
    first = await register_broker(old, registration(), previous_session_id=0, state_log=log, rules=RIGHT)
    second = await register_broker(zk, registration(), previous_session_id=old.session_id, state_log=log, rules=RIGHT)
    assert second > first
    assert server.nodes[PATH].owner == zk.session_id


async def test_a_registration_of_anybody_else_is_a_duplicate_broker_id(server: Ensemble) -> None:
    other, zk, log = await session(server), await session(server), RecordingStateLog(events=[])
    await register_broker(other, registration(), previous_session_id=0, state_log=log, rules=RIGHT)
    with pytest.raises(BrokerIdTaken, match=f"belongs to session 0x{other.session_id:x}"):
        await register_broker(zk, registration(), previous_session_id=99, state_log=log, rules=RIGHT)
    assert len(log.events) == 1


async def test_a_planted_bug_takes_it_for_its_own_and_loses_it_with_its_session(server: Ensemble) -> None:
    other, zk, log = await session(server), await session(server), RecordingStateLog(events=[])
    wrong = rules_with(["registration-of-old-session"])
    first = await register_broker(other, registration(), previous_session_id=0, state_log=log, rules=RIGHT)
    assert first == await register_broker(zk, registration(), previous_session_id=0, state_log=log, rules=wrong)
    await other.close()
    assert PATH not in server.nodes


async def test_registering_without_the_parent_fails() -> None:
    zk = await session(Ensemble())
    with pytest.raises(ZooKeeperError, match="cannot register"):
        await register_broker(
            zk, registration(), previous_session_id=0, state_log=RecordingStateLog(events=[]), rules=RIGHT
        )


async def test_live_brokers_come_with_their_epochs(server: Ensemble) -> None:
    zk, log = await session(server), RecordingStateLog(events=[])
    epochs = {
        broker_id: await register_broker(zk, registration(broker_id), previous_session_id=0, state_log=log, rules=RIGHT)
        for broker_id in (10, 2)
    }
    assert await read_live_brokers(zk) == {
        broker_id: LiveBroker(registration=registration(broker_id), epoch=epochs[broker_id]) for broker_id in (2, 10)
    }


async def test_persistent_paths_are_there_after_any_number_of_brokers() -> None:
    server = Ensemble()
    zk = await session(server)
    await ensure_persistent_paths(zk)
    await ensure_persistent_paths(await session(server))
    assert set(PERSISTENT_PATHS) <= server.nodes.keys()
    assert {node.version for node in server.nodes.values()} == {0}


async def test_the_first_broker_gives_the_cluster_its_id() -> None:
    server = Ensemble()
    zk = await session(server)
    await ensure_persistent_paths(zk)
    mine, yours = new_uuid(random.Random(1)), new_uuid(random.Random(2))
    assert len(mine) == 22
    assert await read_or_create_cluster_id(zk, mine) == mine
    assert await read_or_create_cluster_id(zk, yours) == mine
