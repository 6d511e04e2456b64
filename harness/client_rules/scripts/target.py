"""A broker that scripts are played to."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from harness.broker.topics import INTERNAL_TOPICS
from harness.broker.wire import messages as m
from harness.broker.wire.transport import Connection, PeerError, Transport
from harness.client_rules.scripts.player import NOTIFIED_S, QUIET_S, Answers, Play
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
    notified_s: float = NOTIFIED_S
    """How long a changed configuration takes at most to be in force."""
    _watched: Connection | None = None
    _restart: "asyncio.Task[float] | None" = None
    """The next restart; all scripts that have come to one wait for it."""

    async def play(self, script: Script, prefix: str, stopped: Callable[[], bool] = lambda: False) -> Answers:
        """Return the answers to a script whose names begin with a prefix.

        Raises:
            PeerError: the broker cannot be reached, or it is not restarted as the script has it before `stopped`.
        """
        symbols = Symbols(prefix, wall_ms=self.wall_ms)
        restarted = partial(self.restarted, stopped)
        play = Play(self.transport, self.host, self.port, symbols, restarted, notified_s=self.notified_s)
        return await play.play(script)

    async def clean_up(self, script: Script, prefix: str) -> None:
        """Delete what an interrupted play of a script has made; raises PeerError."""
        await Play(self.transport, self.host, self.port, Symbols(prefix)).clean_up(script)

    async def watch(self) -> None:
        """Connect, in order to notice an end of the broker from now on; raises PeerError."""
        self._watched = await self._connected()

    async def stands(self) -> bool:
        """Return whether the broker has not ended since `watch`."""
        if self._watched is None:
            return False
        try:
            await self._watched.request(m.ApiVersionsRequest(), 2, timeout_s=ASKING_S)
        except PeerError:
            self._watched.close()
            self._watched = None
        return self._watched is not None

    async def restarted(self, stopped: Callable[[], bool], how: str) -> None:
        """Return when the broker has ended and serves again; another party ends it, in the way that is named.

        Raises:
            PeerError: `stopped` before, or it ended before nothing changed any more.
        """
        came_s = asyncio.get_running_loop().time()
        if self._restart is None or self._restart.done():
            self._restart = asyncio.create_task(self._restarted(stopped, how), name="restart")
        if await asyncio.shield(self._restart) - came_s < QUIET_S:
            raise PeerError(f"the broker ended within {QUIET_S:g} s after the last call")

    async def _restarted(self, stopped: Callable[[], bool], how: str) -> float:
        """Return when the broker has ended, once it serves again; over one connection no end of it is missed."""
        ended_s = None
        with suppress(PeerError):
            connection = await self._connected()
            try:
                while not stopped():
                    await connection.request(m.ApiVersionsRequest(), 2, timeout_s=ASKING_S)
                    await asyncio.sleep(LOOK_EVERY_S)
            except PeerError:
                ended_s = asyncio.get_running_loop().time()
            finally:
                connection.close()
        while ended_s is not None and not stopped():
            with suppress(PeerError):
                await self.warm_up()
                return ended_s
            await asyncio.sleep(LOOK_EVERY_S)
        raise PeerError(f"the broker was not restarted: {how}")

    async def versions(self) -> dict[int, tuple[int, int]]:
        """Return the versions that the broker advertises, by API key."""
        connection = await self._connected()
        try:
            answer = await connection.request(m.ApiVersionsRequest(), 2, timeout_s=ASKING_S)
        finally:
            connection.close()
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def warm_up(self) -> None:
        """Wait until both coordinators answer, and the broker knows all topics that there are.

        A broker that has started hears of them in one UpdateMetadata, after it leads its partitions.
        """
        connection = await self._connected()
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

    async def _connected(self) -> Connection:
        return await self.transport.connect(self.host, self.port, client_id="c", timeout_s=ASKING_S)
