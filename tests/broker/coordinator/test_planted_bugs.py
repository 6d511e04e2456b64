"""Each guard of the group coordinator does something: with its planted bug the same steps end otherwise."""

import pytest

from tests.broker.coordinator.planted_bugs import BUGS, played


@pytest.mark.parametrize("bug", BUGS)
async def test_a_guard_of_the_coordinator(bug: str) -> None:
    play = BUGS[bug].play
    right, _ = await played(play)
    wrong, _ = await played(play, bug)
    assert (right, wrong) == (BUGS[bug].right, BUGS[bug].wrong)
