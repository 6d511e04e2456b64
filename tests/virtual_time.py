"""Tests of the broker and of the simulation run in virtual time; those that need the real one say why.

A folder's `conftest.py` takes over the two names below. An asynchronous test then gets the simulation's loop, which
jumps to the next timer, and a test that waits on the real clock fails, unless it is marked `real_time` with its reason.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

import pytest

from harness.simulation.loop import SimulatedLoop

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


def pytest_asyncio_loop_factories(item: pytest.Item) -> LoopFactories:
    """Give asynchronous tests the loop they may have."""
    if _reason(item) is None:
        return {"virtual": SimulatedLoop}
    return {"real": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def only_virtual_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test that sleeps, or starts a loop on the real clock, without saying why."""
    if _reason(request.node) is None:
        monkeypatch.setattr(time, "sleep", _refuse_the_test(time.sleep))
        monkeypatch.setattr(asyncio.SelectorEventLoop, "run_forever", _refuse)


def _reason(item: pytest.Item) -> str | None:
    """Return why a test needs real time; None when it does not say that it does."""
    marker = item.get_closest_marker("real_time")
    if marker is None:
        return None
    (reason,) = marker.args
    return str(reason)


def _refuse_the_test(sleep: Callable[[float], None]) -> Callable[[float], None]:
    """Return what refuses in the test's own thread; those that libraries keep, as py4j does, sleep on."""
    own = threading.get_ident()
    return lambda seconds: _refuse() if threading.get_ident() == own else sleep(seconds)


def _refuse(*_: object, **__: object) -> NoReturn:
    pytest.fail("this test waits on the real clock: use virtual time, or mark it real_time and say why")
