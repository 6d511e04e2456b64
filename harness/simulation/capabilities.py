"""What the simulated cluster lets faults do beyond ending and freezing brokers: network, disks, ZooKeeper."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import partial

from harness.cluster.capabilities import Direction, Rhythm, Side, Slowness
from harness.cluster.clocks import Clock
from harness.cluster.disks.damage import Damage, do_damage, states
from harness.cluster.disks.disk_errors import DiskError, error_number
from harness.cluster.links.interception import Interceptor
from harness.cluster.links.interference import PARTITION, Interference, delay_of, isolation_of, isolation_of_servers
from harness.cluster.links.links import Link, Pipe, ways
from harness.cluster.links.rules import Caught, Rule
from harness.errors import ClusterError
from harness.scenario.seeds import derived_seed
from harness.simulation.cluster import SimulatedCluster, host_of
from harness.simulation.evidence import now_ns
from harness.system.process_state import ProcessState


class NetworkPowers:
    """Implements `CanProbe`, `CanIsolate`, `CanIntercept`, `CanPartition`, `CanDelay` and `CanReset`."""

    _cluster: SimulatedCluster
    _clients: Sequence[str]
    """Hosts of the client processes."""
    _interference: Interference

    async def probe(
        self, broker_id: int, side: Side, way: Direction, *, timeout_s: float, size_bytes: int = 1
    ) -> dict[str, float | None]:
        """Send something over every link of one side, one way, and return the seconds it took, None for not in time."""
        taken = await self._probe(self._ways(broker_id, side, way), timeout_s, size_bytes)
        return dict(zip(self._hosts(broker_id, side), taken, strict=True))

    async def probe_peer(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send something from one broker to another; return the seconds that it took, None for not in time."""
        (taken_s,) = await self._probe([(host_of(sender), host_of(receiver))], timeout_s)
        return taken_s

    async def strangers(self) -> set[str]:
        """Return no one-sided connection: every connection here is between two hosts."""
        return set()

    async def _probe(self, links: Sequence[Link], timeout_s: float, size_bytes: int = 1) -> list[float | None]:
        """Send something over some links, all at once."""
        taken: dict[Link, float | None] = dict.fromkeys(links)
        loop = asyncio.get_running_loop()
        start_s, everywhere = loop.time(), loop.create_future()
        if not taken:
            return []

        def arrived(link: Link, _: bytes) -> None:
            taken[link] = loop.time() - start_s
            if None not in taken.values() and not everywhere.done():
                everywhere.set_result(None)

        for link in links:
            Pipe(self._cluster.network.links, *link, partial(arrived, link), copy_context()).put(bytes(size_bytes))
        await asyncio.wait({everywhere}, timeout=timeout_s)
        return list(taken.values())

    async def separate(self, pairs: Sequence[tuple[int, int]], *, at_most_s: float) -> None:
        """Cut the links between the brokers of each pair, both ways."""
        ends = [(host_of(one), host_of(other)) for one, other in pairs]
        links = [link for one, other in ends for link in ((one, other), (other, one))]
        self._interference.cut(PARTITION, links, at_most_s=at_most_s)

    async def reunite(self) -> None:
        """Heal the links that were cut between brokers, and that no isolation holds."""
        self._interference.release(PARTITION)

    async def isolate(
        self,
        broker_id: int,
        sides: tuple[Side, ...],
        direction: Direction,
        *,
        at_most_s: float,
        rhythm: Rhythm | None = None,
    ) -> None:
        """Cut a broker's links; what is sent over them waits, as TCP sends it again."""
        links = self._links(broker_id, sides, direction)
        self._interference.cut(isolation_of(broker_id), links, at_most_s=at_most_s, rhythm=rhythm)

    async def rejoin(self, broker_id: int) -> None:
        """Heal all links that were cut for this broker, and that no other one's isolation holds."""
        self._interference.release(isolation_of(broker_id))

    async def delay(
        self, broker_id: int, sides: tuple[Side, ...], direction: Direction, slowness: Slowness, *, at_most_s: float
    ) -> None:
        """Slow a broker's links down."""
        links = self._links(broker_id, sides, direction)
        self._interference.slow(delay_of(broker_id), links, slowness, at_most_s=at_most_s)

    async def remove_delay(self, broker_id: int) -> None:
        """Let everything on this broker's links be as fast as usual."""
        self._interference.release(delay_of(broker_id))

    async def connections(self, broker_id: int, sides: tuple[Side, ...]) -> set[str]:
        """Return the names of the connections that a broker has open; no two ever have the same name."""
        hosts = [host for side in sides for host in self._hosts(broker_id, side)]
        open_ends = self._cluster.network.connections(host_of(broker_id), hosts)
        names = {str(end.number) for end in open_ends}
        session = self._cluster[broker_id].session
        return names | {session.connection} if Side.ZOOKEEPER in sides and session and session.connection else names

    async def reset_connections(self, broker_id: int, sides: tuple[Side, ...]) -> None:
        """Break every connection; both ends learn it."""
        hosts = [host for side in sides for host in self._hosts(broker_id, side)]
        for end in self._cluster.network.connections(host_of(broker_id), hosts):
            end.reset()
        session = self._cluster[broker_id].session
        if Side.ZOOKEEPER in sides and session is not None:
            self._cluster.ensemble.drop_connection(session.session_id)

    async def intercept(
        self,
        holder: str,
        broker_id: int,
        sides: tuple[Side, ...],
        direction: Direction,
        rule: Rule,
        *,
        at_most_s: float,
    ) -> None:
        """Act on requests on a broker's links."""
        links = frozenset(self._links(broker_id, sides, direction))
        self._messages.intercept(holder, replace(rule, links=links), at_most_s=at_most_s)

    async def caught(self, holder: str) -> list[Caught]:
        """Return what a holder's rule has acted on."""
        return self._messages.caught(holder)

    async def let_go(self, holder: str) -> None:
        """End a rule, and let go what it holds."""
        self._messages.release(holder)

    @property
    def _messages(self) -> Interceptor:
        interceptor = self._cluster.network.interceptor
        if interceptor is None:
            raise ClusterError("messages cannot be intercepted: this cluster was started without that")
        return interceptor

    def _hosts(self, broker_id: int, side: Side) -> list[str]:
        match side:
            case Side.PEERS:
                return [broker.host for other, broker in self._cluster.brokers.items() if other != broker_id]
            case Side.CLIENTS:
                return list(self._clients)
            case Side.ZOOKEEPER:
                return [server.host for server in self._cluster.ensemble.servers]
            case Side.CONTROLLERS:
                return []

    def _ways(self, broker_id: int, side: Side, way: Direction) -> list[Link]:
        return ways(host_of(broker_id), self._hosts(broker_id, side), way)

    def _links(self, broker_id: int, sides: tuple[Side, ...], direction: Direction) -> list[Link]:
        return [link for side in sides for way in direction.ways for link in self._ways(broker_id, side, way)]


