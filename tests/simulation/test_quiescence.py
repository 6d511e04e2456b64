"""A schedule ends when every member of an ISR has the log of its leader."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from harness.simulation.quiescence import caught_up
from harness.system.process_state import ProcessState


def replica(end: int, *, leads: bool = False, isr: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(key=("t", 0), is_leader=leads, isr=isr, log=SimpleNamespace(log_end_offset=end))


def cluster(*replicas: Any, state: ProcessState = ProcessState.RUNNING) -> Any:
    """One replica a broker; the last broker has this state."""
    states = [ProcessState.RUNNING] * (len(replicas) - 1) + [state]
    brokers = {
        number: SimpleNamespace(
            state=states[number],
            broker=SimpleNamespace(
                ledger=object(), replicas=SimpleNamespace(replicas=SimpleNamespace(all=lambda each=each: [each]))
            ),
        )
        for number, each in enumerate(replicas)
    }
    return SimpleNamespace(brokers=brokers)


@pytest.mark.parametrize(
    ("follower", "isr", "state", "waits_s"),
    [
        pytest.param(4, (0, 1), ProcessState.RUNNING, 0.0, id="it has all"),
        pytest.param(3, (0, 1), ProcessState.RUNNING, 1.5, id="it is behind"),
        pytest.param(3, (0,), ProcessState.RUNNING, 0.0, id="it is not in the ISR"),
        pytest.param(3, (0, 1), ProcessState.PAUSED, 0.0, id="it does not run"),
    ],
)
async def test_members_of_the_isr_are_waited_for(
    follower: int, isr: tuple[int, ...], state: ProcessState, waits_s: float
) -> None:
    clock = asyncio.get_running_loop().time
    behind = replica(follower)
    asyncio.get_running_loop().call_later(1.2, setattr, behind.log, "log_end_offset", 4)
    began_s = clock()
    await caught_up(cluster(replica(4, leads=True, isr=isr), behind, state=state), patience_s=10)
    assert clock() - began_s == pytest.approx(waits_s)


async def test_one_that_does_not_catch_up_is_left_behind() -> None:
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await caught_up(cluster(replica(4, leads=True, isr=(0, 1)), replica(3)), patience_s=10)
    assert clock() - began_s == pytest.approx(10)
