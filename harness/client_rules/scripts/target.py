"""A broker that scripts are played to."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from harness.broker.topics import INTERNAL_TOPICS
from harness.broker.wire import messages as m
from harness.broker.wire.transport import PeerError, Transport
from harness.client_rules.scripts.player import Answers, Play
from harness.client_rules.scripts.script import Script, Symbols, real_wall_ms
from harness.contracts.requests import as_values, error_codes

ASKING_S, LOOK_EVERY_S = 60.0, 0.2


@dataclass(slots=True)
class Target:
    """One broker that scripts are played to."""

    transport: Transport
    host: str
    port: int
    wall_ms: Callable[[], float] = real_wall_ms
    _restart: "asyncio.Task[None] | None" = None
    """What all scripts wait for that have come to a restart."""

    async def play(self, script: Script, prefix: str, stopped: Callable[[], bool] = lambda: False) -> Answers:
        """Return the answers to a script whose names begin with a prefix.

        Raises:
            PeerError: the broker cannot be reached, or it is not restarted as the script has it before `stopped`.
        """
        symbols = Symbols(prefix, wall_ms=self.wall_ms)
        return await Play(self.transport, self.host, self.port, symbols, partial(self.restarted, stopped)).play(script)

    async def restarted(self, stopped: Callable[[], bool], how: str) -> None:
        """Return when the broker has ended and serves again; another party ends it, in the way that is named.

        Raises:
            PeerError: `stopped` before.
        """
        if self._restart is None or self._restart.done():
            self._restart = asyncio.create_task(self._restarted(stopped, how), name="restart")
        await asyncio.shield(self._restart)

    async def _restarted(self, stopped: Callable[[], bool], how: str) -> None:
        with suppress(PeerError):
            while not stopped():
                await self.versions()
                await asyncio.sleep(LOOK_EVERY_S)
        while not stopped():
            with suppress(PeerError):
                await self.warm_up()
                return
            await asyncio.sleep(LOOK_EVERY_S)
        raise PeerError(f"the broker was not restarted: {how}")

    async def versions(self) -> dict[int, tuple[int, int]]:
        """Return the versions that the broker advertises, by API key."""
        connection = await self.transport.connect(self.host, self.port, client_id="c", timeout_s=ASKING_S)
        try:
            answer = await connection.request(m.ApiVersionsRequest(), 2, timeout_s=ASKING_S)
        finally:
            connection.close()
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def warm_up(self) -> None:
        """Wait until both coordinators answer, and the broker knows all topics that there are.

        A broker that has started hears of them in one UpdateMetadata, after it leads its partitions.
        """
        connection = await self.transport.connect(self.host, self.port, client_id="c", timeout_s=ASKING_S)
        find = m.FindCoordinatorRequest(key="warm-up", key_type=0)
        init = m.InitProducerIdRequest(transactional_id="warm-up", transaction_timeout_ms=60_000)
        beat = m.HeartbeatRequest(group_id="warm-up")
        topics = [m.MetadataRequest.MetadataRequestTopic(name=each) for each in sorted(INTERNAL_TOPICS)]
        internal = m.MetadataRequest(topics=topics)
        try:
            async with asyncio.timeout(ASKING_S):
                while True:
                    await connection.request(find, 1, timeout_s=ASKING_S)
                    await connection.request(m.FindCoordinatorRequest(key="warm-up", key_type=1), 1, timeout_s=ASKING_S)
                    begun = await connection.request(init, 1, timeout_s=ASKING_S)
                    heard = await connection.request(beat, 0, timeout_s=ASKING_S)
                    known = await connection.request(internal, 1, timeout_s=ASKING_S)
                    is_known = not any(error_codes(as_values(known, 1)))
                    if begun.error_code == 0 and heard.error_code == 25 and is_known:
                        return
                    await asyncio.sleep(LOOK_EVERY_S)
        finally:
            connection.close()
