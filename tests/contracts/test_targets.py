import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cluster.driver import quorum_ids
from harness.contracts.targets import Part, Role, Target, drawn, parse_target, resolve
from harness.values import OFFSETS_TOPIC
from tests.fake_cluster import FakeCluster


@pytest.mark.parametrize(
    ("text", "target"),
    [
        pytest.param("leader(orders,0)", Target(role=Role.LEADER, topic="orders", partition=0), id="a leader"),
        pytest.param(
            " followers( a.b_c-d , 12 ) ", Target(role=Role.FOLLOWERS, topic="a.b_c-d", partition=12), id="with blanks"
        ),
        pytest.param("controller", Target(role=Role.CONTROLLER), id="the controller"),
        pytest.param("coordinator(group-1)", Target(role=Role.COORDINATOR, group="group-1"), id="a coordinator"),
        pytest.param(
            "transaction-coordinator(t-1)",
            Target(role=Role.TRANSACTION_COORDINATOR, group="t-1"),
            id="a transaction coordinator",
        ),
        pytest.param("producer( 2 )", Target(role=Role.PRODUCER, member=2), id="a producer"),
        pytest.param("consumer(1)", Target(role=Role.CONSUMER, member=1), id="a consumer"),
        pytest.param("member( group-1, 2 )", Target(role=Role.MEMBER, group="group-1", member=2), id="a member"),
        pytest.param("one", Target(role=Role.ONE), id="any one"),
        pytest.param("minority", Target(role=Role.MINORITY), id="fewer than half"),
        pytest.param("zookeeper", Target(role=Role.ZOOKEEPER), id="any ZooKeeper server"),
        pytest.param("zookeeper(2)", Target(role=Role.ZOOKEEPER, servers=(2,)), id="one ZooKeeper server"),
        pytest.param("zookeeper( 3, 1 )", Target(role=Role.ZOOKEEPER, servers=(3, 1)), id="two ZooKeeper servers"),
        pytest.param("zookeeper( leader )", Target(role=Role.ZOOKEEPER, part=Part.LEADER), id="ZooKeeper's leader"),
        pytest.param("quorum", Target(role=Role.QUORUM), id="any controller"),
        pytest.param("quorum( majority )", Target(role=Role.QUORUM, part=Part.MAJORITY), id="most of the quorum"),
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
        pytest.param("most", "not a target: 'most'; allowed: leader", id="an unknown word"),
        pytest.param("zookeeper(0)", "not a target", id="a server 0"),
        pytest.param("zookeeper(one)", "not a target", id="a part of ZooKeeper that has no name"),
        pytest.param("zookeeper(2,2)", "names a server twice", id="a server twice"),
        pytest.param("quorum(101)", "not a target", id="a controller by its id"),
        pytest.param("leader", "allowed: leader\\(topic,partition\\)", id="a leader of nothing"),
        pytest.param("leader(orders)", "not a target", id="no partition"),
        pytest.param("coordinator", "not a target", id="a coordinator of nothing"),
        pytest.param("member(group-1,0)", "not a target", id="members are counted from 1"),
        pytest.param("producer(0)", "not a target", id="producers too"),
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
    assert await resolve(parse_target(text), FakeCluster(root=tmp_path)) == brokers


@dataclass
class Quorum(FakeCluster):
    """A cluster whose controllers are servers of their own."""

    voters: tuple[int, ...] = (101, 102, 103)


@pytest.mark.parametrize(
    ("text", "leader", "hit"),
    [
        pytest.param("quorum(leader)", 102, (102,), id="its leader"),
        pytest.param("quorum(follower)", 101, (102,), id="the first that does not lead"),
        pytest.param("quorum(follower)", 102, (101,), id="which another one may be"),
        pytest.param("quorum(leader)", -1, (), id="no leader"),
    ],
)
async def test_who_leads_a_quorum_is_seen_at_the_moment(
    text: str, leader: int, hit: tuple[int, ...], tmp_path: Path
) -> None:
    assert await resolve(parse_target(text), Quorum(root=tmp_path, controller_id=leader)) == hit


async def test_a_cluster_with_zookeeper_has_no_follower_of_a_quorum(tmp_path: Path) -> None:
    assert await resolve(parse_target("quorum(follower)"), FakeCluster(root=tmp_path)) == ()


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param("quorum", {1}, id="one"),
        pytest.param("quorum(majority)", {2}, id="most"),
        pytest.param("quorum(all)", {3}, id="all"),
        pytest.param("quorum(leader)", {0}, id="the leader at that time"),
    ],
)
def test_the_seed_draws_controllers(text: str, sizes: set[int]) -> None:
    ids = quorum_ids(3, 3, separate=True)
    hit = [drawn(parse_target(text), range(3), 0, random.Random(seed), ids)[1] for seed in range(50)]
    assert {len(each) for each in hit} == sizes
    assert {id_ for each in hit for id_ in each} == ({101, 102, 103} if sizes != {0} else set())


