"""Transactions of a client against whole brokers: the coordinator, the logs and the group's offsets together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.broker.coordinator.placement import partition_of
from harness.broker.log.batch import Numbering, build_batch, iter_batches, parse_records
from harness.broker.log.records import Record
from harness.broker.wire import messages as m
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.znodes import decode_config
from harness.events import TransactionStateChange
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.broker.whole_cluster import WholeCluster

T, G, ID = "t", "g", "tx"
NONE = ErrorCode.NONE
TRANSACTIONAL = 0x10
SMALL = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.max.timeout.ms": "60000",
    "offsets.topic.replication.factor": "2",
}


class Client:
    """A transactional producer that asks whatever it is told to ask."""

    def __init__(self, cluster: WholeCluster) -> None:
        self.cluster = cluster
        self.coordinator = -1
        self.producer_id, self.epoch, self.sequence = -1, -1, 0

    async def find(self, key: str = ID, key_type: int = 1, by: int = 1) -> int:
        """Return the coordinator of a key, once it is known and has loaded."""

        async def known() -> bool:
            answer = await self.cluster.ask(by, m.FindCoordinatorRequest(key=key, key_type=key_type), 2)
            self.coordinator = answer.node_id
            return bool(answer.error_code == NONE) and self.coordinator in self.cluster.brokers

        await self.cluster.until(known, "a coordinator")
        return self.coordinator

    async def init(self, timeout_ms: int = 10_000, version: int = 4, **named: int) -> int:
        known = {"producer_id": -1, "producer_epoch": -1} | named
        request = m.InitProducerIdRequest(
            transactional_id=ID,
            transaction_timeout_ms=timeout_ms,
            producer_id=known["producer_id"],
            producer_epoch=known["producer_epoch"],
        )
        answer = await self.cluster.ask(self.coordinator, request, version)
        if answer.error_code == NONE:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return int(answer.error_code)

    async def begin_session(self) -> None:
        await self.find()

        async def begun() -> bool:
            return await self.init() == NONE

        await self.cluster.until(begun, "a session")

    async def add(self, *partitions: int, version: int = 3, topic: str = T) -> list[int]:
        of_topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[of_topic(name=topic, partitions=list(partitions))],
        )
        answer = await self.cluster.ask(self.coordinator, request, version)
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        return [each.partition_error_code for each in results]

    async def produce(self, value: str, *, leader: int = 1, transactional_id: str = ID, version: int = 8) -> int:
        batch = build_batch(
            [Record(value=value.encode(), timestamp_ms=1)],
            attributes=TRANSACTIONAL,
            numbering=Numbering(self.producer_id, self.epoch, self.sequence),
        )
        data = m.ProduceRequest.TopicProduceData
        partition = data.PartitionProduceData(index=0, records=batch)
        request = m.ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[data(name=T, partition_data=[partition])],
        )
        error = (await self.cluster.ask(leader, request, version)).responses[0].partition_responses[0].error_code
        self.sequence += error == NONE
        return int(error)

    async def end(self, *, commit: bool, version: int = 3) -> int:
        request = m.EndTxnRequest(
            transactional_id=ID, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        return int((await self.cluster.ask(self.coordinator, request, version)).error_code)

    async def send_offset(self, offset: int, *, generation: int = -1, member: str = "", version: int = 3) -> int:
        request = m.AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=G
        )
        answer = await self.cluster.ask(self.coordinator, request, 3)
        assert answer.error_code == NONE, answer.error_code
        groups = Client(self.cluster)
        await groups.find(G, 0)
        of_topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partition = of_topic.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        commit = m.TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=G,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=generation,
            member_id=member,
            group_instance_id=None,
            topics=[of_topic(name=T, partitions=[partition])],
        )
        answer = await self.cluster.ask(groups.coordinator, commit, version)
        return int(answer.topics[0].partitions[0].error_code)

    async def position(self, *, stable: bool) -> tuple[int, int]:
        """Return error and offset of the group's position."""
        groups = Client(self.cluster)
        await groups.find(G, 0)
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=T, partition_indexes=[0])
        request = m.OffsetFetchRequest(group_id=G, topics=[topic], require_stable=stable)
        partition = (await self.cluster.ask(groups.coordinator, request, 7)).topics[0].partitions[0]
        return partition.error_code, partition.committed_offset

    async def read(self, *, committed: bool) -> list[str]:
        """Return what a consumer reads of partition 0, as librdkafka filters it."""
        topic = m.FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = m.FetchRequest(
            max_bytes=1 << 20, isolation_level=int(committed), topics=[topic(topic=T, partitions=[partition])]
        )
        data = (await self.cluster.ask(1, request, 11)).responses[0].partitions[0]
        open_ = {each.producer_id: each.first_offset for each in data.aborted_transactions or []}
        values, aborted = [], set()
        for header, batch in iter_batches(bytes(data.records or b"")):
            if committed and header.producer_id in open_ and header.base_offset >= open_[header.producer_id]:
                aborted.add(header.producer_id)
            if header.is_control:
                aborted.discard(header.producer_id)
                continue
            if header.producer_id not in aborted:
                values += [(record.value or b"").decode() for record in parse_records(batch)]
        return values

    async def state(self) -> Any:
        request = m.DescribeTransactionsRequest(transactional_ids=[ID])
        return (await self.cluster.ask(self.coordinator, request, 0)).transaction_states[0]

    async def ended(self) -> None:
        async def complete() -> bool:
            return str((await self.state()).transaction_state).startswith("Complete")

        await self.cluster.until(complete, "the end of the transaction")


