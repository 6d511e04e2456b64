"""Who holds links, and what passes as that changes."""

import asyncio
from contextvars import copy_context

from harness.cluster.interference import Interference
from harness.cluster.links import Links, Pipe


async def test_a_link_that_its_holder_cuts_again_lets_nothing_pass_meanwhile() -> None:
    links, arrived = Links(), list[str]()
    interference = Interference(links)
    pipes = [Pipe(links, "a", receiver, arrived.append, copy_context()) for receiver in ("b", "c")]
    interference.cut("one", [("a", "b"), ("a", "c")], at_most_s=60)
    for pipe in pipes:
        pipe.put("waits")
    interference.cut("one", [("a", "b")], at_most_s=60)
    await asyncio.sleep(0)
    assert arrived == ["waits"], "only over the link that is not cut again"
    interference.release("one")
    await asyncio.sleep(0)
    assert arrived == ["waits", "waits"]
