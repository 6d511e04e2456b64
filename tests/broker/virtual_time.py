"""An event loop whose clock jumps to the next timer instead of waiting: tests of minutes run in milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    loop: "VirtualTimeLoop"

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits for ever"
            self.loop.now_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Time passes only while nothing else is to be done."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s


def run(work: Coroutine[Any, Any, T], *, limit_s: float = 3600) -> T:
    """Run `work` in virtual time; `limit_s` virtual seconds are all it gets."""

    async def limited() -> T:
        async with asyncio.timeout(limit_s):
            return await work

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(limited())