async def started(cluster: WholeCluster) -> Client:
    await cluster.start(1, 2, t=[1, 2])
    await cluster.until_led(T, 1)
    client = Client(cluster)
    await client.begin_session()
    return client


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with WholeCluster(SMALL, clocks_go=True) as cluster:
        yield await started(cluster)


async def test_read_committed_sees_what_is_committed_and_nothing_else(client: Client) -> None:
    assert await client.add(0) == [NONE]
    assert await client.produce("a") == NONE
    assert (await client.read(committed=True), await client.read(committed=False)) == ([], ["a"])
    assert await client.end(commit=True) == NONE
    await client.ended()
    await client.add(0)
    await client.produce("b")
    assert await client.end(commit=False) == NONE
    await client.ended()
    assert (await client.read(committed=True), await client.read(committed=False)) == (["a"], ["a", "b"])


async def test_the_lag_of_the_last_stable_offset_is_shown(client: Client) -> None:
    """Kafka's `LastStableOffsetLag`."""
    lags = client.cluster.brokers[1]
    await client.add(0)
    await client.produce("a")
    await client.produce("b")
    assert lags.metrics().stable_offset_lags[T, 0] == 2
    await client.end(commit=True)
    await client.ended()
    assert lags.metrics().stable_offset_lags[T, 0] == 0


