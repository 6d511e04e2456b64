"""Brings brokers back, whatever a fault has left of them."""

import asyncio

from harness.contracts.faults import Arena


async def start_stopped(arena: Arena, brokers: tuple[int, ...]) -> None:
    """Start those that do not run, all at once, each when its old registration is gone.

    Raises:
        ClusterError: one could not be started; the others were tried all the same.
    """
    status = await arena.driver.status()
    stopped = [broker for broker in brokers if status.broker(broker).state == "stopped"]
    outcomes = await asyncio.gather(*map(arena.driver.start_broker, stopped), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def end_session(arena: Arena, broker_id: int) -> None:
    """End the session that a dead broker has left behind, so that it can come back before it times out."""
    registration = (await arena.view.registrations()).get(broker_id)
    if registration is not None:
        await arena.view.expire(registration.session)
