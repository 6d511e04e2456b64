"""Situations of consumer groups, request by request: what does a coordinator answer, and what is in its log?

A situation is played by a `Script`, against any cluster that a transport reaches. `groups-3.9.json` has what Kafka 3.9
answered (`python -m benchmarks.side_by_side.groups HOST:PORT`, with group.min.session.timeout.ms=1000 and
group.initial.rebalance.delay.ms=0); a test plays the same to this broker. Member ids are told as m1, m2, … in the order
in which they were given out.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.broker.coordinator.records import GroupRecord, OffsetRecord, decode_chunk, partition_of
from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import PeerError, Transport
from harness.values import OFFSETS_TOPIC

RECORDED = Path(__file__).with_name("groups-3.9.json")
TOPIC = "orders"
TIMEOUT_S = 30
REPLICATED_S = 0.5
CONSUMER = "consumer"
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
RANGE = (("range", SUBSCRIPTION),)


@dataclass(slots=True)
class Script:
    """One group, what it is asked, and what was answered."""

    transport: Transport
    host: str
    port: int
    """Of any broker."""
    group: str
    said: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _coordinator: tuple[str, int] = ("", 0)

    async def ask(self, message: Any, version: int) -> Any:
        """Return the coordinator's answer; each request has a connection of its own."""
        host, port = await self._find()
        return await self._ask(host, port, message, version)

    async def _ask(self, host: str, port: int, message: Any, version: int) -> Any:
        connection = await self.transport.connect(host, port, client_id="c", timeout_s=TIMEOUT_S)
        try:
            return await connection.request(message, version, timeout_s=TIMEOUT_S)
        finally:
            connection.close()

    async def _find(self) -> tuple[str, int]:
        async with asyncio.timeout(TIMEOUT_S):
            while not self._coordinator[1]:
                request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
                found = (await self._ask(self.host, self.port, request, 4)).coordinators[0]
                if found.error_code == 0:
                    self._coordinator = (found.host, found.port)
                    answer = await self._ask(found.host, found.port, m.HeartbeatRequest(group_id=self.group), 0)
                    if answer.error_code == 25:
                        break
                    self._coordinator = ("", 0)
                await asyncio.sleep(0.1)
        return self._coordinator

    def name(self, member_id: str | None) -> str:
        """Return a member's name in the transcript."""
        return self._names.setdefault(member_id, f"m{len(self._names) + 1}") if member_id else ""

    def id(self, name: str) -> str:
        """Return the id of a member by its name."""
        return next((member_id for member_id, known in self._names.items() if known == name), name)

    def say(self, line: str) -> None:
        """Write a line of the transcript."""
        self.said.append(line)

    # --- members ---

    async def join(
        self,
        member: str = "",
        *,
        instance: str | None = None,
        version: int = 5,
        protocol_type: str = CONSUMER,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        session_ms: int = 10_000,
        rebalance_ms: int = 10_000,
        quietly: bool = False,
    ) -> Any:
        """Join, and say how that ended."""
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
        request = m.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self.id(member),
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[protocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        joined = await self.ask(request, version)
        line = self.joined(joined, member or instance or "new")
        if not quietly:
            self.say(line)
        return joined

    def joined(self, joined: Any, who: str) -> str:
        """Return the answer to a join in words."""
        ids = [joined.member_id, *sorted(each.member_id for each in joined.members)]
        names = {member_id: self.name(member_id) for member_id in ids}
        members = sorted((names[each.member_id], each.group_instance_id, len(each.metadata)) for each in joined.members)
        return (
            f"join {who}: {joined.error_code} as {names[joined.member_id]!r} generation {joined.generation_id} "
            f"protocol {joined.protocol_name!r} leader {self.name(joined.leader)!r} members {members} "
            f"skip {joined.skip_assignment}"
        )

    async def member(self, *, instance: str | None = None, **options: Any) -> asyncio.Task[Any]:
        """Begin to join as a new member, with the id that it was given; the task ends with the generation."""
        member = ""
        if instance is None:
            member = self.name((await self.join(quietly=True, **options)).member_id)
        return asyncio.create_task(self.join(member, instance=instance, quietly=True, **options))

    async def sync(
        self,
        member: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        version: int = 3,
        protocol: str | None = "range",
        quietly: bool = False,
    ) -> Any:
        """Ask for an assignment, and say which it is."""
        assignment = m.SyncGroupRequest.SyncGroupRequestAssignment
        request = m.SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=self.id(member),
            group_instance_id=instance,
            protocol_type=CONSUMER if protocol else None,
            protocol_name=protocol,
            assignments=[
                assignment(member_id=self.id(name), assignment=content) for name, content in (assignments or {}).items()
            ],
        )
        synced = await self.ask(request, version)
        if not quietly:
            self.say(f"sync {member}: {synced.error_code} {len(synced.assignment)} bytes {synced.assignment[:8]!r}")
        return synced

    async def stable(self, *, session_ms: int = 10_000, rebalance_ms: int = 10_000) -> None:
        """Make m1 the only member of a stable group of generation 1."""
        await (await self.member(session_ms=session_ms, rebalance_ms=rebalance_ms))
        await self.sync("m1", 1, {"m1": b"all"}, quietly=True)

    async def stable_pair(self) -> None:
        """Make m1, who leads, and m2 the members of a stable group of generation 2."""
        await self.stable()
        second = await self.member()
        await self.rejoined("m1", second)
        await asyncio.gather(
            self.sync("m2", 2, quietly=True), self.sync("m1", 2, {"m1": b"one", "m2": b"two"}, quietly=True)
        )

    async def rejoined(self, member: str, others: Awaitable[Any]) -> None:
        """Have a member join again once the group wants that, and wait for the generation."""
        await self.until_preparing()
        await asyncio.gather(self.join(member, quietly=True), others)

    async def until_preparing(self) -> None:
        """Wait until the group prepares a rebalance."""
        await self.until_state("PreparingRebalance")

    async def until_state(self, state: str) -> None:
        """Wait until the group is in a state."""
        async with asyncio.timeout(TIMEOUT_S):
            while (await self.described()).group_state != state:  # noqa: ASYNC110  it happens in another process
                await asyncio.sleep(0.05)

    async def heartbeat(self, member: str, generation: int, *, instance: str | None = None) -> None:
        """Be heard of, and say the answer."""
        request = m.HeartbeatRequest(
            group_id=self.group, generation_id=generation, member_id=self.id(member), group_instance_id=instance
        )
        self.say(f"heartbeat {member} {generation}: {(await self.ask(request, 3)).error_code}")

    async def leave(self, *members: tuple[str, str | None], version: int = 3) -> None:
        """Leave, and say the answer."""
        identity = m.LeaveGroupRequest.MemberIdentity
        request = m.LeaveGroupRequest(
            group_id=self.group,
            member_id=self.id(members[0][0]),
            members=[identity(member_id=self.id(name), group_instance_id=instance) for name, instance in members],
        )
        left = await self.ask(request, version)
        each = [(self.name(one.member_id), one.group_instance_id, one.error_code) for one in left.members or ()]
        self.say(f"leave: {left.error_code} {each}")

    async def commit(
        self,
        offset: int,
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        version: int = 7,
        retention_ms: int = -1,
    ) -> None:
        """Commit an offset, and say the answer."""
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = m.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=self.id(member),
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[topic(name=TOPIC, partitions=[partition])],
        )
        error = (await self.ask(request, version)).topics[0].partitions[0].error_code
        self.say(f"commit {offset} by {member!r} of {generation}: {error}")

    async def committed(self) -> None:
        """Say what is committed."""
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        answer = await self.ask(m.OffsetFetchRequest(group_id=self.group, topics=[topic]), 5)
        self.say(f"committed: {answer.error_code} {answer.topics[0].partitions[0].committed_offset}")

    # --- administrators ---

    async def described(self, version: int = 5) -> Any:
        """Return what DescribeGroups says."""
        request = m.DescribeGroupsRequest(groups=[self.group], include_authorized_operations=True)
        return (await self.ask(request, version)).groups[0]

    async def describe(self) -> None:
        """Say what DescribeGroups says."""
        group = await self.described()
        members = sorted(
            (
                self.name(each.member_id),
                each.group_instance_id,
                each.client_id,
                each.client_host[:1],
                len(each.member_metadata),
                len(each.member_assignment),
            )
            for each in group.members
        )
        operations = sorted(group.authorized_operations)
        self.say(
            f"describe: {group.error_code} {group.group_state} type {group.protocol_type!r} "
            f"protocol {group.protocol_data!r} members {members} may {operations}"
        )

    async def list(self, *states: str) -> None:
        """Say whether ListGroups names the group."""
        listed = await self.ask(m.ListGroupsRequest(states_filter=list(states), types_filter=[]), 4)
        found = [(each.protocol_type, each.group_state) for each in listed.groups if each.group_id == self.group]
        self.say(f"list {states}: {listed.error_code} {found}")

    async def delete(self) -> None:
        """Delete the group, and say the answer."""
        answer = await self.ask(m.DeleteGroupsRequest(groups_names=[self.group]), 2)
        self.say(f"delete: {[each.error_code for each in answer.results]}")

    async def delete_offset(self, topic: str = TOPIC) -> None:
        """Delete the offset of a topic, and say the answer."""
        of_topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
        partition = of_topic.OffsetDeleteRequestPartition(partition_index=0)
        request = m.OffsetDeleteRequest(group_id=self.group, topics=[of_topic(name=topic, partitions=[partition])])
        answer = await self.ask(request, 0)
        each = [one.error_code for of in answer.topics for one in of.partitions]
        self.say(f"delete offset of {topic}: {answer.error_code} {each}")

    async def log(self) -> None:
        """Say what the log of `__consumer_offsets` holds about the group, once it has been replicated."""
        await asyncio.sleep(REPLICATED_S)
        metadata = await self.ask(m.MetadataRequest(topics=None), 8)
        count = next(len(topic.partitions) for topic in metadata.topics if topic.name == OFFSETS_TOPIC)
        topic = m.FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=partition_of(self.group, count),
            current_leader_epoch=-1,
            fetch_offset=0,
            log_start_offset=-1,
            partition_max_bytes=50_000_000,
        )
        request = m.FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=50_000_000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[topic(topic=OFFSETS_TOPIC, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
        )
        data = (await self.ask(request, 11)).responses[0].partitions[0].records
        for record in decode_chunk(bytes(data)).records:
            if isinstance(record, OffsetRecord) and record.key.group == self.group:
                value = record.value and (record.value.offset, record.value.expires_ms is not None)
                self.say(f"log: offset of {record.key.topic}: {value}")
            elif isinstance(record, GroupRecord) and record.group == self.group:
                self.say(f"log: {self._stored(record)}")

    def _stored(self, record: GroupRecord) -> str:
        value = record.value
        if value is None:
            return "the group is no more"
        members = sorted(
            (
                self.name(each.member_id),
                each.instance_id,
                each.client_id,
                each.rebalance_timeout_ms,
                each.session_timeout_ms,
                len(each.subscription),
                len(each.assignment),
            )
            for each in value.members
        )
        leader = None if value.leader is None else self.name(value.leader)
        return (
            f"type {value.protocol_type!r} generation {value.generation} protocol {value.protocol!r} "
            f"leader {leader!r} since {value.state_since_ms is not None} members {members}"
        )


Situation = Callable[[Script], Awaitable[None]]


async def one_member(s: Script) -> None:
    """A member joins, has its assignment, commits and leaves."""
    await s.join()
    await s.list()
    await s.describe()
    await s.join("m1")
    await s.describe()
    await s.sync("m1", 1, {"m1": b"all"})
    await s.describe()
    for states in ((), ("Stable",), ("stable", "Empty"), ("Dead",)):
        await s.list(*states)
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1)
    await s.sync("m1", 1)
    await s.leave(("m1", None))
    await s.describe()
    await s.committed()
    await s.commit(6)
    await s.log()


