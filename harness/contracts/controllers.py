"""Waits for the next controller, for faults that depose one."""

import asyncio
import json
from collections.abc import Callable

from harness.contracts.faults import FaultContext
from harness.errors import DeadlineError
from harness.system.waiting import until
from harness.zookeeper.view import Controller, ZookeeperView

PATH = "/controller"
UNSEEN_S = 5.0
"""An election takes a fraction of it: after this long without a controller no broker has noticed the deletion."""
SEEN_S = 1.0
"""Brokers watch a changed znode again within this time."""
NO_BROKER = 999_999
"""An id that no broker has."""


def content(broker_id: int) -> bytes:
    """Return the content of `/controller` for this broker, without a timestamp."""
    return json.dumps({"version": 1, "brokerid": broker_id, "timestamp": "0"}, separators=(",", ":")).encode()


async def next_controller(
    context: FaultContext, accept: Callable[[Controller], bool], *, what: str, timeout_s: float
) -> Controller:
    """Return the next controller that is accepted.

    A `/controller` that is deleted before any broker watches it again is missed by all, in Kafka too: a watch fires
    once, and `ControllerChange` elects no controller. Then it is created for no broker, and deleted once more.

    Raises:
        DeadlineError: there is none in time.
    """
    try:
        return await until(context.view.controller, accept, what=what, timeout_s=min(UNSEEN_S, timeout_s))
    except DeadlineError:
        if timeout_s <= UNSEEN_S:
            raise
        if isinstance(context.view, ZookeeperView) and await context.view.create(PATH, content(NO_BROKER)):
            await asyncio.sleep(SEEN_S)
            await context.view.delete(PATH)
        return await until(context.view.controller, accept, what=what, timeout_s=timeout_s - UNSEEN_S)
