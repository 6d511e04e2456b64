"""What a group is asked and what is answered, told in lines: one group against any cluster that a transport reaches.

Member ids are told as m1, m2, … in the order in which they were given out.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from harness.broker.coordinator.records import GroupRecord, OffsetRecord, decode_record
from harness.broker.log.batch import iter_batches, parse_records
from harness.broker.log.records import Record
from harness.broker.replicas.fetcher_messages import (
    FETCH_VERSION,
    Limits,
    PartitionRequest,
    fetch_request,
    without_session,
)
from harness.broker.wire import messages as m
from harness.broker.wire import sentinels
from harness.broker.wire.transport import PeerError, Transport
from harness.kafka.placement import partition_of
from harness.values import OFFSETS_TOPIC
from tools.side_by_side.stored_bytes import in_short, masked_group, masked_offset, version_of

TOPIC = "orders"
TIMEOUT_S = 30
REPLICATED_S = 0.5
FETCH_LIMITS = Limits(max_wait_ms=0, min_bytes=0, max_bytes=50_000_000, partition_max_bytes=50_000_000)
CONSUMER = "consumer"
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
RANGE = (("range", SUBSCRIPTION),)
_SETS = ("authorized_operations",)


@dataclass(slots=True)
class Script:
    """One group, what it is asked, and what was answered."""

    transport: Transport
    host: str
    port: int
    """Of any broker."""
    group: str
    transcript: list[str] = field(default_factory=list)
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
                answer = await self.find_coordinator()
                if answer.error_code == 0 and await self._coordinates(answer.host, answer.port):
                    self._coordinator = (answer.host, answer.port)
                else:
                    await asyncio.sleep(0.1)
        return self._coordinator

    async def find_coordinator(self) -> Any:
        """Return what FindCoordinator says."""
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
        return (await self._ask(self.host, self.port, request, 4)).coordinators[0]

    async def find(self, version: int) -> None:
        """Say every field of what FindCoordinator says."""
        request = m.FindCoordinatorRequest(key=self.group, key_type=0, coordinator_keys=[self.group])
        self.say(f"find v{version}: {self._shown((await self._ask(self.host, self.port, request, version)).to_dict())}")

    async def _coordinates(self, host: str, port: int) -> bool:
        """Whether a broker knows the group's members: it denies no membership."""
        try:
            answer = await self._ask(host, port, m.HeartbeatRequest(group_id=self.group), 0)
        except PeerError:  # others have not noticed yet that it is gone
            return False
        return bool(answer.error_code == 25)

    def looks_for_it(self, host: str, port: int) -> None:
        """Ask a broker for the coordinator, and that one from now on."""
        self.host, self.port = host, port
        self._coordinator = ("", 0)

    def goes_on_at(self, host: str, port: int) -> None:
        """Ask another coordinator from now on, which it need not find."""
        self.host, self.port = self._coordinator = (host, port)

    def name(self, member_id: str | None) -> str:
        """Return a member's name in the transcript."""
        return self._names.setdefault(member_id, f"m{len(self._names) + 1}") if member_id else ""

    def id(self, name: str) -> str:
        """Return the id of a member by its name."""
        return next((member_id for member_id, known in self._names.items() if known == name), name)

    def say(self, line: str) -> None:
        """Write a line of the transcript."""
        self.transcript.append(line)

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

    def joined(self, joined: Any, client: str) -> str:
        """Return the answer to a join in words."""
        ids = [joined.member_id, *sorted(each.member_id for each in joined.members)]
        names = {member_id: self.name(member_id) for member_id in ids}
        members = sorted((names[each.member_id], each.group_instance_id, len(each.metadata)) for each in joined.members)
        return (
            f"join {client}: {joined.error_code} as {names[joined.member_id]!r} generation {joined.generation_id} "
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

    async def stable_at_once(
        self, *, session_ms: int = 10_000, protocols: tuple[tuple[str, bytes], ...] = RANGE
    ) -> None:
        """The same without an id first: a group that has given one away and has no members is gone at the next look."""
        await self.join(version=3, session_ms=session_ms, protocols=protocols, quietly=True)
        await self.sync("m1", 1, {"m1": b"all"}, quietly=True)

    async def stable_pair(self) -> None:
        """Make m1, the leader, and m2 the members of a stable group of generation 2."""
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

    async def leave(self, *members: tuple[str, str | None], version: int = 3, quietly: bool = False) -> Any:
        """Leave, and say the answer."""
        identity = m.LeaveGroupRequest.MemberIdentity
        request = m.LeaveGroupRequest(
            group_id=self.group,
            member_id=self.id(members[0][0]),
            members=[identity(member_id=self.id(name), group_instance_id=instance) for name, instance in members],
        )
        left = await self.ask(request, version)
        each = [(self.name(one.member_id), one.group_instance_id, one.error_code) for one in left.members or ()]
        if not quietly:
            self.say(f"leave: {left.error_code} {each}")
        return left

    async def commit(
        self,
        offset: int,
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        version: int = 7,
        retention_ms: int = -1,
    ) -> int:
        """Commit an offset, and say the answer; return its error."""
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
        error = int((await self.ask(request, version)).topics[0].partitions[0].error_code)
        self.say(f"commit {offset} by {member!r} of {generation}: {error}")
        return error

    async def committed(self) -> None:
        """Say what is committed."""
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        answer = await self.ask(m.OffsetFetchRequest(group_id=self.group, topics=[topic]), 5)
        offsets = [partition.committed_offset for topic in answer.topics for partition in topic.partitions]
        self.say(" ".join(map(str, ("committed:", answer.error_code, *offsets))))

    async def fields(self, message: Any, version: int) -> Any:
        """Ask, say every field of the answer by its name, and return the answer."""
        answer = await self.ask(message, version)
        self.say(f"{type(message).__name__.removesuffix('Request')} v{version}: {self._shown(answer.to_dict())}")
        return answer

    def _shown(self, value: Any, field_name: str = "") -> Any:
        """Return a field's value; ids of members by their names, and of a broker or client only whether it is named."""
        if isinstance(value, dict):
            return {name: self._shown(of, name) for name, of in sorted(value.items())}
        if isinstance(value, list):
            return [self._shown(each, field_name) for each in (sorted(value) if field_name in _SETS else value)]
        if field_name in ("member_id", "leader"):
            return self.name(value)
        if field_name in ("node_id", "host", "port", "client_host"):
            return value not in ("", -1)
        return value

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
        operations = sorted(group.authorized_operations or ())
        self.say(
            f"describe: {group.error_code} {group.group_state} type {group.protocol_type!r} "
            f"protocol {group.protocol_data!r} members {members} may {operations}"
        )

    async def list(self, *states: str) -> None:
        """Say whether ListGroups names the group."""
        listed = await self.ask(m.ListGroupsRequest(states_filter=list(states), types_filter=[]), 4)
        groups = [(each.protocol_type, each.group_state) for each in listed.groups if each.group_id == self.group]
        self.say(f"list {states}: {listed.error_code} {groups}")

    async def list_in_version(self, version: int) -> None:
        """Say every field of the group in ListGroups, and whether the group is listed."""
        listed = (await self.ask(m.ListGroupsRequest(states_filter=[], types_filter=[]), version)).to_dict()
        listed["groups"] = [each for each in listed["groups"] if each["group_id"] == self.group]
        self.say(f"ListGroups v{version}: {self._shown(listed)}")

    async def list_of_type(self, *types: str) -> None:
        """Say whether ListGroups names the group among those of a type (KIP-848), and which type that is."""
        listed = await self.ask(m.ListGroupsRequest(states_filter=[], types_filter=list(types)), 5)
        groups = [(each.group_type, each.group_state) for each in listed.groups if each.group_id == self.group]
        self.say(f"list of {types}: {listed.error_code} {groups}")

    async def delete(self) -> None:
        """Delete the group, and say the answer."""
        answer = await self.ask(m.DeleteGroupsRequest(groups_names=[self.group]), 2)
        self.say(f"delete: {[int(each.error_code) for each in answer.results]}")

    async def delete_offset(self, topic: str = TOPIC) -> None:
        """Delete the offset of a topic, and say the answer."""
        of_topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
        partition = of_topic.OffsetDeleteRequestPartition(partition_index=0)
        request = m.OffsetDeleteRequest(group_id=self.group, topics=[of_topic(name=topic, partitions=[partition])])
        answer = await self.ask(request, 0)
        each = [one.error_code for of in answer.topics for one in of.partitions]
        self.say(f"delete offset of {topic}: {answer.error_code} {each}")

    async def stored_bytes(self, host: str, port: int) -> int:
        """Return how much a broker has of the first partition of `__consumer_offsets`."""
        wanted = m.DescribeLogDirsRequest.DescribableLogDirTopic(topic=OFFSETS_TOPIC, partitions=[0])
        answer = await self._ask(host, port, m.DescribeLogDirsRequest(topics=[wanted]), 1)
        return sum(each.partition_size for of in answer.results for topic in of.topics for each in topic.partitions)

    async def log(self) -> None:
        """Say what the log of `__consumer_offsets` holds about the group, once it has been replicated."""
        await asyncio.sleep(REPLICATED_S)
        metadata = await self.ask(m.MetadataRequest(topics=None), 8)
        count = next(len(topic.partitions) for topic in metadata.topics if topic.name == OFFSETS_TOPIC)
        partition = PartitionRequest((OFFSETS_TOPIC, partition_of(self.group, count)), sentinels.NO_EPOCH, 0)
        request = fetch_request(sentinels.CONSUMER, FETCH_LIMITS, without_session([partition]))
        data = (await self.ask(request, FETCH_VERSION)).responses[0].partitions[0].records
        for raw in (record for _, batch in iter_batches(bytes(data)) for record in parse_records(batch)):
            record = decode_record(raw)
            if isinstance(record, OffsetRecord) and record.key.group == self.group:
                value = record.value and (record.value.offset, record.value.expires_ms is not None)
                self.say(f"log: offset of {record.key.topic}: {value}; {self._bytes_of(raw, record)}")
            elif isinstance(record, GroupRecord) and record.group == self.group:
                self.say(f"log: {self._stored(record)}; {self._bytes_of(raw, record)}")

    def _bytes_of(self, raw: Record, record: OffsetRecord | GroupRecord) -> str:
        """Return versions and bytes of a record; a digest where these are many."""
        assert raw.key is not None
        key = version_of(raw.key)
        if raw.value is None:
            return f"key {key}"
        masked = self._masked(raw.value, record)
        return f"key {key} value {version_of(raw.value)} bytes {in_short(masked)}"

    def _masked(self, value: bytes, record: OffsetRecord | GroupRecord) -> bytes:
        """Return a value without times and ids: members have their names, and stand in the order of these."""
        if isinstance(record, OffsetRecord):
            return masked_offset(value, record)
        assert record.value is not None
        names = {each.member_id: self.name(each.member_id) for each in record.value.members}
        return masked_group(value, record.value, names)

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