async def old_clients(s: Script) -> None:
    """Clients from before KIP-394 are members at once; from before KIP-62 their session is all the time they have."""
    await s.join(version=0, rebalance_ms=77)
    await s.sync("m1", 1, {"m1": b"a"}, version=0)
    await s.leave(("m1", None), version=0)
    await s.leave(("m1", None), version=0)
    await s.join(version=3)
    await s.log()


async def second_member(s: Script) -> None:
    """A second member comes: the first one is told, both join again, and the leader assigns."""
    await s.stable()
    second = await s.member()
    await s.until_preparing()
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1)
    await s.sync("m1", 1)
    await s.describe()
    first, joined = await asyncio.gather(s.join("m1", quietly=True), second)
    s.say(s.joined(first, "m1"))
    s.say(s.joined(joined, "m2"))
    await s.heartbeat("m2", 2)
    await s.commit(6, "m2", 2)
    await s.describe()
    waiting = asyncio.create_task(s.sync("m2", 2, quietly=True))
    await s.sync("m1", 2, {"m1": b"one", "m2": b"two"})
    s.say(f"sync m2: {(await waiting).assignment!r}")
    await s.commit(7, "m2", 2)
    await s.log()


async def refused_joins(s: Script) -> None:
    """Who cannot join."""
    await s.join("somebody")
    await s.list()
    await s.join(protocols=())
    await s.join(protocol_type="")
    await s.list()
    for session_ms in (999, 1_800_001):
        await s.join(session_ms=session_ms)
    await s.stable()
    await s.join(protocol_type="connect")
    await s.join(protocols=(("roundrobin", b""),))
    await s.join("m9")
    await s.join("m1", instance="i")
    await s.join(protocols=())
    await s.describe()