@pytest.mark.parametrize(
    ("brokers", "controllers", "separate", "ids"),
    [
        pytest.param(5, None, False, [0, 1, 2], id="three of five brokers"),
        pytest.param(2, None, False, [0], id="one of two"),
        pytest.param(3, 1, False, [0], id="one of three as it says"),
        pytest.param(3, None, True, [101], id="one beside them"),
        pytest.param(1, 3, True, [101, 102, 103], id="three beside one"),
    ],
)
def test_which_ids_controllers_have(brokers: int, controllers: int | None, separate: bool, ids: list[int]) -> None:
    assert [*quorum_ids(brokers, controllers, separate=separate)] == ids


async def test_a_group_is_coordinated_by_the_leader_of_its_partition(tmp_path: Path) -> None:
    cluster = FakeCluster(root=tmp_path)
    assert await resolve(parse_target("coordinator(group-1)"), cluster) == ()
    cluster.assignments = {(OFFSETS_TOPIC, number): (0, 1, 2) for number in range(3)}
    assert await resolve(parse_target("coordinator(group-1)"), cluster) == (cluster.leader,)


async def test_nobody_has_a_role_that_is_vacant(tmp_path: Path) -> None:
    cluster = FakeCluster(root=tmp_path, controller_id=-1, leader=-1)
    assert await resolve(parse_target("controller"), cluster) == ()
    assert await resolve(parse_target("leader(orders,0)"), cluster) == ()


@pytest.mark.parametrize(
    ("text", "brokers", "sizes"),
    [
        pytest.param("one", 3, {1}, id="one of three"),
        pytest.param("minority", 3, {1}, id="a minority of three"),
        pytest.param("minority", 4, {1}, id="a minority of four"),
        pytest.param("minority", 5, {2}, id="a minority of five"),
        pytest.param("majority", 4, {3}, id="a majority of four"),
        pytest.param("majority", 5, {3}, id="a majority of five"),
        pytest.param("all", 5, {5}, id="all of them"),
        pytest.param("2,0", 5, {2}, id="explicit ids"),
        pytest.param("controller", 5, {0}, id="a role that only the moment knows"),
    ],
)
def test_the_seed_draws_as_many_brokers_as_the_word_says(text: str, brokers: int, sizes: set[int]) -> None:
    draws = [drawn(parse_target(text), range(brokers), 1, random.Random(seed))[1] for seed in range(50)]
    assert {len(set(each)) for each in draws} == sizes
    assert all(set(each) <= set(range(brokers)) for each in draws)


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        pytest.param("zookeeper", {(1,), (2,), (3,)}, id="one"),
        pytest.param("zookeeper(majority)", {(1, 2), (1, 3), (2, 3)}, id="more than half"),
        pytest.param("zookeeper(all)", {(1, 2, 3)}, id="all"),
        pytest.param("zookeeper(3,1)", {(3, 1)}, id="those that are named"),
        pytest.param("zookeeper(leader)", {()}, id="none, where only the moment knows"),
    ],
)
def test_the_seed_draws_zookeeper_servers_unless_they_are_named(text: str, servers: set[tuple[int, ...]]) -> None:
    draws = [drawn(parse_target(text), range(3), 3, random.Random(seed)) for seed in range(30)]
    assert {target.servers for target, brokers in draws if not brokers} == servers
    assert {target.part for target, _ in draws} == {None if servers != {()} else Part.LEADER}
