"""A group's committed offsets: who coordinates them now, committing them, and reading them back."""

import asyncio
from collections.abc import Mapping

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from harness.broker.wire.transport import Message, PeerError
from harness.simulation.clients.fetching import RETRY_S
from harness.simulation.clients.metadata import NOBODY, ClusterClient, Place
from harness.simulation.clients.outcomes import Refused, commit_outcome, described
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder

COMMIT_DEADLINE_S = 5.0
FIND_COORDINATOR_VERSION, OFFSET_COMMIT_VERSION, OFFSET_FETCH_VERSION = 2, 7, 5
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
    """The offsets of one group without members, over one client's connections."""

    def __init__(self, group: str, client: ClusterClient, recorder: Recorder) -> None:
        self._group = group
        self._client = client
        self._recorder = recorder
        self._coordinator = NOBODY
        self._tries = 0

    def forget_coordinator(self) -> None:
        """Look for the coordinator anew before the next request."""
        self._coordinator = NOBODY

    def invoke_commit(self, positions: Mapping[Place, int]) -> dict[Place, Operation]:
        """Record that positions are about to be committed: one operation a partition, one request for all."""
        return {
            place: self._recorder.invoke(
                OpKind.COMMIT, topic=place[0], partition=place[1], offset=offset, group=self._group
            )
            for place, offset in positions.items()
        }

    async def commit(self, invoked: Mapping[Place, Operation]) -> None:
        """Send a commit until it is decided or the time is up, and record what became of it."""
        deadline_s = _now_s() + COMMIT_DEADLINE_S
        left = dict(invoked)
        while left:
            try:
                errors = await self._send_commit(left)
            except (PeerError, Refused) as error:
                code = error.code if isinstance(error, Refused) else ErrorCode.NETWORK_EXCEPTION
                errors = dict.fromkeys(left, code)
            for place, code in errors.items():
                if code == ErrorCode.NONE:
                    self._recorder.end(left.pop(place), OpType.OK)
                elif code not in _AGAIN_SOON or _now_s() >= deadline_s:
                    self._recorder.end(left.pop(place), commit_outcome(code), error=described(code))
            if left:
                self.forget_coordinator()
                await asyncio.sleep(RETRY_S)

    async def committed(self, place: Place) -> int:
        """Return the committed offset of a partition, -1 for none; raises PeerError or Refused."""
        asked = OffsetFetchRequest.OffsetFetchRequestTopic(name=place[0], partition_indexes=[place[1]])
        request = OffsetFetchRequest(group_id=self._group, topics=[asked])
        answer = await self._client.ask(await self._find_coordinator(), request, OFFSET_FETCH_VERSION)
        told = _partition_of(answer)
        code = answer.error_code or told.error_code
        if code != ErrorCode.NONE:
            raise Refused(code)
        offset: int = max(-1, told.committed_offset)
        return offset

    async def _send_commit(self, left: Mapping[Place, Operation]) -> dict[Place, int]:
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        topics = [
            of_topic(
                name=topic,
                partitions=[
                    of_topic.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=operation.offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                ],
            )
            for (topic, partition), operation in left.items()
        ]
        request = OffsetCommitRequest(group_id=self._group, topics=topics)
        answer = await self._client.ask(await self._find_coordinator(), request, OFFSET_COMMIT_VERSION)
        return {
            (topic.name, told.partition_index): told.error_code for topic in answer.topics for told in topic.partitions
        }

    async def _find_coordinator(self) -> int:
        """Return the broker that coordinates the group, asking another one each time; raises PeerError or Refused."""
        if self._coordinator == NOBODY:
            known = self._client.broker_ids
            if not known:
                raise PeerError("no broker is known")
            self._tries += 1
            request = FindCoordinatorRequest(key=self._group, key_type=0)
            answer = await self._client.ask(known[self._tries % len(known)], request, FIND_COORDINATOR_VERSION)
            if answer.error_code != ErrorCode.NONE:
                raise Refused(answer.error_code)
            self._coordinator = answer.node_id
        return self._coordinator


def _partition_of(answer: Message) -> Message:
    if not answer.topics:
        raise Refused(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
    return answer.topics[0].partitions[0]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
