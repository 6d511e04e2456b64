import pytest

from harness.broker.controller.election import ControllerEpoch, read_controller, register_and_increment
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.zookeeper.client import Create, Op
from harness.broker.zookeeper.znodes import ControllerZnode
from harness.events import ControllerElected
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

ME = ControllerZnode(broker_id=1, timestamp_ms=0)
OTHER = ControllerZnode(broker_id=2, timestamp_ms=0)


@pytest.fixture
def server() -> Ensemble:
    return Ensemble()


@pytest.fixture
async def zk(server: Ensemble) -> SimulatedZooKeeper:
    made = SimulatedZooKeeper(server)
    await made.connect()
    return made


@pytest.fixture
def log() -> RecordingStateLog:
    return RecordingStateLog(events=[])


async def test_the_first_controller_has_epoch_1(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    assert await read_controller(zk) == -1
    assert await register_and_increment(zk, ME, state_log=log) == ControllerEpoch(value=1, zk_version=1)
    assert server.data("/controller_epoch") == b"1"
    assert server.nodes["/controller"].owner == zk.session_id
    assert await read_controller(zk) == 1
    assert log.events == [ControllerElected(controller_epoch=1, epoch_zk_version=1)]


async def test_every_election_raises_the_epoch(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    for epoch in (1, 2, 3):
        assert (await register_and_increment(zk, ME, state_log=log)).value == epoch
        server.remove("/controller")


async def test_who_comes_second_has_lost(server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog) -> None:
    server.put("/controller_epoch", b"4")
    server.put("/controller", OTHER.encode())
    with pytest.raises(ControllerMovedError, match="broker 2 is controller with epoch 4"):
        await register_and_increment(zk, ME, state_log=log)
    assert (server.data("/controller_epoch"), log.events) == (b"4", [])


async def test_nonsense_names_nobody_and_stands_in_the_way(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    server.put("/controller_epoch", b"4")
    server.put("/controller", b"not a controller")
    assert await read_controller(zk) == -1
    with pytest.raises(ControllerMovedError, match="broker -1 is controller with epoch 4"):
        await register_and_increment(zk, ME, state_log=log)
    assert (server.data("/controller_epoch"), log.events) == (b"4", [])


async def test_a_znode_left_by_an_earlier_session_of_ours_is_no_victory(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    server.put("/controller_epoch", b"4")
    server.put("/controller", ME.encode())
    with pytest.raises(ControllerMovedError, match="broker 1 is controller with epoch 4"):
        await register_and_increment(zk, ME, state_log=log)


async def test_an_epoch_raised_meanwhile_is_a_lost_election(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    def other_came_and_went(op: Op) -> None:
        if isinstance(op, Create) and op.path == "/controller":
            server.put("/controller_epoch", b"1")
            server.before_write = lambda op: None

    server.put("/controller_epoch", b"0")
    server.before_write = other_came_and_went
    with pytest.raises(ControllerMovedError):
        await register_and_increment(zk, ME, state_log=log)
    assert "/controller" not in server.nodes


async def test_a_victory_whose_answer_was_lost_is_found(
    server: Ensemble, zk: SimulatedZooKeeper, log: RecordingStateLog
) -> None:
    server.lose_answer_to = "/controller"
    assert await register_and_increment(zk, ME, state_log=log) == ControllerEpoch(value=1, zk_version=1)
    assert len(log.events) == 1
