"""What faults can do to a simulated cluster's network, disks and ZooKeeper, and that it ends by itself."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.broker.wire.messages import ApiVersionsRequest
from harness.cluster.capabilities import Direction, Side, Slowness
from harness.cluster.disks.damage import Damage, What
from harness.cluster.disks.disk_errors import DiskError, error_number
from harness.cluster.driver import CAPABILITIES
from harness.cluster.links.interference import Interference
from harness.cluster.links.links import Links
from harness.errors import ClusterError
from harness.events import BrokerStop
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.driver import SimulatedStateChanges, SimulatedView, SimulationDriver
from harness.simulation.loop import run
from harness.simulation.runs import SIMULATED
from harness.system.process_state import ProcessState
from harness.system.waiting import until

BOTH, IN, OUT = Direction.BOTH, Direction.INBOUND, Direction.OUTBOUND
SIDES = tuple(Side)
OF_A_QUORUM = (Side.CONTROLLERS,)
"""None in virtual time, which has ZooKeeper."""


def with_driver(story: Callable[[SimulationDriver], Awaitable[None]], *, zookeeper_servers: int = 1) -> None:
    """Tell a story of two brokers that run, with one client."""

    async def work() -> None:
        cluster = SimulatedCluster([0, 1], seed=1, zookeeper_servers=zookeeper_servers)
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
        await asyncio.sleep(1)
        await story(SimulationDriver(cluster, ["producer-1"]))

    run(work())


async def reached(driver: SimulationDriver, broker: int) -> set[str]:
    """Return which sides a broker reaches (>) and which reach it (<)."""
    probes = {
        f"{'<' if way is IN else '>'}{side}": await driver.probe(broker, side, way, timeout_s=0.5)
        for side in SIDES
        for way in BOTH.ways
    }
    return {name for name, hosts in probes.items() if hosts and None not in hosts.values()}


EVERYWHERE = {f"{way}{side}" for side in SIDES if side not in OF_A_QUORUM for way in "<>"}


def test_the_driver_has_every_power_that_it_claims() -> None:
    async def story(driver: SimulationDriver) -> None:
        lacking = {name for name, protocol in CAPABILITIES.items() if not isinstance(driver, protocol)}
        assert lacking == {"clients"} | CAPABILITIES.keys() - SIMULATED, "clients it brings with it"

    with_driver(story)


@pytest.mark.parametrize(
    ("sides", "direction", "lost"),
    [
        pytest.param(SIDES, BOTH, EVERYWHERE, id="from all"),
        pytest.param((Side.PEERS,), BOTH, {"<peers", ">peers"}, id="from its peers"),
        pytest.param((Side.CLIENTS, Side.ZOOKEEPER), IN, {"<clients", "<zookeeper"}, id="one way in"),
        pytest.param((Side.ZOOKEEPER,), OUT, {">zookeeper"}, id="one way out"),
        pytest.param(OF_A_QUORUM, BOTH, set(), id="from controllers that there are none of"),
    ],
)
def test_an_isolated_broker_reaches_nobody_it_is_cut_off_from(
    sides: tuple[Side, ...], direction: Direction, lost: set[str]
) -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.isolate(1, sides, direction, at_most_s=30)
        assert await reached(driver, 1) == EVERYWHERE - lost
        await driver.rejoin(1)
        await driver.rejoin(1)
        assert await reached(driver, 1) == EVERYWHERE

    with_driver(story)


def test_isolation_delay_and_a_full_disk_end_by_themselves() -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.isolate(1, (Side.CLIENTS,), BOTH, at_most_s=10)
        await driver.delay(1, (Side.PEERS,), BOTH, Slowness(extra_s=0.6), at_most_s=10)
        await driver.fill_disk(0, at_most_s=10)
        assert await reached(driver, 1) == {"<zookeeper", ">zookeeper"}
        assert await driver.disk_is_full(0)
        await asyncio.sleep(10)
        assert await reached(driver, 1) == EVERYWHERE
        assert not await driver.disk_is_full(0)

    with_driver(story)


def test_a_clock_goes_apart_and_comes_back_by_itself() -> None:
    async def story(driver: SimulationDriver) -> None:
        logs = SimulatedStateChanges(driver._cluster)

        async def ahead_s(broker: int) -> float:
            """By its next line."""
            position = await logs.end_of(broker)
            driver._cluster[broker].log.incarnation("x").emit(BrokerStop(controlled=True))
            shown_ns, _ = await logs.dated(broker, position)
            assert shown_ns is not None
            return (shown_ns - logs.wall_ns()) / 1e9

        await driver.set_clock(1, step_s=-3600, rate=1.5, at_most_s=10)
        await asyncio.sleep(4)
        assert [await ahead_s(0), await ahead_s(1)] == [0, -3598]
        assert driver._cluster[1].log.wall_ms() - driver._cluster[0].log.wall_ms() == -3_598_000
        await driver.reset_clock(1)
        assert await ahead_s(1) == 0
        await driver.set_clock(1, step_s=60, rate=1, at_most_s=10)
        await asyncio.sleep(10)
        assert await ahead_s(1) == 0
        assert await logs.dated(1, await logs.end_of(1)) == (None, await logs.end_of(1))

    with_driver(story)


def test_a_link_between_two_isolated_brokers_heals_with_the_last_of_them() -> None:
    async def story(driver: SimulationDriver) -> None:
        for broker in (0, 1):
            await driver.isolate(broker, (Side.PEERS,), BOTH, at_most_s=30)
        await driver.rejoin(0)
        assert await driver.probe(0, Side.PEERS, OUT, timeout_s=0.5) == {"broker-1": None}
        await driver.rejoin(1)
        assert None not in (await driver.probe(0, Side.PEERS, OUT, timeout_s=0.5)).values()

    with_driver(story)


def test_the_longest_of_several_delays_counts() -> None:
    async def story() -> None:
        links = Links()
        interference = Interference(links)
        interference.slow("one", [("a", "b")], Slowness(extra_s=0.2), at_most_s=9)
        interference.slow("other", [("a", "b")], Slowness(extra_s=0.5), at_most_s=9)
        assert links.delay_s(("a", "b")) == 0.5
        interference.release("other")
        assert links.delay_s(("a", "b")) == 0.2
        interference.release("one")
        assert links.delay_s(("a", "b")) == 0.0

    run(story())


def test_a_reset_takes_every_connection_even_over_a_cut_link() -> None:
    async def story(driver: SimulationDriver) -> None:
        before = await driver.connections(1, SIDES)
        assert before
        await driver.isolate(0, (Side.PEERS,), BOTH, at_most_s=30)
        await driver.pause_broker(1, at_most_s=30)
        await driver.reset_connections(1, SIDES)
        await asyncio.sleep(0.5)
        assert not before & await driver.connections(1, (Side.PEERS,))
        await driver.resume_broker(1)
        await asyncio.sleep(5)
        assert not before & await driver.connections(1, SIDES)

    with_driver(story)


@pytest.mark.parametrize(("carried_out", "there"), [(True, True), (False, False)])
def test_a_reply_is_lost_after_its_write_or_in_its_place(carried_out: bool, there: bool) -> None:
    async def story(driver: SimulationDriver) -> None:
        session = driver._cluster[1].session
        assert session is not None
        await driver.lose_reply(1, carried_out=carried_out, at_most_s=30)
        assert await driver.last_lost_reply(1) is None
        creating = asyncio.ensure_future(session.create("/it", b""))
        await until(lambda: driver.last_lost_reply(1), bool, what="a write", timeout_s=1, every_s=0.0001)
        assert ("/it" in driver._cluster.ensemble.nodes) is there
        assert "create /it" in str(await driver.last_lost_reply(1))
        await asyncio.gather(creating, return_exceptions=True)  # sent again: its own first try may be in the way
        assert "/it" in driver._cluster.ensemble.nodes

    with_driver(story)


def test_writes_before_the_lost_reply_are_answered() -> None:
    async def story(driver: SimulationDriver) -> None:
        session = driver._cluster[1].session
        assert session is not None
        await driver.lose_reply(1, carried_out=True, answered=1, at_most_s=30)
        await session.create("/a", b"")
        assert await driver.last_lost_reply(1) is None
        await asyncio.gather(session.create("/b", b""), return_exceptions=True)
        assert "create /b" in str(await driver.last_lost_reply(1))

    with_driver(story)


def test_no_reply_is_lost_once_it_is_spared_or_too_late() -> None:
    async def story(driver: SimulationDriver) -> None:
        session = driver._cluster[1].session
        assert session is not None
        await driver.lose_reply(1, carried_out=True, at_most_s=30)
        await driver.cancel_reply_loss(1)
        await session.create("/a", b"")
        await driver.lose_reply(1, carried_out=True, at_most_s=3)
        await asyncio.sleep(3.1)
        await session.create("/b", b"")
        assert await driver.last_lost_reply(1) is None

    with_driver(story)


def test_brokers_go_on_at_the_other_servers_while_one_stands_still() -> None:
    async def story(driver: SimulationDriver) -> None:
        for server in (1, 2, 3):
            await driver.pause_zookeeper(server, at_most_s=8)
            assert [it.state for it in (await driver.status()).zookeeper].count(ProcessState.PAUSED) == 1
            await asyncio.sleep(7)
            for broker in driver._cluster.brokers.values():
                assert broker.session is not None
                assert broker.session.connection
            await asyncio.sleep(1.5)
            assert {it.state for it in (await driver.status()).zookeeper} == {"running"}
        assert driver._cluster.ensemble.names("/brokers/ids") == ["0", "1"]

    with_driver(story, zookeeper_servers=3)


def test_without_a_quorum_nobody_is_served_and_no_session_ends() -> None:
    async def story(driver: SimulationDriver) -> None:
        ensemble = driver._cluster.ensemble
        before = ensemble.sessions
        for server in (1, 2):
            await driver.kill_zookeeper(server)
        assert await driver.zookeeper_modes() == {1: "", 2: "", 3: ""}
        assert [it.state for it in (await driver.status()).zookeeper] == ["stopped", "stopped", "running"]
        await asyncio.sleep(60)
        assert not any(broker.session and broker.session.connection for broker in driver._cluster.brokers.values())
        await driver.start_zookeeper(1)
        await asyncio.sleep(2)
        assert await driver.zookeeper_modes() == {1: "follower", 2: "", 3: "leader"}
        assert all(broker.session and broker.session.connection for broker in driver._cluster.brokers.values())
        assert ensemble.sessions == before

    with_driver(story, zookeeper_servers=3)


def test_a_znode_is_read_and_overwritten_whoever_owns_it_and_only_instead_of_what_is_meant() -> None:
    async def story(driver: SimulationDriver) -> None:
        view = SimulatedView(driver._cluster)
        before = await view.read("/controller")
        assert before is not None
        assert not await view.write("/controller", b"lost", instead_of=b"something else")
        assert await view.write("/controller", b"nonsense", instead_of=before)
        assert (await view.controller()).broker_id == -1, "invalid content names no broker"
        assert await view.write("/controller", before)
        assert await view.read("/controller") == before
        assert await view.read("/nowhere") is None
        assert not await view.write("/nowhere", b"")

    with_driver(story)


def test_a_broker_answers_who_connects_and_a_dead_one_does_not() -> None:
    async def story(driver: SimulationDriver) -> None:
        connection = await driver.connect(1, timeout_s=1)
        answer = await connection.request(ApiVersionsRequest(), 0, timeout_s=1)
        assert answer.error_code == 0
        await driver.kill_broker(1)
        await asyncio.sleep(1)
        assert connection.closed
        with pytest.raises(ClusterError, match="connection refused"):
            await driver.connect(1, timeout_s=1)

    with_driver(story)


def test_without_a_quorum_nothing_is_read_or_done_from_outside_and_an_election_is_waited_for() -> None:
    async def story(driver: SimulationDriver) -> None:
        view = SimulatedView(driver._cluster)
        session = (await view.registrations())[1].session
        await driver.kill_zookeeper(1)
        assert set(await view.registrations()) == {0, 1}, "the others have elected meanwhile"
        await driver.kill_zookeeper(2)
        for act in (view.expire(session), view.controller(), view.partitions(), view.delete("/controller")):
            with pytest.raises(ClusterError, match="ZooKeeper taking requests: not within 5 s"):
                await act
        await driver.start_zookeeper(2)
        await view.expire(session)
        assert int(session, 16) not in driver._cluster.ensemble.sessions

    with_driver(story, zookeeper_servers=3)


@pytest.mark.parametrize("server", [1, 2, 3])
def test_a_zookeeper_server_that_is_cut_off_serves_nobody_and_the_others_go_on(server: int) -> None:
    async def story(driver: SimulationDriver) -> None:
        ensemble, other = driver._cluster.ensemble, server % 3 + 1
        before = ensemble.sessions
        await driver.isolate_zookeeper([server], at_most_s=30)
        assert await driver.probe_servers(server, other, timeout_s=1) is None
        assert await driver.probe_servers(other, server, timeout_s=1) is None
        await asyncio.sleep(3)
        modes = await driver.zookeeper_modes()
        assert (modes[server], sorted(modes.values())) == ("", ["", "follower", "leader"])
        sessions = [broker.session for broker in driver._cluster.brokers.values()]
        assert all(session and session.connection for session in sessions)
        assert sessions[0] is not None
        await sessions[0].create("/meanwhile", b"")
        await driver.rejoin_zookeeper([server])
        assert "" not in (await driver.zookeeper_modes()).values()
        assert "/meanwhile" in ensemble.servers[server - 1].tree.nodes
        assert ensemble.sessions == before

    with_driver(story, zookeeper_servers=3)


def test_isolations_of_zookeeper_servers_end_by_themselves_and_one_by_one() -> None:
    async def story(driver: SimulationDriver) -> None:
        for server in (1, 2):
            await driver.isolate_zookeeper([server], at_most_s=10 * server)
        assert await driver.zookeeper_modes() == {1: "", 2: "", 3: ""}
        await asyncio.sleep(10.5)
        assert await driver.zookeeper_modes() == {1: "follower", 2: "", 3: "leader"}
        await asyncio.sleep(10)
        assert await driver.zookeeper_modes() == {1: "follower", 2: "follower", 3: "leader"}

    with_driver(story, zookeeper_servers=3)


def test_no_zookeeper_server_stands_still_while_one_is_cut_off() -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.pause_zookeeper(1, at_most_s=8)
        with pytest.raises(ClusterError, match="in virtual time ZooKeeper servers cannot be paused"):
            await driver.isolate_zookeeper([2], at_most_s=8)
        await driver.resume_zookeeper(1)
        await driver.isolate_zookeeper([2], at_most_s=8)
        with pytest.raises(ClusterError, match="in virtual time ZooKeeper servers cannot be paused"):
            await driver.pause_zookeeper(1, at_most_s=8)

    with_driver(story, zookeeper_servers=3)


def test_only_those_who_were_connected_to_a_follower_notice_its_end() -> None:
    async def story(driver: SimulationDriver) -> None:
        brokers = driver._cluster.brokers.values()
        before = [broker.session and broker.session.connection for broker in brokers]
        for server in (2, 3):
            await driver.kill_zookeeper(server)
            assert (await driver.zookeeper_modes())[1] == "leader"
            await asyncio.sleep(2)
            await driver.start_zookeeper(server)
        after = [broker.session and broker.session.connection for broker in brokers]
        assert all(after)
        assert len(set(before) & set(after)) < len(before), "a client continued elsewhere"

    with_driver(story, zookeeper_servers=3)


def test_a_server_that_returns_has_what_was_written_meanwhile() -> None:
    async def story(driver: SimulationDriver) -> None:
        session = driver._cluster[1].session
        assert session is not None
        await driver.kill_zookeeper(1)
        await session.create("/meanwhile", b"")
        await driver.start_zookeeper(1)
        await asyncio.sleep(1)
        trees = [server.tree.nodes.keys() for server in driver._cluster.ensemble.servers]
        assert all("/meanwhile" in nodes for nodes in trees)

    with_driver(story, zookeeper_servers=3)


def test_a_power_loss_takes_what_was_not_synced() -> None:
    async def story(driver: SimulationDriver) -> None:
        file = driver._cluster[1].disk.open_append("note")
        file.append(b"unsynced")
        before = await driver.bytes_on_disk(1)
        await driver.cut_power(1, torn=False)
        assert await driver.bytes_on_disk(1) <= before - len(b"unsynced")
        assert (await driver.status()).broker(1).state == "stopped"

    with_driver(story)


def test_a_disk_is_damaged_while_its_broker_is_down_and_a_power_loss_brings_nothing_back() -> None:
    async def story(driver: SimulationDriver) -> None:
        with pytest.raises(ClusterError, match="broker 1 runs"):
            await driver.damage_disk(1, Damage(what=What.DISK))
        await driver.kill_broker(1)
        assert await driver.files(1)
        await driver.damage_disk(1, Damage(what=What.DISK))
        await driver.cut_power(1, torn=True)
        assert await driver.files(1) == {}

    with_driver(story)


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        pytest.param(DiskError.IO, {"append", "truncate", "sync", "read"}, id="an I/O error"),
        pytest.param(DiskError.READ_ONLY, {"append", "truncate"}, id="a read-only disk"),
    ],
)
def test_a_disk_fails_until_it_is_mended_or_the_time_is_over(error: DiskError, refuses: set[str]) -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.kill_broker(1)
        file = driver._cluster[1].disk.open_append("note")
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: file.append(b"xy"),
            "truncate": lambda: file.truncate(1),
            "sync": file.sync,
            "read": lambda: file.read(0, 1),
        }

        def refused() -> dict[str, int | None]:
            errors: dict[str, int | None] = {}
            for name, call in calls.items():
                try:
                    call()
                except OSError as problem:
                    errors[name] = problem.errno
            return errors

        await driver.fail_disk(1, error, at_most_s=10)
        assert refused() == dict.fromkeys(refuses, error_number(error))
        await driver.mend_disk(1)
        assert refused() == {}
        await driver.fail_disk(1, error, at_most_s=10)
        await asyncio.sleep(10)
        assert refused() == {}

    with_driver(story)


def test_a_broker_is_started_once_its_old_registration_is_gone() -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.kill_broker(1)
        await driver.start_broker(1)
        assert (await driver.status()).broker(1).starts == 2

    with_driver(story)


def test_of_an_ensemble_of_three_one_server_may_stand_still_and_no_second_one_is_taken_away() -> None:
    async def story(driver: SimulationDriver) -> None:
        await driver.pause_zookeeper(1, at_most_s=8)
        for take in (driver.pause_zookeeper(2, at_most_s=8), driver.kill_zookeeper(3)):
            with pytest.raises(ClusterError, match="in virtual time"):
                await take
        await driver.resume_zookeeper(1)
        await driver.kill_zookeeper(3)

    with_driver(story, zookeeper_servers=3)
