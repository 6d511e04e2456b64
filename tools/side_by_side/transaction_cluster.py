"""The brokers of a situation of transactions: asked one by one, their coordinators found, its topic placed.

Producer ids are told as p1, p2, … in the order in which they were first seen; times are left out. The topic of a
situation has three partitions: NEAR and 1 are led by one broker, by default the coordinator, FAR by another one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from harness.broker.wire import messages as m
from harness.broker.wire.transport import PeerError, Transport
from tools.side_by_side.brokers import Brokers

TIMEOUT_S = 60
LOOK_EVERY_S = 0.05
FAR = 2
NEAR = 0
MAX_BYTES = 1 << 22
TRANSACTION, GROUP = 1, 0
LOADING = (14, 15, 16)
CONCURRENT = 51
TIMEOUT_MS = 60_000
BEGAN_MS = 1_000_000_000_000
"""Before every broker's clock, and after every timestamp that a producer gives."""
ONE_SEGMENT = {"segment.ms": "9223372036854775807", "retention.ms": "-1"}
"""The producers' timestamps are old, and markers are of now."""
_TIMES = ("last_timestamp", "transaction_start_time_ms", "log_append_time_ms")
_PLACES = ("node_id", "host", "port")


async def until(seen: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: it is not, after TIMEOUT_S.
    """
    async with asyncio.timeout(TIMEOUT_S):
        while not await seen():  # noqa: ASYNC110  it happens in another process
            await asyncio.sleep(LOOK_EVERY_S)


@dataclass(slots=True)
class Cluster:
    """The brokers of one situation, and what they answered."""

    transport: Transport
    brokers: Brokers
    topic: str
    """Also the transactional id of the first producer and the name of the group."""
    transcript: list[str] = field(default_factory=list)
    known: int = 0
    """The broker that is asked for coordinators."""
    coordinator: int = -1
    group_coordinator: int = -1
    leaders: tuple[int, int, int] = (-1, -1, -1)
    """By partition."""
    ids: dict[int, str] = field(default_factory=dict)
    """Names of producer ids."""

    # --- asking ---

    async def ask(self, broker_id: int, message: Any, version: int, *, client: str = "c") -> Any:
        """Return a broker's answer; each request has a connection of its own."""
        host, port = self.brokers.address(broker_id)
        connection = await self.transport.connect(host, port, client_id=client, timeout_s=TIMEOUT_S)
        try:
            return await connection.request(message, version, timeout_s=TIMEOUT_S)
        finally:
            connection.close()

    def say(self, line: str) -> None:
        """Write a line of the transcript."""
        self.transcript.append(line)

    def named(self, producer_id: int) -> str:
        """Return a producer id's name in the transcript."""
        return self.ids.setdefault(producer_id, f"p{len(self.ids) + 1}") if producer_id > 0 else str(producer_id)

    def shown(self, value: Any, name: str = "") -> Any:
        """Return an answer's fields: producer ids by their names, of times and places only whether they are given."""
        if isinstance(value, dict):
            return {key: self.shown(of, key) for key, of in sorted(value.items())}
        if isinstance(value, list):
            return [self.shown(each, name) for each in value]
        if name == "producer_id":
            return self.named(value)
        if name in _TIMES:
            return value > 0
        if isinstance(value, str):
            value = value.replace(self.topic, "T")
        return value not in ("", -1) if name in _PLACES else value

    async def fields(self, broker_id: int, message: Any, version: int) -> Any:
        """Ask, say every field of the answer by its name, and return the answer."""
        answer = await self.ask(broker_id, message, version)
        name = type(message).__name__.removesuffix("Request")
        self.say(f"{name} v{version}: {self.shown(answer.to_dict())}")
        return answer

    # --- the cluster ---

    async def found(self, key: str, key_type: int) -> int:
        """Return the broker that coordinates a key, once it answers for it."""
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        found: list[int] = []

        async def answers() -> bool:
            try:
                answer = (await self.ask(self.known, request, 4)).coordinators[0]
                found.append(answer.node_id)
                return answer.error_code == 0 and await self._answers(answer.node_id, key, key_type)
            except PeerError:
                return False

        await until(answers)
        return found[-1]

    async def _answers(self, broker_id: int, key: str, key_type: int) -> bool:
        if key_type == TRANSACTION:
            answer = await self.ask(broker_id, m.DescribeTransactionsRequest(transactional_ids=[key]), 0)
            return answer.transaction_states[0].error_code not in LOADING
        answer = await self.ask(broker_id, m.HeartbeatRequest(group_id=key), 0)
        return answer.error_code not in LOADING

    async def create(self, topic: str, *, near: int, far: int) -> None:
        """Create a topic at these brokers, and wait for its leaders."""
        self.leaders = (near, near, far)
        creatable = m.CreateTopicsRequest.CreatableTopic
        placed = creatable.CreatableReplicaAssignment
        assignments = [
            placed(partition_index=number, broker_ids=[broker_id]) for number, broker_id in enumerate(self.leaders)
        ]
        configs = [creatable.CreatableTopicConfig(name=name, value=value) for name, value in ONE_SEGMENT.items()]
        wanted = creatable(
            name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=configs
        )
        request = m.CreateTopicsRequest(topics=[wanted], timeout_ms=5000, validate_only=False)
        controller = (await self.ask(self.coordinator, m.MetadataRequest(topics=[]), 8)).controller_id
        await self.ask(controller, request, 4)
        await self.until_led(topic)

    async def until_led(self, topic: str | None = None) -> None:
        """Wait until every partition of a topic has a leader."""
        await until(lambda: self._is_led(topic or self.topic))

    async def _is_led(self, topic: str) -> bool:
        for number in range(FAR + 1):
            answer = (await self.fetch(number, 0, topic=topic)).responses[0].partitions[0]
            known = await self.ask(self.coordinator, m.MetadataRequest(topics=[topic_named(topic)]), 8)
            if answer.error_code or known.topics[0].error_code:
                return False
        return True

    def leader(self, partition: int) -> int:
        """Return the broker that leads a partition of the topic."""
        return self.leaders[partition] if partition < len(self.leaders) else self.leaders[NEAR]

    async def fetch(
        self,
        partition: int,
        offset: int,
        *,
        committed: bool = False,
        topic: str | None = None,
        max_bytes: int = MAX_BYTES,
        at: int | None = None,
        max_wait_ms: int = 0,
    ) -> Any:
        """Return what a leader, or the broker `at`, serves a consumer of a partition."""
        of_topic = m.FetchRequest.FetchTopic
        wanted = of_topic.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = m.FetchRequest(
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1 if max_wait_ms else 0,
            max_bytes=max_bytes,
            isolation_level=int(committed),
            session_epoch=-1,
            topics=[of_topic(topic=topic or self.topic, partitions=[wanted])],
        )
        return await self.ask(self.leader(partition) if at is None else at, request, 11)


def topic_named(name: str) -> Any:
    """Return how a Metadata request names a topic."""
    return m.MetadataRequest.MetadataRequestTopic(name=name)