async def no_group_id(s: Script) -> None:
    """A group has a name."""
    await s.ask(m.ListGroupsRequest(states_filter=[], types_filter=[]), 4)
    s.group = ""
    await s.join()
    await s.sync("m1", 1)
    await s.heartbeat("m1", 1)
    await s.leave(("m1", None))
    await s.delete_offset()


async def zombies(s: Script) -> None:
    """Who is no member of this generation commits nothing."""
    await s.stable_pair()
    for member, generation in (("m1", 2), ("m1", 1), ("m1", 3), ("m9", 2), ("", -1), ("m1", -1), ("", 2)):
        await s.commit(5, member, generation)
    await s.heartbeat("m1", 1)
    await s.heartbeat("m9", 2)
    await s.sync("m1", 1)
    await s.sync("m9", 2)
    await s.leave(("m1", None))
    await s.commit(6, "m1", 2)
    await s.committed()


async def static_bounce(s: Script) -> None:
    """An instance that comes back goes on in its generation; whoever has its old id is fenced."""
    await (await s.member(instance="i"))
    await s.sync("m1", 1, {"m1": b"all"}, instance="i", quietly=True)
    await s.join(instance="i")
    await s.describe()
    await s.sync("m2", 1, instance="i")
    await s.heartbeat("m1", 1, instance="i")
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1, instance="i")
    await s.sync("m1", 1, instance="i")
    await s.join("m1", instance="i")
    await s.leave(("m1", "i"))
    await s.heartbeat("m2", 1, instance="i")
    await s.heartbeat("m2", 1, instance="j")
    await s.join(instance="i", version=9)
    await s.leave(("", "j"), ("", "i"), ("", None))
    await s.describe()
    await s.log()


