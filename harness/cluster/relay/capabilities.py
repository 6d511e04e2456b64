"""What a driver whose servers talk through a relay lets faults do to their links.

Each command goes to the relay, which ends by itself what it began. A probe is the driver's own: its two sockets are
outside the relay, so that what shows is whether bytes pass.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from harness.cluster.capabilities import Direction, Rhythm, Side, Slowness
from harness.cluster.layout import ClusterLayout, broker_process, zookeeper_process
from harness.cluster.links.interference import PARTITION, delay_of, isolation_of, isolation_of_servers
from harness.cluster.links.links import Link, ways
from harness.cluster.links.rules import Caught, Rule, caught_from, rule_data
from harness.cluster.relay import CLIENTS, FOLDER, PROBES_NAME, SOCKET_NAME, UNKNOWN
from harness.cluster.supervision import client
from harness.errors import ClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """The hosts whose connections lead through a relay."""

    folder: Path
    """The relay's own."""
    brokers: tuple[int, ...]
    """Those whose clients' connections do."""
    peers: tuple[int, ...] = ()
    """Brokers whose connections to each other do."""
    quorum: tuple[int, ...] = ()
    """Controllers that are not brokers."""
    zookeeper: tuple[int, ...] = ()

    def hosts(self, broker_id: int, side: Side) -> list[str]:
        """Return the hosts on one side of a broker's links."""
        match side:
            case Side.PEERS:
                return [broker_process(other) for other in self.peers if other != broker_id]
            case Side.CLIENTS:
                return [CLIENTS] if broker_id in self.brokers else []
            case Side.ZOOKEEPER:
                return [zookeeper_process(server_id) for server_id in self.zookeeper]
            case Side.CONTROLLERS:
                return [broker_process(other) for other in self.quorum if other != broker_id]


