from dataclasses import replace

import pytest

from harness.broker.controller.leadership import elected, initial, without_replica
from harness.broker.controller.selectors import Selection
from harness.broker.zookeeper.znodes import PartitionStateZnode

STATE = PartitionStateZnode(leader=1, leader_epoch=4, isr=(2, 1, 3), controller_epoch=7)
NEXT = replace(STATE, leader_epoch=5, controller_epoch=9)


def test_the_first_state_is_led_by_the_first_live_replica_in_epoch_0() -> None:
    assert initial((3, 1), 9) == PartitionStateZnode(leader=3, leader_epoch=0, isr=(3, 1), controller_epoch=9)


def test_an_election_raises_the_leader_epoch_and_carries_the_controllers() -> None:
    assert elected(STATE, Selection(leader=3, isr=(3,), receivers=(3,)), 9) == replace(NEXT, leader=3, isr=(3,))


@pytest.mark.parametrize(
    ("state", "replica", "expected"),
    [
        pytest.param(STATE, 3, replace(NEXT, isr=(2, 1)), id="a follower leaves"),
        pytest.param(STATE, 1, replace(NEXT, leader=-1, isr=(2, 3)), id="a leader that leaves has no successor"),
        pytest.param(STATE, 9, None, id="a broker outside the ISR cannot leave it"),
        pytest.param(
            replace(STATE, isr=(1,)),
            1,
            replace(NEXT, leader=-1, isr=(1,)),
            id="the last member stays, but does not lead",
        ),
        pytest.param(
            replace(STATE, leader=-1, isr=(1,)), 1, replace(NEXT, leader=-1, isr=(1,)), id="nor does it leave later"
        ),
    ],
)
def test_a_replica_leaves_the_isr(
    state: PartitionStateZnode, replica: int, expected: PartitionStateZnode | None
) -> None:
    assert without_replica(state, replica, 9) == expected