async def static_follower_bounce(s: Script) -> None:
    """A static follower that comes back disturbs nobody, unless it says something that changes the protocol."""
    await (await s.member(instance="a"))
    await s.sync("m1", 1, {"m1": b"all"}, instance="a", quietly=True)
    second = await s.member(instance="b")
    await s.until_preparing()
    await asyncio.gather(s.join("m1", instance="a", quietly=True), second)
    await s.describe()
    await asyncio.gather(
        s.sync("m2", 2, instance="b", quietly=True), s.sync("m1", 2, {"m1": b"one", "m2": b"two"}, instance="a")
    )
    await s.join(instance="b", version=9)
    await s.sync("m3", 2, instance="b")
    await s.heartbeat("m1", 2, instance="a")
    await s.join(instance="b", protocols=(("roundrobin", b""), ("range", SUBSCRIPTION + b"\0")), version=9)
    await s.heartbeat("m1", 2, instance="a")
    await s.log()


async def static_bounce_while_assigning(s: Script) -> None:
    """An instance that comes back before the assignment is there begins another rebalance."""
    await (await s.member(instance="i"))
    await s.join(instance="i")
    await s.sync("m1", 1, {"m1": b"all"}, instance="i")
    await s.sync("m2", 2, {"m2": b"all"}, instance="i")
    await s.log()