async def test_offsets_of_a_transaction_count_when_it_commits(client: Client) -> None:
    await client.add(0)
    await client.produce("a")
    assert await client.send_offset(7) == NONE
    assert await client.position(stable=False) == (NONE, -1)
    assert await client.position(stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    await client.end(commit=True)
    await client.ended()
    assert await client.position(stable=True) == (NONE, 7)
    assert await client.send_offset(9) == NONE
    await client.end(commit=False)
    await client.ended()
    assert await client.position(stable=True) == (NONE, 7)


async def test_offsets_of_a_transaction_outlive_the_groups_coordinator(client: Client) -> None:
    await client.add(0)
    assert await client.send_offset(7) == NONE
    for broker_id in (1, 2):
        await client.cluster.stop(broker_id)
        await client.cluster.start(broker_id)
    await client.find()
    assert await client.position(stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)

    async def ended() -> bool:
        return await client.end(commit=True) == NONE

    await client.cluster.until(ended, "the next coordinator ends it")
    await client.ended()
    assert await client.position(stable=True) == (NONE, 7)


async def test_a_dead_coordinator_is_replaced_and_its_decision_carried_out(client: Client) -> None:
    await client.add(0)
    await client.produce("a")
    old = client.coordinator
    await client.end(commit=True)
    await client.cluster.brokers.pop(old).abandon()
    client.coordinator = 3 - old

    async def complete() -> bool:
        return bool((await client.state()).transaction_state == "CompleteCommit")

    await client.cluster.until(complete, "the next coordinator goes on", within_s=60)
    moves = [each.to_state for each in client.cluster.of(3 - old, TransactionStateChange)]
    assert moves[-1] in ("CompleteCommit", "")


async def test_a_record_outside_of_its_transaction_is_refused(client: Client) -> None:
    assert await client.produce("a") == ErrorCode.INVALID_TXN_STATE
    assert await client.produce("a", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    await client.add(0)
    assert await client.produce("a") == NONE


async def test_an_old_session_is_fenced(client: Client) -> None:
    old = Client(client.cluster)
    old.__dict__.update(client.__dict__)
    assert await client.init() == NONE
    assert await old.add(0) == [ErrorCode.PRODUCER_FENCED]
    assert await old.add(0, version=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert await old.end(commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    named = {"producer_id": old.producer_id, "producer_epoch": old.epoch - 1}
    assert await client.init(**named) == (ErrorCode.INVALID_REQUEST if old.epoch == 0 else ErrorCode.PRODUCER_FENCED)
    fenced = {"producer_id": old.producer_id + 5, "producer_epoch": 0}
    assert await client.init(**fenced) == ErrorCode.PRODUCER_FENCED
    assert await client.init(version=3, **fenced) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_transaction_that_takes_too_long_is_aborted(client: Client) -> None:
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`; the producer says how long it may take."""
    assert await client.init(timeout_ms=2_000) == NONE
    await client.add(0)
    await client.produce("a")
    await asyncio.sleep(4)
    assert (await client.state()).transaction_state == "CompleteAbort"
    assert await client.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert await client.read(committed=True) == []


async def test_a_partition_that_is_unknown_or_internal_takes_all_with_it(client: Client) -> None:
    assert await client.add(0, 9) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await client.add(0, topic=OFFSETS_TOPIC) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_what_is_open_is_described_and_listed(client: Client) -> None:
    await client.add(0)
    state = await client.state()
    assert (state.transaction_state, state.producer_id, state.transaction_timeout_ms) == (
        "Ongoing",
        client.producer_id,
        10_000,
    )
    assert [(each.topic, each.partitions) for each in state.topics] == [(T, [0])]
    other = client.producer_id + 1
    states: list[str]
    for states, ids, longer_than_ms, count in (
        ([], [], -1, 1),
        (["Ongoing", "Odd"], [], -1, 1),
        (["Empty"], [], -1, 0),
        ([], [other], -1, 0),
        ([], [], 60_000, 0),
    ):
        request = m.ListTransactionsRequest(
            state_filters=states, producer_id_filters=ids, duration_filter=longer_than_ms
        )
        answer = await client.cluster.ask(client.coordinator, request, 1)
        assert len(answer.transaction_states) == count, (states, ids, longer_than_ms)
        assert answer.unknown_state_filters == [each for each in states if each == "Odd"]


async def test_properties_of_the_topic_are_those_of_when_it_is_made() -> None:
    """`transaction.state.log.num.partitions`, `transaction.state.log.replication.factor` and what it is made with."""
    properties = SMALL | {
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.segment.bytes": "12345",
        "transaction.state.log.min.isr": "2",
    }
    async with WholeCluster(properties) as cluster:
        await cluster.start(1, 2)
        await Client(cluster).find()
        [topic] = [each for each in (await cluster.metadata(1)).topics if each.name == TRANSACTIONS_TOPIC]
        assert [len(info.replica_nodes) for info in topic.partitions] == [2, 2, 2]
        path = f"/config/topics/{TRANSACTIONS_TOPIC}"
        assert decode_config(path, cluster.zookeeper.nodes[path].data) == {
            "segment.bytes": "12345",
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
        }
        assert partition_of(ID, 3) in range(3)


async def test_transaction_max_timeout_ms(client: Client) -> None:
    assert await client.init(timeout_ms=60_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_unused_ids_expire() -> None:
    """`transactional.id.expiration.ms`, looked at `transaction.remove.expired.transaction.cleanup.interval.ms`."""
    expiring = {
        "transactional.id.expiration.ms": "2000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    async with WholeCluster(SMALL | expiring, clocks_go=True) as cluster:
        await cluster.start(1, 2)
        client = Client(cluster)
        await client.begin_session()
        assert (await client.state()).error_code == NONE
        await asyncio.sleep(4)
        assert (await client.state()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


# --- planted bugs ---


async def position_of_an_aborted_transaction(client: Client) -> Any:
    await client.send_offset(7)
    await client.end(commit=False)
    await client.ended()
    return await client.position(stable=True)


async def commit_of_a_member_that_nobody_knows(client: Client) -> Any:
    return await client.send_offset(7, generation=3, member="m")


async def position_that_may_change(client: Client) -> Any:
    await client.send_offset(7)
    return (await client.position(stable=True))[0]


@pytest.mark.parametrize(
    ("bug", "play", "right", "wrong"),
    [
        pytest.param(
            "transactional-offsets-at-once",
            position_of_an_aborted_transaction,
            (NONE, -1),
            (NONE, 7),
            id="the position of an aborted transaction",
        ),
        pytest.param(
            "transactional-commit-unfenced",
            commit_of_a_member_that_nobody_knows,
            ErrorCode.UNKNOWN_MEMBER_ID,
            NONE,
            id="a commit of an unknown member",
        ),
        pytest.param(
            "require-stable-ignored",
            position_that_may_change,
            ErrorCode.UNSTABLE_OFFSET_COMMIT,
            NONE,
            id="a position that may change",
        ),
    ],
)
async def test_a_guard_of_offsets_in_transactions(bug: str, play: Any, right: Any, wrong: Any) -> None:
    ends = []
    for bugs in ((), (bug,)):
        async with WholeCluster(SMALL, bugs, clocks_go=True) as cluster:
            ends.append(await play(await started(cluster)))
    assert ends == [right, wrong]
