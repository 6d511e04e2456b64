import pytest

from harness.broker.controller.selectors import SELECTORS, Candidates, Selection, Strategy, controlled_shutdown, offline


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
    ("given", "expected"),
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
        pytest.param(candidates((1, 2), (1,), {2}), None, id="nobody of the ISR lives and unclean is not allowed"),
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
        pytest.param(candidates((1, 2), (1,), {3}, unclean=True), None, id="all replicas are dead"),
        pytest.param(
            candidates((1, 2), (1, 2), {1, 2}, frozenset({1})),
            Selection(leader=2, isr=(2,), receivers=(2,)),
            id="a broker that is shutting down is not online",
        ),
        pytest.param(
            candidates((1, 2), (1,), {1}, frozenset({1}), unclean=True),
            None,
            id="not even unclean is a broker elected that is shutting down",
        ),
    ],
)
def test_offline(given: Candidates, expected: Selection | None) -> None:
    assert offline(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
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
        pytest.param(candidates((1, 2), (1,), {1, 2}, frozenset({1})), None, id="nobody else is in the ISR"),
        pytest.param(candidates((1, 2), (1, 2), {1}, frozenset({1})), None, id="the other member is dead"),
        pytest.param(
            candidates((1, 2), (1,), {1, 2}, frozenset({1}), unclean=True),
            None,
            id="unclean election is no matter here",
        ),
    ],
)
def test_controlled_shutdown(given: Candidates, expected: Selection | None) -> None:
    assert controlled_shutdown(given) == expected


def test_every_strategy_has_its_selector() -> None:
    assert set(SELECTORS) == set(Strategy)