async def rejoins(s: Script) -> None:
    """A follower that says the same is told its generation; the leader, or whoever says something else, rebalances."""
    await s.stable_pair()
    await s.join("m2")
    await s.describe()
    changed = asyncio.create_task(s.join("m2", protocols=(("range", SUBSCRIPTION + b"\0"),), quietly=True))
    await s.rejoined("m1", changed)
    s.say(s.joined(await changed, "m2"))
    await s.join("m2", protocols=(("range", SUBSCRIPTION + b"\0"),))
    await s.join("m1")
    await asyncio.gather(s.sync("m2", 3, quietly=True), s.sync("m1", 3, {}, quietly=True))
    leader = asyncio.create_task(s.join("m1", quietly=True))
    await s.rejoined("m2", leader)
    s.say(s.joined(await leader, "m1"))


async def votes(s: Script) -> None:
    """The protocol that most members like best of those that all have."""
    likes = ((("a", b"1"), ("b", b"2"), ("c", b"3")), (("c", b""), ("b", b"")), (("d", b""), ("b", b""), ("c", b"")))
    first = asyncio.create_task(s.join(version=3, protocols=likes[0], quietly=True))
    s.say(s.joined(await first, "m1"))
    second = asyncio.create_task(s.join(version=3, protocols=likes[1], quietly=True))
    await s.until_preparing()
    third = asyncio.create_task(s.join(version=3, protocols=likes[2], quietly=True))
    await asyncio.sleep(0.5)
    joined = await s.join("m1", protocols=likes[0], quietly=True)
    await asyncio.gather(second, third)
    s.say(f"{joined.error_code} {joined.generation_id} {joined.protocol_name} {len(joined.members)}")


async def wrong_protocol_at_sync(s: Script) -> None:
    """Who thinks that another protocol was chosen has no assignment (KIP-559)."""
    await (await s.member())
    await s.sync("m1", 1, {"m1": b"all"}, version=5, protocol="roundrobin")
    await s.sync("m1", 1, {"m1": b"all"}, version=5, protocol=None)
    await s.sync("m1", 1, {"m1": b"all"}, version=5)


async def leaving(s: Script) -> None:
    """Members leave one by one or together; each is answered on its own."""
    await s.leave(("m9", None))
    await s.leave(("m9", None), version=0)
    await s.stable_pair()
    await s.join()
    await s.leave(("m3", None), ("m3", None), ("m2", "i"), ("m2", None))
    await s.heartbeat("m1", 2)
    await s.leave(("m1", None))
    await s.describe()
    await s.log()


async def deletion(s: Script) -> None:
    """A group with members stays; one without goes, and what it has committed."""
    await s.delete()
    await s.delete_offset()
    await s.describe()
    await s.stable()
    await s.commit(5, "m1", 1)
    await s.delete()
    await s.delete_offset()
    await s.delete_offset("nowhere")
    await s.leave(("m1", None))
    await s.delete()
    await s.committed()
    await s.delete()
    await s.list()
    await s.log()


