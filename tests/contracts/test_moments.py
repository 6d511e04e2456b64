"""A moment is what any broker logs from now on, and one that does not come passes."""

import asyncio
from typing import Any

import pytest

from harness.contracts.moments import MOMENTS, until_moment
from harness.simulation.loop import START_S, run, simulated_loop

LEADER = {"ev": "become_leader", "topic": "orders"}
LOADING = {"ev": "become_leader", "topic": "__consumer_offsets"}
SHRINK = {"ev": "isr_propose", "kind": "shrink"}


class Logs:
    """State changes of two brokers, each with its instant; a position is a number of lines."""

    def __init__(self, lines: dict[int, list[tuple[float, dict[str, Any]]]]) -> None:
        self._lines = lines

    def _now(self, broker_id: int) -> list[dict[str, Any]]:
        passed_s = simulated_loop().time() - START_S
        return [line for at_s, line in self._lines.get(broker_id, []) if at_s <= passed_s]

    async def end_of(self, broker_id: int) -> int:
        return len(self._now(broker_id))

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        lines = self._now(broker_id)
        return [line for line in lines[position:] if line["ev"] in kinds], len(lines)

    async def grown(self, kind: str, within_s: float) -> None:
        await asyncio.sleep(min(0.02, within_s))


@pytest.mark.parametrize(
    ("name", "lines", "seen", "at_s"),
    [
        pytest.param("leader-elected", {1: [(2.0, LEADER)]}, True, 2.5, id="so long after the line"),
        pytest.param("leader-elected", {1: [(0.0, LEADER)]}, False, 5.0, id="what was logged before does not count"),
        pytest.param("isr-expands", {0: [(1.0, SHRINK)]}, False, 5.0, id="another one of the kind does not count"),
        pytest.param("coordinator-loads", {0: [(1.0, LEADER), (3.0, LOADING)]}, True, 3.5, id="the topic counts"),
        pytest.param("isr-shrinks", {}, False, 5.0, id="it does not come"),
    ],
)
def test_a_moment_is_waited_for(name: str, lines: dict[int, Any], seen: bool, at_s: float) -> None:
    async def work() -> float:
        logs: Any = Logs(lines)
        assert await until_moment(logs, [0, 1], MOMENTS[name], within_s=5.0, offset_s=0.5) is seen
        return simulated_loop().time() - START_S

    assert run(work()) == pytest.approx(at_s, abs=0.05)
