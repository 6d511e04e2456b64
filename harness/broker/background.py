"""Work that is done again and again for as long as the broker lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def every(seconds: float, work: Callable[[], Awaitable[None]], *, name: str) -> None:
    """Do `work` after every pause, until cancelled.

    A round that fails is logged and the next one is tried, as in Kafka's `KafkaScheduler`: an error that nobody thought
    of must not leave a broker that looks alive and has stopped to do its work.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception:
            log.exception("%s.failed", name)