async def last_offset_deleted(s: Script) -> None:
    """A group without members goes with its last offset."""
    await s.commit(5)
    await s.describe()
    await s.list()
    await s.delete_offset()
    await s.delete_offset()
    await s.log()


async def offsets_only(s: Script) -> None:
    """A group that never had members is deleted without a word about itself."""
    await s.commit(5)
    await s.delete()
    await s.log()


async def own_retention(s: Script) -> None:
    """An older client says how long its offset is to live."""
    await s.commit(5, version=4, retention_ms=60_000)
    await s.log()


async def other_types(s: Script) -> None:
    """Only what consumers say is looked into."""
    await (await s.member(protocol_type="connect"))
    await s.sync("m1", 1, {"m1": b"all"}, protocol=None)
    await s.delete_offset()
    await s.describe()


async def garbage(s: Script) -> None:
    """Nobody understands what the member subscribes to, and the group works."""
    garbage = (("range", b"\0\0\xff"),)
    await (await s.member(protocols=garbage))
    await s.sync("m1", 1, {"m1": b"\xff" * 9})
    await s.commit(5, "m1", 1)
    await s.delete_offset()
    await s.describe()
    await s.log()


async def large_assignment(s: Script) -> None:
    """An assignment that a record can hold, and one that it cannot."""
    await (await s.member())
    await s.sync("m1", 1, {"m1": bytes(1_000_000)})
    await s.leave(("m1", None))
    await (await s.member())
    await s.sync("m2", 3, {"m2": bytes(1_100_000)})
    await s.heartbeat("m2", 3)
    await s.describe()


async def long_names(s: Script) -> None:
    """A name can have 32,767 bytes; with one more the connection is closed."""
    s.group = "g" * 32_767
    await s.join(version=6)
    await s.join("m1", version=6)
    await s.sync("m1", 1, {"m1": b"all"}, version=5)
    await s.log()
    s.group += "g"
    try:
        await s.join(version=6)
    except PeerError:
        s.say("join: the connection is closed")


async def session_ends(s: Script) -> None:
    """A member that is not heard of is gone after its session time-out."""
    await s.stable(session_ms=1_000)
    await s.until_state("Empty")
    await s.heartbeat("m1", 1)
    await s.log()


async def rebalance_time_ends(s: Script) -> None:
    """Who does not join again in time is left behind."""
    await s.stable(rebalance_ms=1_000)
    s.say(s.joined(await (await s.member(rebalance_ms=1_000)), "m2"))
    await s.heartbeat("m1", 1)
    await s.describe()


async def never_synced(s: Script) -> None:
    """Who never asks for its assignment is left behind too, though it is heard of."""
    await (await s.member(rebalance_ms=1_000))
    for _ in range(3):
        await asyncio.sleep(0.2)
        await s.heartbeat("m1", 1)
    await s.until_state("Empty")
    await s.heartbeat("m1", 1)
    await s.log()


SITUATIONS: tuple[Situation, ...] = (
    one_member,
    old_clients,
    second_member,
    refused_joins,
    no_group_id,
    zombies,
    static_bounce,
    static_follower_bounce,
    static_bounce_while_assigning,
    rejoins,
    votes,
    wrong_protocol_at_sync,
    leaving,
    deletion,
    last_offset_deleted,
    offsets_only,
    other_types,
    garbage,
    large_assignment,
    long_names,
    own_retention,
    session_ends,
    rebalance_time_ends,
    never_synced,
)


async def play(situation: Situation, transport: Transport, host: str, port: int) -> list[str]:
    """Return what a cluster answers and stores in a situation."""
    script = Script(transport, host, port, group=situation.__name__)
    await situation(script)
    return script.said


async def _record(address: str) -> None:
    host, _, port = address.rpartition(":")
    said = {}
    for situation in SITUATIONS:
        said[situation.__name__] = await play(situation, TcpTransport(), host, int(port))
    RECORDED.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(_record(sys.argv[1]))