class _Expiring:
    """Ends what was begun after a while, unless it began anew."""

    _timers: dict[str, asyncio.TimerHandle]

    def _end_after(self, what: str, delay_s: float, end: Callable[[], None]) -> None:
        if what in self._timers:
            self._timers[what].cancel()
        self._timers[what] = asyncio.get_running_loop().call_later(delay_s, end)


class DiskCapabilities(_Expiring):
    """Implements `CanCutPower`, `CanDamageDisk`, `CanFailDisk` and `CanFillDisk`."""

    _cluster: SimulatedCluster

    async def cut_power(self, broker_id: int, *, torn: bool) -> None:
        """End it; what was not synced is gone, or with `torn` a part of it is there, its end perhaps garbled."""
        broker = self._cluster[broker_id]
        seed = derived_seed(self._cluster.seed, "torn", broker_id, broker.starts)
        broker.lose_power(random.Random(seed) if torn else None)  # noqa: S311  repeatable, not secret

    async def bytes_on_disk(self, broker_id: int) -> int:
        """Return how much is in a broker's files, whether it runs or not."""
        return sum(disk.size for disk in self._cluster[broker_id].disks.values())

    async def damage_disk(self, broker_id: int, damage: Damage) -> None:
        """Change what is on the disk of a broker that does not run; no later power loss undoes that."""
        broker = self._cluster[broker_id]
        if broker.state != ProcessState.STOPPED:
            raise ClusterError(f"broker {broker_id} runs")
        do_damage([*broker.disks.values()], damage)
        for disk in broker.disks.values():
            disk.commit()

    async def files(self, broker_id: int) -> dict[str, str]:
        """Return what each file on a broker's disk is, by its path, in words."""
        return states(self._cluster[broker_id].disk)

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        """Leave no space on a broker's disks."""
        self._leave_space(broker_id, 0)
        self._end_after(f"full disk of broker {broker_id}", at_most_s, lambda: self._leave_space(broker_id, None))

    async def free_disk(self, broker_id: int) -> None:
        """Give the space back."""
        self._leave_space(broker_id, None)

    def _leave_space(self, broker_id: int, size: int | None) -> None:
        for disk in self._cluster[broker_id].disks.values():
            disk.space_left = size

    async def disk_is_full(self, broker_id: int) -> bool:
        """Return whether a broker's disks are full."""
        return any(disk.space_left is not None for disk in self._cluster[broker_id].disks.values())

    async def fail_disk(self, broker_id: int, error: DiskError, *, at_most_s: float) -> None:
        """Let one of a broker's disks fail: the one with the most on it."""
        disk = max(self._cluster[broker_id].disks.values(), key=lambda each: each.size)
        disk.failing = error_number(error)
        self._end_after(f"failing disk of broker {broker_id}", at_most_s, lambda: setattr(disk, "failing", None))

    async def mend_disk(self, broker_id: int) -> None:
        """Let it work again."""
        for disk in self._cluster[broker_id].disks.values():
            disk.failing = None


