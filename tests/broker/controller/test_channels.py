from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from harness.broker.controller import channels as channels_module
from harness.broker.controller.channels import ChannelSettings, ControllerChannels
from harness.broker.controller.request_batch import ControlRequest
from harness.broker.wire.messages import ApiMessage, UpdateMetadataRequest
from harness.events import ControlResponse, ControlSend
from tests.broker.controller.fake_transport import FakeTransport
from tests.broker.controller.world import LISTENER, registration_of, settle
from tests.broker.recording_state_log import RecordingStateLog


@dataclass
class Bench:
    transport: FakeTransport = field(default_factory=FakeTransport)
    log: RecordingStateLog = field(default_factory=lambda: RecordingStateLog(events=[]))
    answered: list[tuple[int, ApiMessage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.channels = ControllerChannels(
            ChannelSettings(
                transport=self.transport,
                state_log=self.log,
                controller_id=9,
                peer_listener=LISTENER,
                timeout_s=30.0,
                answered=lambda request, response: self.answered.append((request.controller_epoch, response)),
            )
        )

    def send(self, number: int, broker_id: int = 1) -> None:
        message = UpdateMetadataRequest(controller_id=9, controller_epoch=number, broker_epoch=5)
        self.channels.send(
            ControlRequest(
                broker_id=broker_id,
                api="UpdateMetadata",
                message=message,
                version=6,
                controller_epoch=number,
                broker_epoch=5,
                partitions=("t-0",),
            )
        )

    def arrived(self, broker_id: int = 1) -> list[int]:
        return [message.controller_epoch for message in self.transport.to(broker_id)]


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(channels_module, "RETRY_WAIT_S", 0)
    made = Bench()
    yield made
    made.channels.close()
    await made.channels.closed()
    assert made.transport.open == []


async def test_requests_arrive_in_order_over_one_connection(bench: Bench) -> None:
    bench.channels.add_broker(registration_of(1))
    bench.channels.add_broker(registration_of(1))
    for number in range(3):
        bench.send(number)
    await settle()
    assert bench.arrived() == [0, 1, 2]
    assert [number for number, _ in bench.answered] == [0, 1, 2]
    assert bench.transport.connects == [(1, "9", 30.0)]
    assert bench.log.events[:2] == [
        ControlSend(
            api="UpdateMetadata",
            to=1,
            correlation_id=1,
            controller_epoch=0,
            target_broker_epoch=5,
            partitions=["t-0"],
            live_brokers=[],
            queued_ms=0.0,
            made_seq=0,
        ),
        ControlResponse(api="UpdateMetadata", sender=1, correlation_id=1, controller_epoch=0, error=0),
    ]


async def test_a_request_is_tried_until_it_is_answered_and_nothing_overtakes_it(bench: Bench) -> None:
    bench.transport.break_next.add(1)
    bench.channels.add_broker(registration_of(1))
    bench.send(1)
    bench.send(2)
    await settle()
    assert bench.arrived() == [1, 1, 2]
    assert [number for number, _ in bench.answered] == [1, 2]


async def test_a_broker_that_is_down_gets_everything_once_it_is_up(bench: Bench) -> None:
    bench.transport.down.add(1)
    bench.channels.add_broker(registration_of(1))
    bench.send(1)
    bench.send(2)
    await settle()
    assert (bench.arrived(), bench.answered) == ([], [])
    bench.transport.down.clear()
    await settle()
    assert bench.arrived() == [1, 2]


async def test_a_slow_broker_holds_up_nobody_else(bench: Bench) -> None:
    bench.transport.silent.add(1)
    for broker_id in (1, 2):
        bench.channels.add_broker(registration_of(broker_id))
        bench.send(1, broker_id)
        bench.send(2, broker_id)
    await settle()
    assert (bench.arrived(1), bench.arrived(2)) == ([1], [1, 2])


async def test_what_is_queued_for_a_removed_broker_is_lost(bench: Bench) -> None:
    bench.transport.down.add(1)
    bench.channels.add_broker(registration_of(1))
    bench.send(1)
    await settle()
    await bench.channels.remove_broker(1)
    bench.transport.down.clear()
    bench.send(2)
    bench.channels.add_broker(registration_of(1))
    bench.send(3)
    await settle()
    assert bench.arrived() == [3]


async def test_a_request_that_cannot_be_dealt_with_does_not_hold_up_the_next(bench: Bench) -> None:
    bench.channels.add_broker(registration_of(1))
    bench.send(2**40)  # no such epoch can be written
    bench.send(1)
    await settle()
    assert bench.arrived() == [2**40, 1]
    assert [number for number, _ in bench.answered] == [1]
