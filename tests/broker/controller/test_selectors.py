from dataclasses import replace

import pytest

from harness.broker.controller import selectors_0_8
from harness.broker.controller.selectors import (
    NO_REPLICA,
    SELECTORS,
    Candidates,
    Refusal,
    Selection,
    Strategy,
    controlled_shutdown,
    offline,
    preferred,
    reassign,
)
from harness.broker.rules import ProtocolRules, rules_with


def candidates(
    assigned: tuple[int, ...],
    isr: tuple[int, ...],
    live: set[int],
    shutting_down: frozenset[int] = frozenset(),
    *,
    unclean: bool = False,
) -> Candidates:
    return Candidates(
        assigned=assigned, isr=isr, live=frozenset(live), shutting_down=shutting_down, unclean_allowed=unclean
    )


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        pytest.param(
            candidates((1, 2, 3), (3, 2), {2, 3}),
            Selection(leader=2, isr=(3, 2), receivers=(2, 3)),
            id="the first in assignment order leads, whatever the order of the ISR, which is kept",
        ),
        pytest.param(
            candidates((1, 2, 3), (1, 2, 3), {2, 3}),
            Selection(leader=2, isr=(2, 3), receivers=(2, 3)),
            id="dead members leave the ISR",
        ),
        pytest.param(
            candidates((1, 2, 3), (1, 3), {2, 3}),
            Selection(leader=3, isr=(3,), receivers=(2, 3)),
            id="a live replica outside the ISR is only told",
        ),
        pytest.param(candidates((1, 2), (1,), {2}), NO_REPLICA, id="the ISR is dead, and unclean is not allowed"),
        pytest.param(
            candidates((1, 2, 3), (1,), {3, 2}, unclean=True),
            Selection(leader=2, isr=(2,), receivers=(2, 3), unclean=True),
            id="unclean: the first live replica leads and is the whole ISR",
        ),
        pytest.param(
            candidates((1, 2), (2,), {1, 2}, unclean=True),
            Selection(leader=2, isr=(2,), receivers=(1, 2)),
            id="unclean is never looked at while a member of the ISR lives",
        ),
        pytest.param(candidates((1, 2), (1,), {3}, unclean=True), NO_REPLICA, id="all replicas are dead"),
        pytest.param(
            candidates((1, 2), (1, 2), {1, 2}, frozenset({1})),
            Selection(leader=2, isr=(2,), receivers=(2,)),
            id="a broker that is shutting down is not online",
        ),
        pytest.param(
            candidates((1, 2), (1,), {1}, frozenset({1}), unclean=True),
            NO_REPLICA,
            id="not even unclean is a broker elected that is shutting down",
        ),
    ],
)
def test_offline(among: Candidates, expected: Selection | Refusal) -> None:
    assert offline(among) == expected


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        pytest.param(
            candidates((1, 2, 3), (3, 1, 2), {1, 2, 3}, frozenset({1})),
            Selection(leader=2, isr=(3, 2), receivers=(1, 2, 3)),
            id="the first other member leads, and the leaving broker is told too",
        ),
        pytest.param(
            candidates((1, 2, 3), (1, 2, 3), {1, 3}, frozenset({1})),
            Selection(leader=3, isr=(2, 3), receivers=(1, 3)),
            id="a dead member is no leader but stays in the ISR",
        ),
        pytest.param(
            candidates((1, 2, 3), (1, 2, 3), {1, 2, 3}, frozenset({1, 2})),
            Selection(leader=3, isr=(3,), receivers=(1, 2, 3)),
            id="all that are leaving leave the ISR",
        ),
        pytest.param(candidates((1, 2), (1,), {1, 2}, frozenset({1})), NO_REPLICA, id="no other member is in the ISR"),
        pytest.param(candidates((1, 2), (1, 2), {1}, frozenset({1})), NO_REPLICA, id="the other member is dead"),
        pytest.param(
            candidates((1, 2), (1,), {1, 2}, frozenset({1}), unclean=True),
            NO_REPLICA,
            id="unclean election is no matter here",
        ),
    ],
)
def test_controlled_shutdown(among: Candidates, expected: Selection | Refusal) -> None:
    assert controlled_shutdown(among) == expected


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        pytest.param(
            candidates((4, 3, 2), (2, 3, 1), {1, 2, 3}),
            Selection(leader=3, isr=(2, 3, 1), receivers=(4, 3, 2)),
            id="the first target in the ISR and online leads, the ISR is kept, dead targets are told too",
        ),
        pytest.param(
            candidates((1, 2), (1, 2), {1, 2}, frozenset({1})),
            Selection(leader=2, isr=(1, 2), receivers=(1, 2)),
            id="not one that is shutting down",
        ),
        pytest.param(candidates((4, 5), (1, 2), {1, 2, 4, 5}), NO_REPLICA, id="no target is in the ISR"),
        pytest.param(candidates((4, 5), (4, 5), {1}, unclean=True), NO_REPLICA, id="no target lives"),
    ],
)
def test_reassign(among: Candidates, expected: Selection | Refusal) -> None:
    assert reassign(among) == expected


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        pytest.param(
            candidates((1, 2, 3), (3, 1), {1, 3}),
            Selection(leader=1, isr=(3, 1), receivers=(1, 2, 3)),
            id="online and in the ISR: it leads, the ISR is kept, all assigned are told",
        ),
        pytest.param(candidates((1, 2), (2,), {1, 2}), NO_REPLICA, id="not in the ISR"),
        pytest.param(candidates((1, 2), (1, 2), {2}), NO_REPLICA, id="dead"),
        pytest.param(candidates((1, 2), (1, 2), {1, 2}, frozenset({1})), NO_REPLICA, id="shutting down"),
        pytest.param(candidates((), (), {1}), NO_REPLICA, id="nothing is assigned"),
    ],
)
def test_preferred(among: Candidates, expected: Selection | Refusal) -> None:
    assert preferred(among) == expected


