import pytest

from harness.broker.controller.assignment import Assignment


@pytest.mark.parametrize(
    ("before", "target", "expected"),
    [
        pytest.param(
            Assignment(replicas=(1, 2, 3)),
            (1, 2, 4),
            Assignment(replicas=(1, 2, 4, 3), adding=(4,), removing=(3,)),
            id="one is replaced",
        ),
        pytest.param(
            Assignment(replicas=(1,)), (1, 2, 3), Assignment(replicas=(1, 2, 3), adding=(2, 3)), id="replicas are added"
        ),
        pytest.param(
            Assignment(replicas=(1, 2, 3)), (2,), Assignment(replicas=(2, 1, 3), removing=(1, 3)), id="some are removed"
        ),
        pytest.param(Assignment(replicas=(1, 2, 3)), (3, 1, 2), Assignment(replicas=(3, 1, 2)), id="only the order"),
        pytest.param(
            Assignment(replicas=(1, 2, 4, 3), adding=(4,), removing=(3,)),
            (1, 2, 5),
            Assignment(replicas=(1, 2, 5, 3), adding=(5,), removing=(3,)),
            id="another target takes the place of the first one",
        ),
        pytest.param(
            Assignment(replicas=(4, 5, 1, 2), adding=(4, 5), removing=(1, 2)),
            (1, 2),
            Assignment(replicas=(1, 2)),
            id="back to the origin: nothing is left of it",
        ),
    ],
)
def test_reassigned_to(before: Assignment, target: tuple[int, ...], expected: Assignment) -> None:
    changed = before.reassigned_to(target)
    assert changed == expected
    assert (changed.target, set(changed.origin)) == (target, set(before.origin))
    assert changed.is_reassigned == (set(target) != set(before.origin))


def test_without_a_replica() -> None:
    assignment = Assignment(replicas=(4, 1, 2), adding=(4,), removing=(2,))
    assert assignment.without(4) == Assignment(replicas=(1, 2), removing=(2,))
    assert assignment.without(2) == Assignment(replicas=(4, 1), adding=(4,))
