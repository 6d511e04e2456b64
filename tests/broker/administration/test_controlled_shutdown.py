import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.broker.administration.controlled_shutdown import ControlledShutdown
from harness.broker.configs.config import parse_config
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse
from harness.broker.wire.transport import PeerError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.simulation.loop import run
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

CONFIG = parse_config(
    {
        "broker.id": "1",
        "listeners": "PLAINTEXT://h:1,REPL://h:2",
        "inter.broker.listener.name": "REPL",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
        "log.dir": "/d",
        "zookeeper.connect": "z",
        "controlled.shutdown.max.retries": "2",
        "controlled.shutdown.retry.backoff.ms": "300",
        "controller.socket.timeout.ms": "7000",
    }
)
CONTROLLER = b'{"version":2,"brokerid":7,"timestamp":"0","kraftControllerEpoch":-1}'
REGISTRATION = b'{"version":4,"endpoints":["PLAINTEXT://h:70","REPL://h:71"]}'
_Left = ControlledShutdownResponse.RemainingPartition


def answer(error: ErrorCode = ErrorCode.NONE, *left: str) -> ControlledShutdownResponse:
    remaining = [_Left(topic_name=topic, partition_index=0) for topic in left]
    return ControlledShutdownResponse(error_code=error, remaining_partitions=remaining)


@dataclass
class FakeController:
    """A transport to one controller that gives the answers it was told to give."""

    answers: list[Any]
    requests: list[ControlledShutdownRequest] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    timeouts_s: list[float] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    closed: bool = False

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "FakeController":
        self.ports.append(port)
        return self

    async def request(self, message: Any, version: int, *, timeout_s: float) -> Any:
        self.requests.append(message)
        self.timeouts_s.append(timeout_s)
        self.times_s.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None: ...


def ask(controller: FakeController, zookeeper: Ensemble) -> bool:
    async def play() -> bool:
        session = ZooKeeperSession(lambda: SimulatedZooKeeper(zookeeper), RecordingStateLog([]))
        await session.start()
        asking = ControlledShutdown(
            config=CONFIG, session=session, transport=controller, state_log=RecordingStateLog([])
        )
        done = await asking.run(33)
        await session.stop()
        return done

    return run(play())


def cluster() -> Ensemble:
    zookeeper = Ensemble()
    zookeeper.put("/controller", CONTROLLER)
    zookeeper.put("/brokers/ids/7", REGISTRATION)
    return zookeeper


@pytest.mark.parametrize(
    ("answers", "done", "left"),
    [
        pytest.param([answer()], True, 0, id="nothing is led here any more"),
        pytest.param([answer(ErrorCode.NONE, "t"), answer()], True, 0, id="the second try moves the last one"),
        pytest.param([answer(ErrorCode.STALE_CONTROLLER_EPOCH), answer()], True, 0, id="the controller has moved"),
        pytest.param([PeerError("gone"), answer()], True, 0, id="the controller was gone"),
        pytest.param([answer(ErrorCode.NONE, "t")] * 3, False, 1, id="after the last try it is given up"),
    ],
)
def test_asking_until_nothing_is_led(answers: list[Any], done: bool, left: int) -> None:
    """`controlled.shutdown.max.retries` is 2, and all tries together are not more."""
    controller = FakeController(list(answers))
    assert ask(controller, cluster()) is done
    assert len(controller.answers) == left
    assert {(request.broker_id, request.broker_epoch) for request in controller.requests} == {(1, 33)}
    assert set(controller.ports) == {71}


def test_each_try_has_its_time_and_the_next_comes_later() -> None:
    """`controller.socket.timeout.ms`, `controlled.shutdown.retry.backoff.ms`."""
    controller = FakeController([answer(ErrorCode.NONE, "t")] * 3)
    assert ask(controller, cluster()) is False
    assert controller.timeouts_s == [7.0] * 2
    first_s, second_s = controller.times_s
    assert second_s - first_s == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("missing", ["/controller", "/brokers/ids/7"])
def test_without_a_controller_to_ask_it_is_given_up(missing: str) -> None:
    zookeeper = cluster()
    zookeeper.remove(missing)
    controller = FakeController([])
    assert not ask(controller, zookeeper)
    assert controller.ports == []
