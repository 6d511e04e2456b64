"""The harness's own client of a cluster."""

import asyncio
from dataclasses import dataclass, field

from harness.broker.wire.transport import Message, PeerError
from harness.experiment.service_probe import PROCESS, ServiceProbe
from harness.store.recording import Recorder


@dataclass
class Deaf:
    """A connection over which nothing is answered, and what opens it."""

    opened: int = 0
    closed: bool = False
    dropped: int = 0
    recorded: list[object] = field(default_factory=list)

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "Deaf":
        self.opened += 1
        await asyncio.sleep(0)
        return self

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        raise PeerError("no answer")

    def close(self) -> None:
        self.closed = True
        self.dropped += 1


async def test_of_two_that_ask_at_once_one_connects() -> None:
    peer = Deaf()
    ask = ServiceProbe(peer, [("localhost", 1)], Recorder(PROCESS, peer.recorded.append, lambda: 0), lambda: 0)
    answers = await asyncio.gather(*(ask.produce([("orders", number)]) for number in range(3)))
    assert answers == [{("orders", number): "no answer"} for number in range(3)]
    assert peer.opened == 1
    ask.close()
    assert peer.closed


async def test_a_connection_that_its_broker_has_ended_is_dropped_for_another_one() -> None:
    peer = Deaf()
    ask = ServiceProbe(peer, [("localhost", 1)], Recorder(PROCESS, peer.recorded.append, lambda: 0), lambda: 0)
    await ask.produce([("orders", 0)])
    assert (peer.opened, peer.dropped) == (1, 0)
    peer.closed = True
    await ask.produce([("orders", 0)])
    assert (peer.opened, peer.dropped) == (2, 1)
