"""Recorded scripts: what a player writes down of the answers, and that the broker gives the recorded ones."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.broker.wire.transport import PeerError
from harness.client_rules.scripts.asking import Asking
from harness.client_rules.scripts.player import QUIET_S
from harness.client_rules.scripts.recorded import Kind, lines_of, recorded
from harness.client_rules.scripts.script import Script
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.scenario.file import load_scenario
from harness.simulation.loop import run
from harness.simulation.schedule import simulate
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder


@dataclass
class Answering(Target):
    """A broker that answers as recorded, changed by what is wrong with it."""

    wrong: Any = None
    wrong_plays: int = 10**9
    """Plays after which nothing is wrong any more."""
    plays: int = 0
    by_script: dict[Script, Any] = field(default_factory=dict)

    async def warm_up(self) -> None: ...

    async def stands(self) -> bool:
        return True

    async def play(self, script: Script, prefix: str, stopped: Callable[[], bool] = bool) -> Any:
        self.plays += 1
        if isinstance(self.wrong, PeerError):
            raise self.wrong
        known = next(each for kind in Kind for line in lines_of(kind) if (each := recorded(line)).script == script)
        is_wrong = self.wrong and self.plays <= self.wrong_plays
        return [self.wrong, *known.answers[1:]] if is_wrong else known.answers


def plan(seed: int = 1, kind: Kind = Kind.SLOW) -> ClientPlan:
    return ClientPlan(
        process="player",
        workload="play-scripts",
        role="script-player",
        bootstrap_servers="",
        topics={},
        seed=seed,
        parameters={"scripts": kind, "interval_s": 0.0001, "at_once": 1},
        stop_order=0,
    )


async def written(
    wrong: Any, *, seed: int = 1, plays: int = 2, wrong_plays: int = 10**9, kind: Kind = Kind.SLOW
) -> list[Operation]:
    """What is written down after the warm-up."""
    found: list[Operation] = []
    broker = Answering(None, "host", 1, wrong=wrong, wrong_plays=wrong_plays)  # type: ignore[arg-type]
    asking = Asking(plan(seed, kind), Recorder("player", found.append, lambda: 0))
    await asking.run(broker, lambda: broker.plays >= plays)
    return found[2:]


@pytest.mark.parametrize(
    ("wrong", "outcome", "error"),
    [
        pytest.param(None, OpType.OK, "", id="every answer is as recorded"),
        pytest.param("closed", OpType.OK, "step 1, version ", id="the first answer is another one"),
        pytest.param(PeerError("connection refused"), OpType.INFO, "connection refused", id="no broker is there"),
    ],
)
async def test_what_is_written_down_of_a_script(wrong: Any, outcome: OpType, error: str) -> None:
    begun, ended, *_ = await written(wrong)
    assert (begun.kind, begun.type, begun.mode) == (OpKind.ASK, OpType.INVOKE, ended.mode)
    assert ended.type is outcome
    assert ended.error.startswith(error)
    assert bool(ended.error) == bool(error)


async def test_players_play_in_orders_of_their_own() -> None:
    one, another = [[each.mode for each in await written(None, seed=seed, plays=5)] for seed in (1, 2)]
    assert one != another


async def test_a_difference_that_is_not_there_again_does_not_count() -> None:
    _, ended, *_ = await written("closed", wrong_plays=1)
    assert (ended.type, ended.error) == (OpType.OK, "")


@pytest.mark.parametrize(
    ("wrong", "outcome", "error"),
    [
        pytest.param({"error_code": 1}, OpType.OK, "step 1, version ", id="another answer counts at once"),
        pytest.param("closed", OpType.INFO, "the broker ended during step 1: closed", id="the broker ended too early"),
        pytest.param({"error_code": 7}, OpType.INFO, "the broker was too slow in step 1", id="a request timed out"),
    ],
)
async def test_a_script_with_restarts_is_played_once(wrong: Any, outcome: OpType, error: str) -> None:
    _, ended, *_ = await written(wrong, wrong_plays=1, kind=Kind.RESTARTS)
    assert ended.type is outcome
    assert ended.error.startswith(error)


async def test_after_the_scripts_with_restarts_come_quick_ones() -> None:
    modes = [each.mode.partition(" ")[0] for each in await written(None, plays=3, kind=Kind.RESTARTS)]
    assert modes == [*["restarts"] * 2, *["quick"] * 4]


@dataclass
class Serving:
    """A connection to a broker that answers until it ends."""

    until_s: float

    async def request(self, *_: Any, **__: Any) -> None:
        if asyncio.get_running_loop().time() >= self.until_s:
            raise PeerError("closed")

    def close(self) -> None: ...


@dataclass
class Ending(Target):
    """A broker that ends after a time, cannot be reached for some questions, and serves again."""

    ends_s: float = 0
    is_away: int = 0
    connections: int = 0

    async def _connected(self) -> Any:
        self.connections += 1
        return Serving(asyncio.get_running_loop().time() + self.ends_s)

    async def warm_up(self) -> None:
        self.is_away -= 1
        if self.is_away >= 0:
            raise PeerError("refused")


def test_a_restart_is_over_when_the_broker_has_ended_and_serves_again() -> None:
    async def wait() -> Ending:
        broker = Ending(None, "host", 1, ends_s=QUIET_S + 1, is_away=1)  # type: ignore[arg-type]
        await asyncio.gather(*(broker.restarted(lambda: False, "stop") for _ in range(3)))
        return broker

    broker = run(wait())
    assert (broker.connections, broker.is_away) == (1, -1), "all scripts look with one pair of eyes"


def test_a_broker_that_ends_while_a_script_is_not_yet_quiet_ends_too_early() -> None:
    broker = Ending(None, "host", 1, ends_s=QUIET_S - 1)  # type: ignore[arg-type]
    with pytest.raises(PeerError, match="the broker ended within 4 s"):
        run(broker.restarted(lambda: False, "stop"))


def test_a_restart_that_does_not_come_is_given_up_when_the_load_stops() -> None:
    broker = Ending(None, "host", 1, ends_s=10**9)  # type: ignore[arg-type]
    looks = iter([False, True])
    with pytest.raises(PeerError, match="was not restarted: kill"):
        run(broker.restarted(lambda: next(looks, True), "kill"))


@pytest.mark.parametrize("name", ["scripts-light", "slow-scripts-light", "restarted-scripts-light"])
def test_the_broker_answers_as_recorded(name: str) -> None:
    history = simulate(load_scenario(f"tools/{name}.yaml"), 1)
    ended = [each for of in history.operations.values() for each in of if each.kind is OpKind.ASK and each.error]
    assert ended == []
    assert history.remarks == []
