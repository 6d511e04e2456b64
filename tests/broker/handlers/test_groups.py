from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from harness.broker.coordinator.store import GroupStore
from harness.broker.coordinator.transactional import TransactionalCommits
from harness.broker.handlers.groups import GroupHandlers
from harness.broker.log.verification import Verification
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse
from tests.broker.coordinator.coordinators import coordinator_on

Context = Callable[..., RequestContext]
BOTH = ("PLAINTEXT", "REPL")


@dataclass
class Acknowledged:
    error: ErrorCode
    base_offset: int


@dataclass
class EagerTopic:
    """Acknowledges every append at once."""

    end: int = 0

    def log(self, partition: int) -> None:
        return None

    def high_watermark(self, partition: int) -> int:
        return self.end

    async def append(
        self,
        partition: int,
        records: bytes,
        *,
        client: str,
        correlation_id: int,
        timeout_s: float | None = None,
        verification: Verification | None = None,
    ) -> Acknowledged:
        self.end += 1
        return Acknowledged(ErrorCode.NONE, self.end - 1)


@pytest.fixture
def handlers(tell: Callable[..., None]) -> GroupHandlers:
    metadata, store = MetadataCache(), GroupStore(partitions=1)
    tell(metadata, {1: BOTH}, {"t": {0: (1, [1]), 1: (1, [1])}})
    store.begin_load(0, 1)
    store.finish_load(0, 1, [])
    coordinator = coordinator_on(EagerTopic(), store, max_metadata_bytes=4096)
    verifier: Any = None
    transactional = TransactionalCommits(
        store=store,
        topic=coordinator.topic,
        members=coordinator.members,
        verifier=verifier,
        state_log=coordinator.state_log,
        wall_ms=coordinator.wall_ms,
        max_metadata_bytes=4096,
    )
    return GroupHandlers(coordinator, transactional, metadata)


def commits(topic: str, **offsets: Any) -> OffsetCommitRequest:
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = of_topic.OffsetCommitRequestPartition
    values = {"committed_leader_epoch": -1, "committed_metadata": None} | offsets
    return OffsetCommitRequest(
        group_id="g", topics=[of_topic(name=topic, partitions=[of_partition(partition_index=0, **values)])]
    )


def fetches(topics: dict[str, list[int]] | None) -> OffsetFetchRequest:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic
    topics_of_request = (
        None if topics is None else [topic(name=name, partition_indexes=p) for name, p in topics.items()]
    )
    return OffsetFetchRequest(group_id="g", topics=topics_of_request)


def positions_in(
    response: OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup,
) -> dict[tuple[str, int], tuple[int, int, str | None, int]]:
    return {
        (topic.name, p.partition_index): (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for topic in response.topics
        for p in topic.partitions
    }


async def test_what_was_committed_is_fetched(handlers: GroupHandlers, context: Context) -> None:
    answer = await handlers.commit(
        commits("t", committed_offset=7, committed_leader_epoch=2, committed_metadata="m"), context(7)
    )
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    answer.encode(version=7)
    response = await handlers.fetch(fetches({"t": [0, 1]}), context(5))
    assert positions_in(response) == {("t", 0): (7, 2, "m", 0), ("t", 1): (-1, -1, "", 0)}
    response.encode(version=5)


async def test_an_old_client_commits_no_leader_epoch_and_null_metadata(
    handlers: GroupHandlers, context: Context
) -> None:
    sent = commits("t", committed_offset=7, committed_leader_epoch=9).encode(version=2)
    await handlers.commit(OffsetCommitRequest.decode(sent, version=2), context(2))
    assert positions_in(await handlers.fetch(fetches({"t": [0]}), context(5))) == {("t", 0): (7, -1, "", 0)}


async def test_a_partition_that_is_not_known_is_refused_alone(handlers: GroupHandlers, context: Context) -> None:
    request = commits("t", committed_offset=7)
    request.topics += commits("u", committed_offset=8).topics
    answer = await handlers.commit(request, context(7))
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_no_topics_mean_all_that_the_group_committed(handlers: GroupHandlers, context: Context) -> None:
    await handlers.commit(commits("t", committed_offset=7), context(7))
    assert positions_in(await handlers.fetch(fetches(None), context(2))) == {("t", 0): (7, -1, "", 0)}
    assert positions_in(await handlers.fetch(fetches({}), context(2))) == {}


async def test_several_groups_are_asked_for_at_once_each_with_its_own_answer(
    handlers: GroupHandlers, context: Context
) -> None:
    await handlers.commit(commits("t", committed_offset=7, committed_leader_epoch=2), context(9))
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    named = [group.OffsetFetchRequestTopics(name="t", partition_indexes=[1, 0])]
    request = OffsetFetchRequest(groups=[group(group_id="g", topics=named), group(group_id="g", topics=None)])
    response = await handlers.fetch(OffsetFetchRequest.decode(request.encode(version=9), version=9), context(9))
    response = OffsetFetchResponse.decode(response.encode(version=9), version=9)
    assert [(each.group_id, each.error_code, positions_in(each)) for each in response.groups] == [
        ("g", 0, {("t", 1): (-1, -1, "", 0), ("t", 0): (7, 2, "", 0)}),
        ("g", 0, {("t", 0): (7, 2, "", 0)}),
    ]
    handlers.coordinator.store.unload(0, 2)
    response = await handlers.fetch(request, context(8))
    assert [(each.error_code, positions_in(each)) for each in response.groups] == 2 * [(ErrorCode.NOT_COORDINATOR, {})]


@pytest.mark.parametrize(
    ("version", "top_level", "partitions"),
    [
        pytest.param(2, ErrorCode.NOT_COORDINATOR, {}, id="one error for all"),
        pytest.param(1, ErrorCode.NONE, {("t", 0): (-1, -1, "", ErrorCode.NOT_COORDINATOR)}, id="one each, before"),
    ],
)
async def test_another_brokers_group_is_refused(
    handlers: GroupHandlers,
    context: Context,
    version: int,
    top_level: ErrorCode,
    partitions: dict[tuple[str, int], tuple[int, int, str | None, int]],
) -> None:
    handlers.coordinator.store.unload(0, 2)
    response = await handlers.fetch(fetches({"t": [0]}), context(version))
    assert positions_in(response) == partitions
    assert response.error_code == top_level or version == 1
    response.encode(version=version)