class ClockCapabilities(_Expiring):
    """Implements `CanSetClock`."""

    _cluster: SimulatedCluster

    async def set_clock(self, broker_id: int, *, step_s: float, rate: float, at_most_s: float) -> None:
        """Shift a broker's wall clock; virtual time stays the same for all."""
        log = self._cluster[broker_id].log
        log.clock = Clock(since_ns=now_ns(), step_s=step_s, rate=rate)
        self._end_after(f"clock of broker {broker_id}", at_most_s, lambda: setattr(log, "clock", None))

    async def reset_clock(self, broker_id: int) -> None:
        """Set the wall clock back to virtual time."""
        self._cluster[broker_id].log.clock = None


class ZookeeperCapabilities(NetworkPowers, _Expiring):
    """Implements `CanLoseReplies`, `CanIsolateZookeeper`, `CanKillZookeeper` and `CanPauseZookeeper`."""

    _cluster: SimulatedCluster
    _interference: Interference

    async def lose_reply(self, broker_id: int, *, carried_out: bool, answered: int = 0, at_most_s: float) -> None:
        """Lose the connection instead of answering a write; `answered` writes before it get their answers."""
        replies = self._cluster.ensemble.replies
        replies.arm(host_of(broker_id), carried_out=carried_out, answered=answered)
        self._end_after(f"replies to broker {broker_id}", at_most_s, lambda: replies.disarm(host_of(broker_id)))

    async def last_lost_reply(self, broker_id: int) -> str | None:
        """Return the write whose answer was lost last since `lose_reply`, in a few words; None while none was."""
        return self._cluster.ensemble.replies.lost.get(host_of(broker_id))

    async def cancel_reply_loss(self, broker_id: int) -> None:
        """Lose no answer, if none was lost yet."""
        self._cluster.ensemble.replies.disarm(host_of(broker_id))

    async def zookeeper_modes(self) -> dict[int, str]:
        """Return leader, follower or standalone by server; empty where it takes no requests, or stands still."""
        return {number: self._mode(number) for number in range(1, len(self._cluster.ensemble.servers) + 1)}

    def _mode(self, server_id: int) -> str:
        ensemble = self._cluster.ensemble
        server = ensemble.servers[server_id - 1]
        if ensemble.leader is None or not ensemble.takes_part(server) or self._interference.holds(frozen(server_id)):
            return ""
        if len(ensemble.servers) == 1:
            return "standalone"
        return "leader" if server is ensemble.leader else "follower"

    async def kill_zookeeper(self, server_id: int) -> None:
        """Kill a server."""
        if any(self._interference.holds(frozen(number)) for number in self._numbers):
            self._require_quorum_without(server_id)
        self._cluster.ensemble.stop(self._cluster.ensemble.servers[server_id - 1])

    async def start_zookeeper(self, server_id: int) -> None:
        """Start it again with its data."""
        self._cluster.ensemble.start(self._cluster.ensemble.servers[server_id - 1])

    async def isolate_zookeeper(self, server_ids: Sequence[int], *, at_most_s: float) -> None:
        """Cut servers off from the others; a side without a majority serves no client from then on."""
        self._require_nobody_frozen()
        every, holder = self._cluster.ensemble.servers, isolation_of_servers(server_ids)
        own = [every[server_id - 1] for server_id in server_ids]
        others = [server.host for server in every if server not in own]
        links = [link for one in own for way in Direction.BOTH.ways for link in ways(one.host, others, way)]
        self._interference.cut(holder, links, at_most_s=at_most_s)
        self._cluster.ensemble.separate(holder, own)
        self._end_after(holder, at_most_s, lambda: self._cluster.ensemble.reunite(holder))

    async def rejoin_zookeeper(self, server_ids: Sequence[int]) -> None:
        """Let them reach the others again."""
        holder = isolation_of_servers(server_ids)
        self._interference.release(holder)
        self._cluster.ensemble.reunite(holder)

    async def probe_servers(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send something from one server to another; return the seconds that it took, None for not in time."""
        hosts = [self._cluster.ensemble.servers[number - 1].host for number in (sender, receiver)]
        (taken_s,) = await self._probe([(hosts[0], hosts[1])], timeout_s)
        return taken_s

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        """Freeze a server: nothing gets in or out, and what its clients send waits."""
        if self._cluster.ensemble.apart:
            raise ClusterError(NOT_BOTH)
        if len(self._numbers) > 1:
            self._require_quorum_without(server_id)
        server = self._cluster.ensemble.servers[server_id - 1]
        brokers = [broker.host for broker in self._cluster.brokers.values()]
        links = [link for host in brokers for link in ((host, server.host), (server.host, host))]
        self._interference.cut(frozen(server_id), links, at_most_s=at_most_s)

    async def resume_zookeeper(self, server_id: int) -> None:
        """Thaw it; nothing happens when it runs."""
        self._interference.release(frozen(server_id))

    def _require_nobody_frozen(self) -> None:
        """Refuse what would not be as on real machines; raises ClusterError when a server stands still."""
        if any(self._interference.holds(frozen(number)) for number in self._numbers):
            raise ClusterError(NOT_BOTH)

    @property
    def _numbers(self) -> range:
        return range(1, len(self._cluster.ensemble.servers) + 1)

    def _require_quorum_without(self, server_id: int) -> None:
        """Refuse what would not be as on real machines: here a server that stands still has its vote.

        Raises:
            ClusterError: too few others would be left.
        """
        others = [
            number
            for number in self._numbers
            if number != server_id
            and self._cluster.ensemble.servers[number - 1].runs
            and not self._interference.holds(frozen(number))
        ]
        if len(others) <= len(self._numbers) // 2:
            raise ClusterError(
                "in virtual time paused ZooKeeper servers leave the quorum intact; to end it, use kill-zookeeper"
            )


NOT_BOTH = "in virtual time ZooKeeper servers cannot be paused while one is cut off from the others"


def frozen(server_id: int) -> str:
    """Return the name of what holds a frozen ZooKeeper server's links."""
    return f"frozen ZooKeeper server {server_id}"