OLD = selectors_0_8.SELECTORS


@pytest.mark.parametrize(
    ("strategy", "among", "expected"),
    [
        pytest.param(
            Strategy.OFFLINE,
            candidates((1, 2, 3), (3, 2), {2, 3}),
            Selection(leader=2, isr=(3, 2), receivers=(2, 3)),
            id="offline: the first assigned that lives and is in sync; the ISR keeps its order",
        ),
        pytest.param(Strategy.OFFLINE, candidates((1, 2), (1,), {2}), "NoReplicaOnline", id="offline: no ISR alive"),
        pytest.param(
            Strategy.OFFLINE, candidates((1, 2), (1,), {3}, unclean=True), "NoReplicaOnline", id="offline: all dead"
        ),
        pytest.param(Strategy.OFFLINE, candidates((), (), {3}, unclean=True), "NoReplicaOnline", id="offline: nothing"),
        pytest.param(
            Strategy.OFFLINE,
            candidates((1, 2, 3), (1,), {2, 3}, unclean=True),
            Selection(leader=2, isr=(2,), receivers=(2, 3), unclean=True),
            id="offline: unclean",
        ),
        pytest.param(
            Strategy.REASSIGN,
            candidates((4, 3), (1, 3), {1, 3, 4}),
            Selection(leader=3, isr=(1, 3), receivers=(4, 3)),
            id="reassign: the first target in sync",
        ),
        pytest.param(Strategy.REASSIGN, candidates((), (1,), {1}), "NoReplicaOnline", id="reassign: empty list"),
        pytest.param(Strategy.REASSIGN, candidates((4,), (1,), {1, 4}), "NoReplicaOnline", id="reassign: none in sync"),
        pytest.param(
            Strategy.PREFERRED,
            candidates((1, 2), (2, 1), {1, 2}),
            Selection(leader=1, isr=(2, 1), receivers=(1, 2)),
            id="preferred: online and in sync",
        ),
        pytest.param(
            Strategy.PREFERRED,
            replace(candidates((1, 2), (2, 1), {1, 2}), leader=1),
            "LeaderElectionNotNeeded",
            id="preferred: leads already",
        ),
        pytest.param(
            Strategy.PREFERRED, candidates((1, 2), (2,), {1, 2}), "StateChangeFailed", id="preferred: not in sync"
        ),
        pytest.param(
            Strategy.CONTROLLED_SHUTDOWN,
            candidates((1, 2, 3), (3, 1, 2), {1, 2}, frozenset({1})),
            Selection(leader=3, isr=(3, 2), receivers=(1, 2)),
            id="controlled shutdown: the head of the ISR, even a dead one",
        ),
        pytest.param(
            Strategy.CONTROLLED_SHUTDOWN,
            candidates((1, 2), (1,), {1, 2}, frozenset({1})),
            "StateChangeFailed",
            id="controlled shutdown: no other member in sync",
        ),
        pytest.param(
            Strategy.NO_OP,
            replace(candidates((1, 2), (2, 1), set()), leader=2),
            Selection(leader=2, isr=(2, 1), receivers=(1, 2)),
            id="no-op: as it is",
        ),
    ],
)
def test_the_profile_of_kafka_0_8(strategy: Strategy, among: Candidates, expected: Selection | str) -> None:
    chosen = OLD[strategy](among)
    assert (chosen.kind if isinstance(chosen, Refusal) else chosen) == expected


@pytest.mark.parametrize(
    ("bug", "strategy", "among", "leader", "isr"),
    [
        pytest.param(
            "unclean-keeps-old-isr",
            Strategy.OFFLINE,
            candidates((1, 2), (1,), {2}, unclean=True),
            2,
            (1,),
            id="an unclean leader outside its ISR",
        ),
        pytest.param(
            "preferred-not-in-isr", Strategy.PREFERRED, candidates((1, 2), (2,), {1, 2}), 1, (2,), id="a lagging leader"
        ),
    ],
)
def test_planted_bugs(bug: str, strategy: Strategy, among: Candidates, leader: int, isr: tuple[int, ...]) -> None:
    right, wrong = (SELECTORS[strategy](replace(among, rules=rules)) for rules in (ProtocolRules(), rules_with([bug])))
    assert right != wrong
    assert isinstance(wrong, Selection)
    assert (wrong.leader, wrong.isr) == (leader, isr)


def test_every_strategy_has_its_selector() -> None:
    assert set(SELECTORS) == set(Strategy) - {Strategy.INITIALIZE, Strategy.NO_OP}
    assert set(OLD) == set(Strategy) - {Strategy.INITIALIZE}
