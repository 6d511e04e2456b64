"""A group's committed offsets: committing them, and reading them back."""

import asyncio
from collections.abc import Callable, Mapping

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import OffsetCommitRequest, OffsetFetchRequest
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.steps import RETRY_S
from harness.simulation.clients.coordinator import Coordinator
from harness.simulation.clients.metadata import now_s
from harness.simulation.clients.refusals import Refused
from harness.store.recording import Identity
from harness.values import TopicPartition

COMMIT_DEADLINE_S = 5.0
OFFSET_COMMIT_VERSION, OFFSET_FETCH_VERSION, STABLE_OFFSET_FETCH_VERSION = 7, 5, 7
NO_MEMBER = Identity()
_AGAIN_SOON = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class GroupOffsets:
    """The offsets of one group."""

    def __init__(self, group: str, coordinator: Coordinator, *, stable: bool = False) -> None:
        """Take the group; `stable` waits for transactions that may commit an offset (KIP-447)."""
        self._group = group
        self._stable = stable
        self._coordinator = coordinator

    async def commit(
        self,
        positions: Mapping[TopicPartition, int],
        decided: Callable[[TopicPartition, int, str], None],
        identity: Identity = NO_MEMBER,
    ) -> None:
        """Send a commit until it is decided or the time is up; `decided` gets the error code of each partition.

        A member commits under its identity at the time of the call, even if that changes meanwhile.
        """
        deadline_s = now_s() + COMMIT_DEADLINE_S
        left = dict(positions)
        while left:
            try:
                errors = await self._send_commit(left, identity)
            except (PeerError, Refused) as error:
                code = error.code if isinstance(error, Refused) else ErrorCode.NETWORK_EXCEPTION
                errors = dict.fromkeys(left, code)
            for partition, code in errors.items():
                if code not in _AGAIN_SOON or now_s() >= deadline_s:
                    del left[partition]
                    decided(partition, code, "" if code == ErrorCode.NONE else described(code))
            if left:
                self._coordinator.forget()
                await asyncio.sleep(RETRY_S)

    async def committed(self, partition: TopicPartition) -> int:
        """Return the committed offset of a partition, negative for none; raises PeerError or Refused."""
        topic, number = partition
        of_topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[number])
        request = OffsetFetchRequest(group_id=self._group, topics=[of_topic], require_stable=self._stable)
        version = STABLE_OFFSET_FETCH_VERSION if self._stable else OFFSET_FETCH_VERSION
        answer = await self._coordinator.ask(request, version)
        committed = _partition_of(answer)
        code = answer.error_code or committed.error_code
        if code != ErrorCode.NONE:
            raise Refused(code)
        offset: int = committed.committed_offset
        return offset

    async def _send_commit(self, left: Mapping[TopicPartition, int], identity: Identity) -> dict[TopicPartition, int]:
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        topics = [
            of_topic(
                name=topic,
                partitions=[
                    of_topic.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                ],
            )
            for (topic, partition), offset in left.items()
        ]
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member,
            group_instance_id=identity.instance or None,
            topics=topics,
        )
        answer = await self._coordinator.ask(request, OFFSET_COMMIT_VERSION)
        return {
            (topic.name, partition.partition_index): partition.error_code
            for topic in answer.topics
            for partition in topic.partitions
        }


def _partition_of(answer: Message) -> Message:
    if not answer.topics:
        raise Refused(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
    return answer.topics[0].partitions[0]
