"""How do consumer groups fare here and with real Kafka, in one run?

    python -m benchmarks.groups [--rounds 3] [--members 10 100] [--groups 1000] [--commits 20000]

Three brokers of each. A rebalance is timed from the moment at which all members of a group join again, and one more
with them, to the last one's assignment; the members are bare connections, so that it is the coordinator that is timed.
Then consumers of librdkafka read four partitions, into which a record is written every 10 ms: for how long does one of
them get none when the coordinator is killed, which leads no partition, and when a member is? Sessions of brokers and
members end after 6 s. At last groups commit in turn, a connection an answer.
"""

import argparse
import asyncio
import itertools
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from benchmarks.measuring import comparison
from benchmarks.peers import SESSION_TIMEOUT_MS, Peer, create_topic, leader_of, peers, running
from harness.broker.coordinator.placement import partition_of
from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import PeerError
from harness.values import OFFSETS_TOPIC

SHARDS = 4
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(SHARDS),
    "offsets.topic.replication.factor": "3",
}
TIMEOUT_S = 120.0
CONNECTIONS = 8
PARTITIONS = 4
TOPIC, COMMITTED = "orders", "committed"
METADATA = bytes(200)
"""What a member says about itself, and what it is assigned: of a usual length."""


async def coordinator(peer: Peer, group: str) -> tuple[str, int]:
    """Return host and port of a group's coordinator, once it answers, whichever broker knows it."""
    async with asyncio.timeout(TIMEOUT_S):
        for server in itertools.cycle(peer.bootstrap_servers.split(",")):
            host, _, port = server.rpartition(":")
            with suppress(PeerError):  # one that was killed lately is not back yet
                response = await _ask(host, int(port), m.FindCoordinatorRequest(key=group), 2)
                if not response.error_code and await _coordinates(response, group):
                    return response.host, response.port
            await asyncio.sleep(0.1)
    raise AssertionError("there is no end to a cycle")


async def _ask(host: str, port: int, request: Any, version: int) -> Any:
    connection = await TcpTransport().connect(host, port, client_id="groups", timeout_s=TIMEOUT_S)
    try:
        return await connection.request(request, version, timeout_s=TIMEOUT_S)
    finally:
        connection.close()


async def _coordinates(response: Any, group: str) -> bool:
    answer = await _ask(response.host, response.port, m.HeartbeatRequest(group_id=group), 0)
    return bool(answer.error_code == 25)  # it knows that nobody is a member


# --- rebalances ---


@dataclass(slots=True)
class BareMember:
    """A member that does what it is told to."""

    group: str
    connection: Any
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    others: list[str] = field(default_factory=list)

    async def join(self) -> None:
        """Come to the next generation."""
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=METADATA)
        request = m.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[protocol],
        )
        joined = await self.connection.request(request, 3, timeout_s=TIMEOUT_S)
        assert joined.error_code == 0, joined
        self.member_id, self.generation = joined.member_id, joined.generation_id
        self.leads = joined.leader == joined.member_id
        self.others = [each.member_id for each in joined.members]

    async def sync(self) -> None:
        """Have an assignment; who leads brings everybody's."""
        of = m.SyncGroupRequest.SyncGroupRequestAssignment
        request = m.SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
            assignments=[of(member_id=each, assignment=METADATA) for each in self.others] if self.leads else [],
        )
        synced = await self.connection.request(request, 2, timeout_s=TIMEOUT_S)
        assert synced.error_code == 0, synced


async def rebalance_s(peer: Peer, members: int, rounds: int) -> float:
    """Return the seconds that a group needs to take one more member in, the median of some rounds."""
    group = f"rebalance-{members}"
    host, port = await coordinator(peer, group)

    async def connected() -> BareMember:
        connection = await TcpTransport().connect(host, port, client_id="groups", timeout_s=TIMEOUT_S)
        return BareMember(group=group, connection=connection)

    present = [await connected()]
    await _round_of(present)
    newcomers = [await connected() for _ in range(members - 2)]
    await _grown(present, newcomers)
    present += newcomers
    took_s = []
    for _ in range(rounds):
        newcomer = await connected()
        took_s.append(await _grown(present, [newcomer]))
        leaving = m.LeaveGroupRequest.MemberIdentity(member_id=newcomer.member_id, group_instance_id=None)
        request = m.LeaveGroupRequest(group_id=group, members=[leaving])
        await newcomer.connection.request(request, 3, timeout_s=TIMEOUT_S)
        newcomer.connection.close()
        await _round_of(present)
    for each in present:
        each.connection.close()
    return statistics.median(took_s)


