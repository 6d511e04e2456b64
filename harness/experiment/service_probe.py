"""Sends a cluster each kind of request that clients need, once: produce a record, fetch it, commit an offset.

It speaks the protocol itself: a client library would retry, and hide the answers. The requests to all partitions of
one leader go out together, so that many that hang cost no more time than one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from operator import itemgetter

from harness.client_rules.outcomes import commit_outcome, send_outcome
from harness.kafka.apis import DESCRIBE_LOG_DIRS, FETCH, FIND_COORDINATOR, METADATA, OFFSET_COMMIT, PRODUCE
from harness.kafka.client import Connection, Network, NoAnswer
from harness.kafka.codec import Api, Values
from harness.kafka.errors import NETWORK_EXCEPTION, NO_ERROR, described
from harness.kafka.placement import partition_of
from harness.kafka.records import BATCHES_SINCE, batch_of, last_offsets, message_of
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import ACKS_ALL, PROBE_PROCESS, TopicPartition

PROCESS = PROBE_PROCESS
"""Its name among the clients: it records its writes as they do."""
LATEST = {
    PRODUCE.key: 8,
    FETCH.key: 11,
    METADATA.key: 8,
    OFFSET_COMMIT.key: 7,
    FIND_COORDINATOR.key: 2,
    DESCRIBE_LOG_DIRS.key: 1,
}
"""Version of each API, where the broker knows it."""
REQUEST_TIMEOUT_S = 5.0
PRODUCE_TIMEOUT_S = 3.0
"""After this a leader answers that the ISR has not replicated the record."""
FETCH_MAX_WAIT_MS, FETCH_MAX_BYTES = 500, 1 << 20
CONSUMER = NO_EPOCH = -1
Address = tuple[str, int]
Problems = dict[TopicPartition, str]
"""The problem of each partition, empty for none."""


class ServiceProbe:
    """The harness's own client of one cluster."""

    def __init__(
        self,
        network: Network,
        bootstrap: Iterable[Address],
        recorder: Recorder,
        wall_ms: Callable[[], int],
        groups: str = PROCESS,
        *,
        negotiates: bool = True,
    ) -> None:
        """`groups` is the prefix of its groups; without `negotiates`, API versions are not requested."""
        self.offsets: dict[TopicPartition, int] = {}
        """Of each partition's acknowledged record."""
        self._network = network
        self._negotiates = negotiates
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

        Together the groups commit an offset in every partition; returns the problem of each.
        """
        shares = {number: partitions[number::of] or partitions[number % len(partitions) :][:1] for number in groups}
        problems = await asyncio.gather(
            *(self._commit(_group_in(self._groups, number, of), shares[number]) for number in groups)
        )
        return dict(zip(groups, problems, strict=True))

    async def offline(self, broker_id: int) -> bool:
        """Return whether a broker says that a log directory of its own is offline."""
        try:
            answer = await self._ask(self._addresses[broker_id], DESCRIBE_LOG_DIRS, {"topics": None})
        except (NoAnswer, KeyError):
            return False
        return any(each["error_code"] != NO_ERROR for each in answer["results"])

    def close(self) -> None:
        """Drop every connection."""
        for connection in self._connections.values():
            connection.close()

    # --- leaders ---

    async def _of_leaders(
        self,
        partitions: Sequence[TopicPartition],
        ask: Callable[[int, Sequence[TopicPartition]], Awaitable[Problems]],
    ) -> Problems:
        """Send requests to the leaders of partitions, all at once."""
        if not partitions:
            return {}
        try:
            await self._learn(partitions)
        except NoAnswer as error:
            return dict.fromkeys(partitions, str(error))
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for key in partitions:
            by_leader[self._leaders.get(key, -1)].append(key)
        problems: Problems = dict.fromkeys(by_leader.pop(-1, ()), "no broker knows its leader")
        for answer in await asyncio.gather(*(ask(leader, keys) for leader, keys in sorted(by_leader.items()))):
            problems |= answer
        return problems

    async def _learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask a broker, another one each time, for the leaders; raises NoAnswer."""
        names = sorted({name for name, _ in partitions})
        request = {
            "topics": [{"name": name} for name in names],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
        answer = await self._ask(self._any(), METADATA, request)
        self._addresses = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
        self._leaders = {
            (topic["name"], partition["partition_index"]): partition["leader_id"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
            if partition["leader_id"] in self._addresses
        }

    def _any(self) -> Address:
        return self._bootstrap[next(self._tries) % len(self._bootstrap)]

    async def _ask(self, address: Address, api: Api, request: Values) -> Values:
        connection = await self._connected(address)
        return await connection.request(api, request, LATEST[api.key], timeout_s=REQUEST_TIMEOUT_S)

    async def _connected(self, address: Address) -> Connection:
        async with self._connecting[address]:  # of two concurrent callers, one connects
            connection = self._connections.get(address)
            if connection is None or connection.closed:
                if connection is not None:
                    connection.close()  # its broker may have closed it
                stream = await self._network.connect(*address, timeout_s=REQUEST_TIMEOUT_S)
                connection = Connection(stream, f"{address[0]}:{address[1]}", PROCESS)
                if self._negotiates:
                    await connection.negotiate(timeout_s=REQUEST_TIMEOUT_S)
                self._connections[address] = connection
        return connection

    # --- what is asked ---

    async def _produce(self, leader: int, keys: Sequence[TopicPartition]) -> Problems:
        sends, now_ms = {key: self._invoked(key) for key in keys}, self._wall_ms()
        try:
            connection = await self._connected(self._addresses[leader])
            version = connection.version_of(PRODUCE, LATEST[PRODUCE.key])
            record_of = batch_of if version >= BATCHES_SINCE else message_of
            request = {
                "transactional_id": None,
                "acks": ACKS_ALL,
                "timeout_ms": int(PRODUCE_TIMEOUT_S * 1000),
                "topics": _topics(keys, lambda key: {"records": record_of(*_record(sends[key]), now_ms)}),
            }
            answer = await connection.request(PRODUCE, request, version, timeout_s=REQUEST_TIMEOUT_S)
        except NoAnswer as error:
            for invoked in sends.values():
                self._recorder.end(invoked, OpType.INFO, error=str(error))
            return dict.fromkeys(keys, str(error))
        problems = dict.fromkeys(keys, "the answer says nothing of it")
        for key, partition in _by_partition(answer):
            problems[key] = self._sent(key, sends[key], partition)
        return problems

    def _invoked(self, key: TopicPartition) -> Operation:
        topic, partition = key
        value = f"{PROCESS}-{next(self._values)}"
        return self._recorder.invoke(
            OpKind.SEND, topic=topic, partition=partition, key=PROCESS, value=value, acks=ACKS_ALL
        )

    def _sent(self, key: TopicPartition, invoked: Operation, answer: Values) -> str:
        if answer["error_code"] != NO_ERROR:
            error = described(answer["error_code"])
            self._recorder.end(invoked, send_outcome(answer["error_code"], tried_once=True), error=error)
            return error
        self._recorder.end(invoked, OpType.OK, offset=answer["base_offset"])
        self.offsets[key] = answer["base_offset"]
        return ""

    async def _fetch(self, leader: int, keys: Sequence[TopicPartition]) -> Problems:
        request = {
            "replica_id": CONSUMER,
            "max_wait_ms": FETCH_MAX_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": FETCH_MAX_BYTES,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": _topics(keys, self._position),
            "forgotten_topics": [],
            "rack_id": "",
        }
        try:
            answer = await self._ask(self._addresses[leader], FETCH, request)
        except NoAnswer as error:
            return dict.fromkeys(keys, str(error))
        served = dict(_by_partition(answer))
        return {key: self._served(key, served.get(key)) for key in keys}

    def _position(self, key: TopicPartition) -> Values:
        return {
            "current_leader_epoch": NO_EPOCH,
            "fetch_offset": self.offsets[key],
            "log_start_offset": -1,
            "partition_max_bytes": FETCH_MAX_BYTES,
        }

    def _served(self, key: TopicPartition, answer: Values | None) -> str:
        if answer is None:
            return "the answer says nothing of it"
        if answer["error_code"] != NO_ERROR:
            return described(answer["error_code"])
        offset = self.offsets[key]
        if any(last >= offset for last in last_offsets(answer["records"] or b"")):
            return ""
        return (
            f"the acknowledged record at offset {offset} is not served, "
            f"the high watermark is {answer['high_watermark']}"
        )

    async def _commit(self, group: str, partitions: Sequence[TopicPartition]) -> str:
        positions = {key: self.offsets.get(key, -1) + 1 for key in partitions}
        try:
            coordinator = await self._ask(self._any(), FIND_COORDINATOR, {"key": group, "key_type": 0})
            if coordinator["error_code"] != NO_ERROR:
                return described(coordinator["error_code"])
            return await self._commit_at((coordinator["host"], coordinator["port"]), group, positions)
        except NoAnswer as error:
            return str(error)

    async def _commit_at(self, address: Address, group: str, positions: Mapping[TopicPartition, int]) -> str:
        commits = {
            (topic, partition): self._recorder.invoke(
                OpKind.COMMIT, topic=topic, partition=partition, offset=offset, group=group
            )
            for (topic, partition), offset in positions.items()
        }
        request = {
            "group_id": group,
            "generation_id": -1,
            "member_id": "",
            "group_instance_id": None,
            "retention_time_ms": -1,
            "topics": _topics(
                positions,
                lambda key: {
                    "committed_offset": positions[key],
                    "committed_leader_epoch": NO_EPOCH,
                    "committed_metadata": "",
                },
            ),
        }
        codes: dict[TopicPartition, int] = {}
        try:
            answer = await self._ask(address, OFFSET_COMMIT, request)
            codes = {key: each["error_code"] for key, each in _by_partition(answer)}
        finally:
            for key, invoked in commits.items():
                code = codes.get(key, NETWORK_EXCEPTION)
                error = "" if code == NO_ERROR else described(code)
                self._recorder.end(invoked, commit_outcome(code), error=error)
        return next((described(code) for code in codes.values() if code != NO_ERROR), "")


def _record(send: Operation) -> tuple[bytes, bytes]:
    """Return the key and the value of a probe's record."""
    return send.key.encode(), send.value.encode()


def _topics(keys: Iterable[TopicPartition], fields: Callable[[TopicPartition], Values]) -> list[Values]:
    """Return some partitions in the form of a request, each with these fields."""
    return [
        {"name": topic, "partitions": [{"partition_index": key[1], **fields(key)} for key in group]}
        for topic, group in groupby(sorted(keys), key=itemgetter(0))
    ]


def _by_partition(answer: Values) -> Iterator[tuple[TopicPartition, Values]]:
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            yield (topic["name"], partition["partition_index"]), partition


def _group_in(groups: str, number: int, of: int) -> str:
    """Return the first name of a group whose offsets are in this partition of `__consumer_offsets`."""
    return next(name for name in (f"{groups}-{tried}" for tried in count()) if partition_of(name, of) == number)