class LinkCapabilities:
    """Implements `CanProbe`, `CanIsolate`, `CanPartition`, `CanDelay` and `CanReset`."""

    def _through_relay(self) -> Relayed:
        """Return what leads through the relay; raises ClusterError if there is none."""
        raise NotImplementedError

    async def probe(
        self, broker_id: int, side: Side, way: Direction, *, timeout_s: float, size_bytes: int = 1
    ) -> dict[str, float | None]:
        """Send bytes over every link of one side, one way, and return the seconds it took, None for not in time."""
        relayed = self._relayed(broker_id)
        hosts = relayed.hosts(broker_id, side)
        links = ways(broker_process(broker_id), hosts, way)
        taken = await asyncio.gather(*(_probe(relayed.folder, link, timeout_s, size_bytes) for link in links))
        return dict(zip(hosts, taken, strict=True))

    async def strangers(self) -> set[str]:
        """Return the names of the connections to brokers and controllers that the kernel did not say the owner of."""
        relayed = self._relayed(None)
        hosts = map(broker_process, (*relayed.brokers, *relayed.quorum))
        answers = [await self._call(None, "connections", host=host, others=[UNKNOWN]) for host in hosts]
        return {name for answer in answers for name in answer["names"]}

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
        links, holder = self._links(broker_id, sides, direction), isolation_of(broker_id)
        turns = None if rhythm is None else asdict(rhythm)
        await self._call(broker_id, "cut", holder=holder, links=links, at_most_s=at_most_s, rhythm=turns)

    async def rejoin(self, broker_id: int) -> None:
        """Heal the links that were cut for this broker."""
        await self._call(broker_id, "release", holder=isolation_of(broker_id))

    async def separate(self, pairs: Sequence[tuple[int, int]], *, at_most_s: float) -> None:
        """Cut the links between the brokers of each pair, both ways."""
        ends = [(broker_process(one), broker_process(other)) for one, other in pairs]
        links = [link for one, other in ends for link in ((one, other), (other, one))]
        await self._call(None, "cut", holder=PARTITION, links=links, at_most_s=at_most_s)

    async def reunite(self) -> None:
        """Heal the links that were cut between brokers."""
        await self._call(None, "release", holder=PARTITION)

    async def probe_peer(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send a byte from one broker to another; return the seconds that it took, None for not in time."""
        folder = self._relayed(None).folder
        return await _probe(folder, (broker_process(sender), broker_process(receiver)), timeout_s)

    async def delay(
        self, broker_id: int, sides: tuple[Side, ...], direction: Direction, slowness: Slowness, *, at_most_s: float
    ) -> None:
        """Slow a broker's links down."""
        links, holder = self._links(broker_id, sides, direction), delay_of(broker_id)
        await self._call(broker_id, "slow", holder=holder, links=links, slowness=asdict(slowness), at_most_s=at_most_s)

    async def remove_delay(self, broker_id: int) -> None:
        """Let everything on this broker's links be as fast as usual."""
        await self._call(broker_id, "release", holder=delay_of(broker_id))

    async def connections(self, broker_id: int, sides: tuple[Side, ...]) -> set[str]:
        """Return the names of the connections that a broker has open; no two ever have the same name."""
        host, others = self._ends(broker_id, sides)
        return set((await self._call(broker_id, "connections", host=host, others=others))["names"])

    async def reset_connections(self, broker_id: int, sides: tuple[Side, ...]) -> None:
        """Break every connection; both ends are told."""
        host, others = self._ends(broker_id, sides)
        await self._call(broker_id, "reset", host=host, others=others)

    def _relayed(self, broker_id: int | None) -> Relayed:
        relayed = self._through_relay()
        every = (*relayed.brokers, *relayed.quorum)
        if broker_id is not None and broker_id not in every:
            raise ClusterError(f"no broker {broker_id}; there are: {', '.join(map(str, every))}")
        return relayed

    def _ends(self, broker_id: int, sides: tuple[Side, ...]) -> tuple[str, list[str]]:
        relayed = self._relayed(broker_id)
        return broker_process(broker_id), [host for side in sides for host in relayed.hosts(broker_id, side)]

    def _links(self, broker_id: int, sides: tuple[Side, ...], direction: Direction) -> list[Link]:
        own, hosts = self._ends(broker_id, sides)
        return [link for way in direction.ways for link in ways(own, hosts, way)]

    async def _call(self, broker_id: int | None, command: str, **arguments: Any) -> dict[str, Any]:
        folder = self._relayed(broker_id).folder
        answer: dict[str, Any] = await client.call(folder, command, socket_name=SOCKET_NAME, **arguments)
        return answer


class RelayCapabilities(LinkCapabilities):
    """Of a cluster whose whole traffic passes the relay: implements `CanIntercept` and `CanLoseReplies` too.

    Of `CanIsolateZookeeper` all but what servers say of themselves.
    """

    _root: Path
    """The run folder."""

    def _through_relay(self) -> Relayed:
        layout = ClusterLayout.load(self._root)
        if not layout.relay:
            raise ClusterError("links cannot be disturbed: this cluster was started without a relay")
        return Relayed(
            folder=layout.folder / FOLDER,
            brokers=tuple(layout.relay),
            peers=tuple(layout.brokers),
            quorum=tuple(layout.quorum),
            zookeeper=tuple(layout.zookeeper),
        )

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
        data = rule_data(replace(rule, links=frozenset(self._links(broker_id, sides, direction))))
        await self._call(broker_id, "intercept", holder=holder, rule=data, at_most_s=at_most_s)

    async def caught(self, holder: str) -> list[Caught]:
        """Return what a holder's rule has acted on."""
        return [caught_from(each) for each in (await self._call(None, "caught", holder=holder))["caught"]]

    async def let_go(self, holder: str) -> None:
        """End a rule, and let go what it holds."""
        await self._call(None, "let_go", holder=holder)

    async def isolate_zookeeper(self, server_ids: Sequence[int], *, at_most_s: float) -> None:
        """Cut the links between these ZooKeeper servers and the others, both ways."""
        every = self._relayed(None).zookeeper
        if unknown := sorted(set(server_ids) - set(every)):
            raise ClusterError(f"no ZooKeeper server {unknown[0]}; there are: {', '.join(map(str, every))}")
        own = [zookeeper_process(server_id) for server_id in server_ids]
        others = [zookeeper_process(server_id) for server_id in every if server_id not in server_ids]
        links = [link for one in own for way in Direction.BOTH.ways for link in ways(one, others, way)]
        await self._call(None, "cut", holder=isolation_of_servers(server_ids), links=links, at_most_s=at_most_s)

    async def rejoin_zookeeper(self, server_ids: Sequence[int]) -> None:
        """Heal the links that were cut for just these servers."""
        await self._call(None, "release", holder=isolation_of_servers(server_ids))

    async def probe_servers(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send a byte from one ZooKeeper server to another; return the seconds it took, None for not in time."""
        folder = self._relayed(None).folder
        return await _probe(folder, (zookeeper_process(sender), zookeeper_process(receiver)), timeout_s)

    async def lose_reply(self, broker_id: int, *, carried_out: bool, answered: int = 0, at_most_s: float) -> None:
        """Break the connection instead of replying to a write; `answered` writes before it get their replies."""
        host = broker_process(broker_id)
        await self._call(
            broker_id, "lose_reply", host=host, carried_out=carried_out, answered=answered, at_most_s=at_most_s
        )

    async def last_lost_reply(self, broker_id: int) -> str | None:
        """Return, in a few words, the last write whose reply was lost since `lose_reply`; None when there is none."""
        write: str | None = (await self._call(broker_id, "lost_reply", host=broker_process(broker_id)))["write"]
        return write

    async def cancel_reply_loss(self, broker_id: int) -> None:
        """Lose no reply, if none was lost yet."""
        await self._call(broker_id, "lose_no_reply", host=broker_process(broker_id))


async def _probe(folder: Path, link: Link, timeout_s: float, size_bytes: int = 1) -> float | None:
    """Send bytes over a link, and return the seconds until all came out; None when they did not in time."""
    loop, name = asyncio.get_running_loop(), uuid4().hex
    try:
        async with _end(folder, name=name) as (incoming, _), _end(folder, name=name, link=link) as (_, outgoing):
            start_s = loop.time()
            outgoing.write(bytes(size_bytes))
            try:
                async with asyncio.timeout(timeout_s):
                    await incoming.readexactly(size_bytes)
            except TimeoutError:
                return None
            return loop.time() - start_s
    except (OSError, asyncio.IncompleteReadError) as error:
        raise ClusterError(f"no probe from {link[0]} to {link[1]} could be sent: {error}") from error


@asynccontextmanager
async def _end(folder: Path, **greeting: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield one end of a probe, of which the relay knows."""
    async with (
        asyncio.timeout(client.CALL_TIMEOUT_S) as knowing,
        client.connection(folder, PROBES_NAME) as (reader, writer),
    ):
        writer.write(json.dumps(greeting).encode() + b"\n")
        await reader.readexactly(1)
        knowing.reschedule(None)
        yield reader, writer