async def _round_of(members: Sequence[BareMember]) -> None:
    await asyncio.gather(*(each.join() for each in members))
    await asyncio.gather(*(each.sync() for each in members))


async def _grown(present: Sequence[BareMember], newcomers: Sequence[BareMember]) -> float:
    """Take newcomers in, who wait before anybody else joins again; return the seconds from then on."""
    waiting = [asyncio.create_task(each.join()) for each in newcomers]
    described = m.DescribeGroupsRequest(groups=[present[0].group], include_authorized_operations=False)
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            answer = await present[0].connection.request(described, 3, timeout_s=TIMEOUT_S)
            if len(answer.groups[0].members) == len(present) + len(newcomers):
                break
            await asyncio.sleep(0.02)
    began_s = time.monotonic()
    await asyncio.gather(*waiting, *(each.join() for each in present))
    await asyncio.gather(*(each.sync() for each in (*present, *newcomers)))
    return time.monotonic() - began_s


# --- what consumers miss ---


def configuration(servers: str, group: str) -> dict[str, Any]:
    """Return an ordinary consumer's."""
    return {
        "bootstrap.servers": servers,
        "group.id": group,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": 500,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "coordinator.query.interval.ms": 500,
        "log_level": 0,
    }


def consume(servers: str, group: str, topic: str) -> None:
    """Read until the process is killed."""
    consumer = Consumer(configuration(servers, group))
    consumer.subscribe([topic])
    while True:
        consumer.poll(0.1)


