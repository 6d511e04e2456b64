"""The harness's own client of a cluster."""

import asyncio
from dataclasses import dataclass, field

from harness.experiment.service_probe import PROCESS, ServiceProbe
from harness.kafka.client import NoAnswer
from harness.store.recording import Recorder

WHAT = "MetadataRequest to localhost:1"


@dataclass
class Deaf:
    """A connection over which nothing is answered, and what opens it."""

    opened: int = 0
    closed: bool = False
    recorded: list[object] = field(default_factory=list)

    async def connect(self, host: str, port: int, *, timeout_s: float) -> "Deaf":
        self.opened += 1
        await asyncio.sleep(0)
        return self

    async def exchange(self, frame: bytes) -> bytes:
        for _ in range(5):  # the others come to ask meanwhile
            await asyncio.sleep(0)
        raise NoAnswer("no answer")

    def close(self) -> None:
        self.closed = True


async def test_of_two_that_ask_at_once_one_connects() -> None:
    peer = Deaf()
    ask = ServiceProbe(
        peer, [("localhost", 1)], Recorder(PROCESS, peer.recorded.append, lambda: 0), lambda: 0, negotiates=False
    )
    answers = await asyncio.gather(*(ask.produce([("orders", number)]) for number in range(3)))
    reasons = ["no answer", "the connection is closed", "the connection is closed"]
    assert answers == [{("orders", n): f"{WHAT}: {why}"} for n, why in enumerate(reasons)]
    assert peer.opened == 1


async def test_a_connection_that_gave_no_answer_is_dropped_for_another_one() -> None:
    peer = Deaf()
    ask = ServiceProbe(
        peer, [("localhost", 1)], Recorder(PROCESS, peer.recorded.append, lambda: 0), lambda: 0, negotiates=False
    )
    await ask.produce([("orders", 0)])
    assert (peer.opened, peer.closed) == (1, True)
    await ask.produce([("orders", 0)])
    assert peer.opened == 2
