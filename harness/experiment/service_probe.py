"""Asks a cluster for what clients need of it, once each time: to write a record, to read it, to commit an offset.

It speaks the protocol itself: a client library would try again, and hide what was answered. All partitions of one
leader are asked for at once, so that many that hang cost no more time than one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count, groupby
from operator import itemgetter

from harness.broker.coordinator.placement import partition_of
from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.replicas.fetcher_messages import Limits, PartitionRequest, fetch_request, without_session
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import (
    DescribeLogDirsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from harness.broker.wire.sentinels import CONSUMER, NO_EPOCH
from harness.broker.wire.transport import Connection, Message, PeerError, Transport
from harness.client_rules.outcomes import commit_outcome, send_outcome
from harness.experiment.version_negotiation import last_offsets
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import ACKS_ALL, TopicPartition

PROCESS = "liveness"
"""Its name among the clients: what it writes, it writes down as they do."""
METADATA_VERSION, PRODUCE_VERSION, FETCH_VERSION, FIND_COORDINATOR_VERSION = 8, 8, 11, 2
OFFSET_COMMIT_VERSION, DESCRIBE_LOG_DIRS_VERSION = 7, 1
REQUEST_TIMEOUT_S = 5.0
PRODUCE_TIMEOUT_S = 3.0
"""After this a leader answers that the ISR has not got it."""
FETCH_LIMITS = Limits(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, partition_max_bytes=1 << 20)
Address = tuple[str, int]
Problems = dict[TopicPartition, str]
"""What was wrong with each partition, empty for nothing."""


class ServiceProbe:
    """The harness's own client of one cluster."""

    def __init__(
        self,
        transport: Transport,
        bootstrap: Iterable[Address],
        recorder: Recorder,
        wall_ms: Callable[[], int],
        groups: str = PROCESS,
    ) -> None:
        """Names of its groups begin with `groups`."""
        self.offsets: dict[TopicPartition, int] = {}
        """Of each partition's acknowledged record."""
        self._transport = transport
        self._bootstrap = list(bootstrap)
        self._recorder = recorder
        self._wall_ms = wall_ms
        self._groups = groups
        self._addresses: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._connections: dict[Address, Connection] = {}
        self._connecting: dict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tries = count()
        self._values = count(1)

    async def produce(self, partitions: Sequence[TopicPartition]) -> Problems:
        """Send one record to each partition, with acks=all."""
        return await self._of_leaders(partitions, self._produce)

    async def fetch(self, partitions: Sequence[TopicPartition]) -> Problems:
        """Read each partition's acknowledged record."""
        return await self._of_leaders(partitions, self._fetch)

    async def commit(self, groups: Sequence[int], of: int, partitions: Sequence[TopicPartition]) -> dict[int, str]:
        """Commit offsets by one group in each of these partitions, `of` so many, of `__consumer_offsets`.

        Together the groups commit an offset of every partition; returns what was wrong with each.
        """
        shares = {number: partitions[number::of] or partitions[number % len(partitions) :][:1] for number in groups}
        problems = await asyncio.gather(
            *(self._commit(_group_in(self._groups, number, of), shares[number]) for number in groups)
        )
        return dict(zip(groups, problems, strict=True))

    async def offline(self, broker_id: int) -> bool:
        """Return whether a broker says that a log directory of its own is offline."""
        try:
            request = DescribeLogDirsRequest(topics=None)
            answer = await self._ask(self._addresses[broker_id], request, DESCRIBE_LOG_DIRS_VERSION)
        except (PeerError, KeyError):
            return False
        return any(each.error_code != ErrorCode.NONE for each in answer.results)

    def close(self) -> None:
        """Drop every connection."""
        for connection in self._connections.values():
            connection.close()

    # --- who leads ---

    async def _of_leaders(
        self,
        partitions: Sequence[TopicPartition],
        ask: Callable[[int, Sequence[TopicPartition]], Awaitable[Problems]],
    ) -> Problems:
        """Ask the leaders of partitions, all at once."""
        if not partitions:
            return {}
        try:
            await self._learn(partitions)
        except PeerError as error:
            return dict.fromkeys(partitions, str(error))
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for key in partitions:
            by_leader[self._leaders.get(key, -1)].append(key)
        problems: Problems = dict.fromkeys(by_leader.pop(-1, ()), "no broker knows its leader")
        for answer in await asyncio.gather(*(ask(leader, keys) for leader, keys in sorted(by_leader.items()))):
            problems |= answer
        return problems

    async def _learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask a broker, another one each time, who leads; raises PeerError."""
        request = MetadataRequest(
            topics=[
                MetadataRequest.MetadataRequestTopic(name=name) for name in sorted({name for name, _ in partitions})
            ],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        answer = await self._ask(self._any(), request, METADATA_VERSION)
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self._leaders = {
            (topic.name, partition.partition_index): partition.leader_id
            for topic in answer.topics
            for partition in topic.partitions
            if partition.leader_id in self._addresses
        }

    def _any(self) -> Address:
        return self._bootstrap[next(self._tries) % len(self._bootstrap)]

    async def _ask(self, address: Address, message: Message, version: int) -> Message:
        async with self._connecting[address]:  # of two that ask at once, one connects
            connection = self._connections.get(address)
            if connection is None or connection.closed:
                if connection is not None:
                    connection.close()  # its broker may have ended it alone
                connection = await self._transport.connect(*address, client_id=PROCESS, timeout_s=REQUEST_TIMEOUT_S)
                self._connections[address] = connection
        return await connection.request(message, version, timeout_s=REQUEST_TIMEOUT_S)

    # --- what is asked ---

    async def _produce(self, leader: int, keys: Sequence[TopicPartition]) -> Problems:
        sends = {key: self._invoked(key) for key in keys}
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=None,
            acks=ACKS_ALL,
            timeout_ms=int(PRODUCE_TIMEOUT_S * 1000),
            topic_data=[
                data(
                    name=topic,
                    partition_data=[
                        data.PartitionProduceData(index=key[1], records=self._batch(sends[key])) for key in of_topic
                    ],
                )
                for topic, of_topic in _by_topic(keys)
            ],
        )
        try:
            answer = await self._ask(self._addresses[leader], request, PRODUCE_VERSION)
        except PeerError as error:
            for invoked in sends.values():
                self._recorder.end(invoked, OpType.INFO, error=str(error))
            return dict.fromkeys(keys, str(error))
        problems = dict.fromkeys(keys, "the answer says nothing of it")
        for topic in answer.responses:
            for partition in topic.partition_responses:
                key = (topic.name, partition.index)
                problems[key] = self._sent(key, sends[key], partition)
        return problems

    def _invoked(self, key: TopicPartition) -> Operation:
        topic, partition = key
        value = f"{PROCESS}-{next(self._values)}"
        return self._recorder.invoke(
            OpKind.SEND, topic=topic, partition=partition, key=PROCESS, value=value, acks=ACKS_ALL
        )

    def _batch(self, invoked: Operation) -> bytes:
        return build_batch(
            [Record(key=invoked.key.encode(), value=invoked.value.encode(), timestamp_ms=self._wall_ms())]
        )

    def _sent(self, key: TopicPartition, invoked: Operation, answer: Message) -> str:
        if answer.error_code != ErrorCode.NONE:
            error = described(answer.error_code)
            self._recorder.end(invoked, send_outcome(answer.error_code, tried_once=True), error=error)
            return error
        self._recorder.end(invoked, OpType.OK, offset=answer.base_offset)
        self.offsets[key] = answer.base_offset
        return ""

    async def _fetch(self, leader: int, keys: Sequence[TopicPartition]) -> Problems:
        partitions = [PartitionRequest(key, NO_EPOCH, self.offsets[key]) for key in sorted(keys)]
        request = fetch_request(CONSUMER, FETCH_LIMITS, without_session(partitions))
        try:
            answer = await self._ask(self._addresses[leader], request, FETCH_VERSION)
        except PeerError as error:
            return dict.fromkeys(keys, str(error))
        served = {
            (topic.topic, partition.partition_index): partition
            for topic in answer.responses
            for partition in topic.partitions
        }
        return {key: self._served(key, served.get(key)) for key in keys}

    def _served(self, key: TopicPartition, answer: Message | None) -> str:
        if answer is None:
            return "the answer says nothing of it"
        if answer.error_code != ErrorCode.NONE:
            return described(answer.error_code)
        offset = self.offsets[key]
        if any(last >= offset for last in last_offsets(bytes(answer.records or b""))):
            return ""
        return (
            f"the acknowledged record at offset {offset} is not served, the high watermark is {answer.high_watermark}"
        )

    async def _commit(self, group: str, partitions: Sequence[TopicPartition]) -> str:
        positions = {key: self.offsets.get(key, -1) + 1 for key in partitions}
        try:
            request = FindCoordinatorRequest(key=group, key_type=0)
            coordinator = await self._ask(self._any(), request, FIND_COORDINATOR_VERSION)
            if coordinator.error_code != ErrorCode.NONE:
                return described(coordinator.error_code)
            return await self._commit_at((coordinator.host, coordinator.port), group, positions)
        except PeerError as error:
            return str(error)

    async def _commit_at(self, address: Address, group: str, positions: Mapping[TopicPartition, int]) -> str:
        commits = {
            (topic, partition): self._recorder.invoke(
                OpKind.COMMIT, topic=topic, partition=partition, offset=offset, group=group
            )
            for (topic, partition), offset in positions.items()
        }
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                of_topic(
                    name=topic,
                    partitions=[
                        of_topic.OffsetCommitRequestPartition(
                            partition_index=key[1],
                            committed_offset=positions[key],
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                        for key in keys
                    ],
                )
                for topic, keys in _by_topic(positions)
            ],
        )
        codes: dict[TopicPartition, int] = {}
        try:
            answer = await self._ask(address, request, OFFSET_COMMIT_VERSION)
            codes = {
                (topic.name, each.partition_index): each.error_code
                for topic in answer.topics
                for each in topic.partitions
            }
        finally:
            for key, invoked in commits.items():
                code = codes.get(key, ErrorCode.NETWORK_EXCEPTION)
                error = "" if code == ErrorCode.NONE else described(code)
                self._recorder.end(invoked, commit_outcome(code), error=error)
        return next((described(code) for code in codes.values() if code != ErrorCode.NONE), "")


def _by_topic(keys: Iterable[TopicPartition]) -> Iterable[tuple[str, Sequence[TopicPartition]]]:
    return [(topic, list(group)) for topic, group in groupby(sorted(keys), key=itemgetter(0))]


def _group_in(groups: str, number: int, of: int) -> str:
    """Return the first name of a group whose offsets are in this partition of `__consumer_offsets`."""
    return next(name for name in (f"{groups}-{tried}" for tried in count()) if partition_of(name, of) == number)