class Reader:
    """A member in a thread that remembers when it got records of each partition.

    That thread alone calls the consumer, which lets one in at a time (confluent-kafka 2.16): another one waits until it
    happens to find the gate open between two polls, for minutes, whatever the brokers do.
    """

    def __init__(self, servers: str, group: str, topic: str) -> None:
        self.read_s: dict[int, list[float]] = defaultdict(list)
        self.assigned: set[int] = set()
        self.topic = topic
        self.consumer = Consumer({**configuration(servers, group), "on_commit": self._decided})
        self.consumer.subscribe([topic])
        self._to_commit, self._committed = threading.Event(), threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            message = self.consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read_s[message.partition() or 0].append(time.monotonic())
            self.assigned = {each.partition for each in self.consumer.assignment()}
            if self._to_commit.is_set():
                self._to_commit.clear()
                self.consumer.commit(offsets=[TopicPartition(self.topic, 0, 1)])

    def _decided(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        refused = error is not None or any(each.error is not None for each in partitions)
        (self._to_commit if refused else self._committed).set()

    def until_assigned(self, partitions: int) -> None:
        """Wait until it has so many partitions and reads them."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(self.assigned) != partitions or not all(self._reads(each) for each in self.assigned):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{self.assigned} of {partitions} partitions after {TIMEOUT_S:g} s")
            time.sleep(0.05)

    def _reads(self, partition: int) -> bool:
        return bool(self.read_s[partition]) and time.monotonic() - self.read_s[partition][-1] < 0.5

    def gap_s(self, since_s: float) -> float:
        """Return the longest time in which a partition gave nothing, since then."""
        return max(self._gap_of(each, since_s) for each in range(PARTITIONS))

    def _gap_of(self, partition: int, since_s: float) -> float:
        instants = [since_s, *(each for each in self.read_s[partition] if each > since_s), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(instants))

    def commit_s(self) -> float:
        """Return the seconds until a commit is taken; one that is refused is made again."""
        began_s = time.monotonic()
        self._to_commit.set()
        if not self._committed.wait(TIMEOUT_S):
            raise TimeoutError(f"no commit after {TIMEOUT_S:g} s")
        return time.monotonic() - began_s

    def close(self) -> None:
        """Leave."""
        self._stop.set()
        self._thread.join()
        self.consumer.close()


@contextmanager
def written(servers: str, topic: str) -> Iterator[None]:
    """Have a record come into each partition, again and again."""
    stop = threading.Event()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 0})

    def write() -> None:
        while not stop.wait(0.01):
            for partition in range(PARTITIONS):
                producer.produce(topic, b"x", partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.flush(30)


def after_coordinator_kill_s(peer: Peer, number: int) -> tuple[float, float]:
    """Return for how long a partition gave nothing when a coordinator died, and until a commit was taken."""
    group, topic = f"coordinated-{number}", f"{TOPIC}-{number}"
    asyncio.run(coordinator(peer, group))
    killed = leader_of(peer, OFFSETS_TOPIC, partition_of(group, SHARDS))
    left = [broker_id for broker_id in range(3) if broker_id != killed]
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
    replicas = [[left[each % 2], left[1 - each % 2]] for each in range(PARTITIONS)]
    admin.create_topics([NewTopic(topic, PARTITIONS, replica_assignment=replicas)])[topic].result(60)
    with written(peer.bootstrap_servers, topic):
        reader = Reader(peer.bootstrap_servers, group, topic)
        reader.until_assigned(PARTITIONS)
        began_s = time.monotonic()
        peer.kill(killed)
        commit_s = reader.commit_s()
        time.sleep(SESSION_TIMEOUT_MS / 1000)
        gap_s = reader.gap_s(began_s)
        reader.close()
    peer.start(killed)
    return gap_s, commit_s


def after_member_kill_s(peer: Peer, number: int) -> float:
    """Return for how long a partition gave nothing when the member died that had it."""
    group, topic = f"bereft-{number}", f"{TOPIC}-of-{number}"
    create_topic(peer, topic, PARTITIONS)
    with written(peer.bootstrap_servers, topic):
        reader = Reader(peer.bootstrap_servers, group, topic)
        reader.until_assigned(PARTITIONS)
        arguments = (peer.bootstrap_servers, group, topic)
        other = multiprocessing.get_context("spawn").Process(target=consume, args=arguments, daemon=True)
        other.start()
        reader.until_assigned(PARTITIONS // 2)
        began_s = time.monotonic()
        other.kill()
        other.join()
        reader.until_assigned(PARTITIONS)
        gap_s = reader.gap_s(began_s)
        reader.close()
    return gap_s


# --- commits ---


async def commits_per_s(peer: Peer, groups: int, commits: int) -> float:
    """Return how many commits of as many groups are taken a second."""
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    addresses = {shard: await coordinator(peer, _group_of(shard)) for shard in range(SHARDS)}

    async def through(number: int) -> None:
        connections: dict[tuple[str, int], Any] = {}
        for offset in range(number, commits, CONNECTIONS):
            group = f"group-{offset % groups}"
            address = addresses[partition_of(group, SHARDS)]
            if address not in connections:
                connections[address] = await TcpTransport().connect(*address, client_id="groups", timeout_s=TIMEOUT_S)
            partition = of_topic.OffsetCommitRequestPartition(committed_offset=offset)
            request = m.OffsetCommitRequest(group_id=group, topics=[of_topic(name=COMMITTED, partitions=[partition])])
            answer = await connections[address].request(request, 7, timeout_s=TIMEOUT_S)
            assert answer.topics[0].partitions[0].error_code == 0, answer
        for connection in connections.values():
            connection.close()

    began_s = time.monotonic()
    await asyncio.gather(*(through(number) for number in range(CONNECTIONS)))
    return commits / (time.monotonic() - began_s)


def _group_of(shard: int) -> str:
    return next(name for name in map("shard-{}".format, range(1_000)) if partition_of(name, SHARDS) == shard)


def measured(peer: Peer, options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Yield every figure of one cluster, with its name, as it comes."""
    create_topic(peer, COMMITTED, 1)
    for members in options.members:
        yield f"{members} members rebalance, s", asyncio.run(rebalance_s(peer, members, options.rounds))
    yield "commits/s", asyncio.run(commits_per_s(peer, options.groups, options.commits))
    killed = [after_coordinator_kill_s(peer, number) for number in range(options.rounds)]
    yield "coordinator killed: longest without a record, s", statistics.median(gap_s for gap_s, _ in killed)
    yield "coordinator killed: until a commit is taken, s", statistics.median(commit_s for _, commit_s in killed)
    bereft = [after_member_kill_s(peer, number) for number in range(options.rounds)]
    yield "member killed: longest without a record, s", statistics.median(bereft)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--members", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=20_000)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for kind in peers():
            with running(kind, Path(folder), properties=PROPERTIES) as peer:
                figures[peer.name] = {}
                for name, figure in measured(peer, options):
                    figures[peer.name][name] = figure
                    print(f"{peer.name}: {name}: {figure:.3g}", flush=True)
    Console().print(comparison(f"{options.groups} groups, median of {options.rounds}", figures))
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
