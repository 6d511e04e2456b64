"""A transaction coordinator on a `__transaction_state` of the test's own, and brokers that take markers as told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.broker.coordinator.shards import Shards
from harness.broker.metadata_cache import MetadataCache
from harness.broker.rules import rules_with
from harness.broker.transactions.coordinator import TransactionCoordinator, TransactionLimits
from harness.broker.transactions.markers import MarkerDelivery
from harness.broker.transactions.transaction import Producer
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from harness.broker.wire.transport import PeerError
from harness.events import Event, TransactionStateChange
from harness.values import TRANSACTIONS_TOPIC, TopicPartition
from tests.broker.coordinator.coordinators import FakeTopic
from tests.broker.metadata_update import metadata_update
from tests.broker.recording_state_log import RecordingStateLog

ID = "id"
TIMEOUT_MS = 60_000
_Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = _Result.WritableTxnMarkerTopicResult
_Partition = _Topic.WritableTxnMarkerPartitionResult


@dataclass
class FakeIds:
    """Producer ids from 1000 on."""

    last: int = 999

    async def next_id(self) -> int:
        await asyncio.sleep(0)
        self.last += 1
        return self.last


@dataclass
class FakeBrokers:
    """Brokers as coordinators reach them; each answers with the errors that are set for its partitions."""

    errors: dict[str, list[ErrorCode]] = field(default_factory=dict)
    """What comes first, by topic-partition; then NONE."""
    silent: set[int] = field(default_factory=set)
    requests: list[tuple[int, Any]] = field(default_factory=list)
    answer: Callable[[Any], Any] | None = None

    async def request(self, broker_id: int, message: Any, version: int) -> Any:
        await asyncio.sleep(0.001)
        if broker_id in self.silent:
            raise PeerError(f"broker {broker_id} is silent")
        self.requests.append((broker_id, message))
        return self.answer(message) if self.answer else self._marked(message)

    def _marked(self, message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                _Result(
                    producer_id=marker.producer_id,
                    topics=[
                        _Topic(
                            name=topic.name,
                            partitions=[
                                _Partition(partition_index=each, error_code=self._next(f"{topic.name}-{each}"))
                                for each in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in message.markers
            ]
        )

    def _next(self, partition: str) -> ErrorCode:
        errors = self.errors.get(partition)
        return errors.pop(0) if errors else ErrorCode.NONE

    def markers(self) -> list[tuple[int, str, bool]]:
        """Return broker, partition and outcome of every marker that arrived, in order."""
        return [
            (broker, f"{topic.name}-{each}", marker.transaction_result)
            for broker, message in self.requests
            for marker in message.markers
            for topic in marker.topics
            for each in topic.partition_indexes
        ]

    listener = "REPL"

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Coordinating:
    """The coordinator and its surroundings."""

    topic: FakeTopic = field(default_factory=FakeTopic)
    brokers: FakeBrokers = field(default_factory=FakeBrokers)
    metadata: MetadataCache = field(default_factory=MetadataCache)
    bugs: tuple[str, ...] = ()
    limits: TransactionLimits = field(default_factory=TransactionLimits)
    now_ms: int = 1_000_000
    existing: set[TopicPartition] = field(default_factory=set)
    """Partitions that ZooKeeper has although the metadata cache may lack them."""
    coordinator: TransactionCoordinator = field(init=False)
    log: RecordingStateLog = field(default_factory=lambda: RecordingStateLog([]))

    def __post_init__(self) -> None:
        self.leaders({0: 1, 1: 2})
        self.coordinator = self.new_coordinator()

    def new_coordinator(self) -> TransactionCoordinator:
        """Return a coordinator that leads nothing yet, on the same topic."""
        rules = rules_with([*self.bugs])
        peers: Any = self.brokers
        ids: Any = FakeIds()
        return TransactionCoordinator(
            shards=Shards(1, rules),
            topic=self.topic,
            producer_ids=ids,
            markers=MarkerDelivery(
                peers=peers, metadata=self.metadata, state_log=self.log, deleted=self.deleted, rules=rules
            ),
            state_log=self.log,
            wall_ms=lambda: self.now_ms,
            limits=self.limits,
        )

    async def deleted(self, partition: TopicPartition) -> bool:
        """Return whether ZooKeeper says that a partition is deleted."""
        return partition not in self.existing

    def leaders(self, leaders: dict[int, int], *, alive: tuple[int, ...] = (1, 2)) -> None:
        """Give the coordinator's broker the leader of each partition of t; -2 means that it is being deleted."""
        states = {number: (leader, 1, [1, 2]) for number, leader in leaders.items()}
        self.metadata.update(
            metadata_update({each: ["REPL"] for each in alive}, {"t": states, TRANSACTIONS_TOPIC: {0: (1, 1, [1])}}, 1)
        )

    async def lead(self, leader_epoch: int = 3) -> None:
        self.coordinator.leadership_changed([(TRANSACTIONS_TOPIC, 0, leader_epoch)], [])
        await self.settled(
            lambda: self.coordinator.shards.coordinator_error(ID) is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )

    async def fail_over(self, leader_epoch: int = 5) -> None:
        """Have another coordinator, which knows only the topic, go on."""
        self.coordinator.leadership_changed([], [(TRANSACTIONS_TOPIC, 0, leader_epoch - 1)])
        await self.coordinator.stop()
        self.coordinator = self.new_coordinator()
        await self.lead(leader_epoch)

    async def begin(self, *partitions: int) -> Producer:
        """Begin a session and, with partitions of t, a transaction."""
        error, producer = await self.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
        assert error is ErrorCode.NONE, error
        if partitions:
            added = {("t", each) for each in partitions}
            assert not await self.coordinator.add_partitions(ID, producer, added, api="AddPartitionsToTxn")
        return producer

    async def settled(self, seen: Callable[[], bool], within_s: float = 30) -> None:
        """Return when something has become true."""
        async with asyncio.timeout(within_s):
            while not seen():  # noqa: ASYNC110  in virtual time
                await asyncio.sleep(0.001)

    def state(self) -> str:
        error, known = self.coordinator.describe(ID)
        return error.name if known is None else known.state.value

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.log.events if isinstance(event, kind)]

    def states(self) -> list[str]:
        """Return the states that were stored or loaded, in order."""
        return [event.to_state for event in self.of(TransactionStateChange)]
