from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.broker.zookeeper.client import BadVersion
from harness.broker.zookeeper.partition_state import (
    VersionedState,
    publish_isr_changes,
    read_partition_state,
    read_partition_states,
    write_isr,
)
from harness.broker.zookeeper.znodes import PartitionStateZnode, decode_isr_change
from harness.events import ZkWrite
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

PATH = "/brokers/topics/t/partitions/0/state"
BEFORE = PartitionStateZnode(leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=5)
WANTED = replace(BEFORE, isr=(1,))


OTHER_LEADER = replace(BEFORE, leader=2, leader_epoch=4)
LATER_EPOCH = replace(WANTED, leader_epoch=4)
OTHER_CONTROLLER = replace(WANTED, controller_epoch=6)


def answer_lost(server: Ensemble) -> None:
    server.lose_answer_to = PATH


def somebody_writes(state: PartitionStateZnode) -> Callable[[Ensemble], None]:
    return lambda server: server.put(PATH, state.encode())


@pytest.mark.parametrize(
    ("meanwhile", "result", "version"),
    [
        pytest.param(lambda server: None, "ok", 1, id="no other client wrote"),
        pytest.param(answer_lost, "ok", 1, id="our own write, its answer lost, is found"),
        pytest.param(somebody_writes(OTHER_LEADER), "badversion", -1, id="a controller wrote"),
        pytest.param(somebody_writes(LATER_EPOCH), "badversion", -1, id="the same ISR, but a later epoch"),
        pytest.param(somebody_writes(OTHER_CONTROLLER), "badversion", -1, id="the same, but another controller"),
        pytest.param(somebody_writes(WANTED), "ok", 1, id="exactly the state we want stands there"),
        pytest.param(lambda server: server.remove(PATH), "nonode", -1, id="the topic is gone"),
    ],
)
async def test_an_isr_is_written_only_over_the_expected_version(
    meanwhile: Callable[[Ensemble], None], result: str, version: int
) -> None:
    server, log = Ensemble(), RecordingStateLog(events=[])
    zk = SimulatedZooKeeper(server)
    await zk.connect()
    server.put(PATH, BEFORE.encode())
    meanwhile(server)
    if result == "ok":
        assert await write_isr(zk, "t", 0, WANTED, 0, state_log=log) == version
        assert await read_partition_state(zk, "t", 0) == VersionedState(state=WANTED, zk_version=version)
    else:
        with pytest.raises(BadVersion, match=result):
            await write_isr(zk, "t", 0, WANTED, 0, state_log=log)
    assert log.events == [
        ZkWrite(
            path=PATH, op="set", expected_version=0, result=result, new_version=version, by="leader", controller_epoch=5
        )
    ]


async def test_only_partitions_that_had_a_leader_have_a_state() -> None:
    server = Ensemble()
    zk = SimulatedZooKeeper(server)
    await zk.connect()
    server.put(PATH, BEFORE.encode())
    assert await read_partition_states(zk, [("t", 0), ("t", 1)]) == {
        ("t", 0): VersionedState(state=BEFORE, zk_version=0)
    }


async def test_isr_changes_are_told_one_after_the_other() -> None:
    server, log = Ensemble(), RecordingStateLog(events=[])
    server.put("/isr_change_notification")
    zk = SimulatedZooKeeper(server)
    await zk.connect()
    paths = [await publish_isr_changes(zk, [("t", number)], state_log=log) for number in (0, 1)]
    assert paths == [f"/isr_change_notification/isr_change_000000000{number}" for number in (0, 1)]
    assert [decode_isr_change(path, server.data(path)) for path in paths] == [[("t", 0)], [("t", 1)]]
    assert [(event.op, event.path, event.by) for event in log.events if isinstance(event, ZkWrite)] == [
        ("create", path, "leader") for path in paths
    ]
