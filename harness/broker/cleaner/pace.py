"""Limits cleaners: a small step of the loop at a time, and a number of bytes a second."""

import asyncio
from dataclasses import dataclass

STEP_BYTES = 32 * 1024
"""Bytes read, or written, between two turns of the loop (decision 0057)."""


@dataclass(slots=True, kw_only=True)
class Pace:
    """Shared by all cleaners of a broker."""

    bytes_per_second: float
    """On average (`log.cleaner.io.max.bytes.per.second`)."""
    _due_s: float = 0.0

    async def step(self, size: int) -> None:
        """Give others the loop, after this many bytes."""
        now_s = asyncio.get_running_loop().time()
        self._due_s = max(self._due_s, now_s) + size / self.bytes_per_second
        await asyncio.sleep(self._due_s - now_s if self._due_s - now_s > _TOO_SHORT_S else 0)


_TOO_SHORT_S = 0.001
"""A wait too short for a timer."""
