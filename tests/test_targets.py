from pathlib import Path

import pytest

from harness.targets import Role, Target, parse_target, resolve
from tests.fake_cluster import FakeCluster


@pytest.mark.parametrize(
    ("text", "target"),
    [
        pytest.param("leader(orders,0)", Target(role=Role.LEADER, topic="orders", partition=0), id="a leader"),
        pytest.param(
            " followers( a.b_c-d , 12 ) ", Target(role=Role.FOLLOWERS, topic="a.b_c-d", partition=12), id="with blanks"
        ),
        pytest.param("controller", Target(role=Role.CONTROLLER), id="the controller"),
        pytest.param("one", Target(role=Role.ONE), id="any one"),
        pytest.param("2", Target(role=Role.IDS, broker_ids=(2,)), id="one id"),
        pytest.param("2, 0", Target(role=Role.IDS, broker_ids=(2, 0)), id="two ids"),
    ],
)
def test_an_expression_says_whom_it_hits(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "not a target: ''", id="nothing"),
        pytest.param("all", "not a target: 'all'; allowed: leader", id="an unknown word"),
        pytest.param("leader", "allowed: leader\\(topic,partition\\)", id="a leader of nothing"),
        pytest.param("leader(orders)", "not a target", id="no partition"),
        pytest.param("leader(orders,-1)", "not a target", id="a negative partition"),
        pytest.param("-1", "not a target", id="a negative id"),
        pytest.param("1,1", "names a broker twice", id="an id twice"),
        pytest.param("1,", "not a target", id="a list cut short"),
    ],
)
def test_other_expressions_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "brokers"),
    [
        pytest.param("leader(orders,0)", (1,), id="the leader"),
        pytest.param("followers(orders,0)", (0, 2), id="all replicas but the leader"),
        pytest.param("leader(orders,1)", (), id="no such partition"),
        pytest.param("controller", (0,), id="the controller"),
        pytest.param("2,1", (2, 1), id="explicit ids"),
    ],
)
async def test_a_role_is_resolved_from_zookeeper(text: str, brokers: tuple[int, ...], tmp_path: Path) -> None:
    assert await resolve(parse_target(text), FakeCluster(tmp_path)) == brokers


async def test_nobody_has_a_role_that_is_vacant(tmp_path: Path) -> None:
    cluster = FakeCluster(tmp_path, controller_id=-1, leader=-1)
    assert await resolve(parse_target("controller"), cluster) == ()
    assert await resolve(parse_target("leader(orders,0)"), cluster) == ()
