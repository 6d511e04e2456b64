"""Offsets that producers commit inside transactions: held until a marker decides whether they count (KIP-447)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import CommittedOffset, OffsetKey, OffsetRecord, encode_batch
from harness.broker.coordinator.store import GroupStore
from harness.broker.coordinator.topic import COMMIT_ERRORS, CoordinatorTopic
from harness.broker.log.batch import Numbering, first_header
from harness.broker.log.verification import Verification
from harness.broker.replicas.verifying import PartitionVerifier
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET, TransactionalOffsetCommit
from harness.values import OFFSETS_TOPIC, TopicPartition, value_class

Errors = dict[TopicPartition, ErrorCode]


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionalCommit:
    """One TxnOffsetCommit for the coordinator."""

    group: str
    transactional_id: str
    producer_id: int
    producer_epoch: int
    generation: int
    """-1 of a producer without a member."""
    member: str
    instance: str | None
    offsets: dict[TopicPartition, CommittedOffset]
    client: str
    correlation_id: int
    knows_abortable: bool
    """Whether the client's version knows the error TRANSACTION_ABORTABLE."""


@dataclass(slots=True, kw_only=True)
class TransactionalCommits:
    """Stores such offsets, and decides them."""

    store: GroupStore
    topic: CoordinatorTopic
    members: GroupMembers
    verifier: PartitionVerifier
    state_log: StateLog
    wall_ms: Callable[[], int]
    max_metadata_bytes: int

    async def commit(self, request: TransactionalCommit) -> Errors:
        """Store the offsets as part of the transaction and return each outcome."""
        seq, errors = await self._commit(request)
        for (topic, partition), value in request.offsets.items():
            self.state_log.emit(
                TransactionalOffsetCommit(
                    group=request.group,
                    transactional_id=request.transactional_id,
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                    generation=request.generation,
                    member=request.member,
                    coordinator_epoch=self.store.coordinator_epoch(request.group),
                    decided_seq=seq,
                    topic=topic,
                    partition=partition,
                    offset=value.offset,
                    error=errors[topic, partition],
                )
            )
        return errors

    def decided(self, producer_id: int, partitions: Sequence[int], commits: bool) -> None:
        """A marker is committed in these partitions of `__consumer_offsets`."""
        counted = self.store.decide(producer_id, partitions, commits=commits)
        self.store.counters.committed.mark(len(counted), self.wall_ms())

    async def _commit(self, request: TransactionalCommit) -> tuple[int, Errors]:
        """Return each outcome, and the next line's number when it was decided: the group may have changed since."""
        seq, error = self.state_log.next_seq, self.members.coordinator_error(request.group)
        if error:
            return seq, dict.fromkeys(request.offsets, error)
        self.store.create_group(request.group)
        too_large = {key for key, each in request.offsets.items() if len(each.metadata) > self.max_metadata_bytes}
        accepted = [key for key in request.offsets if key not in too_large]
        seq, error = await self._store(request, accepted)
        if error and not accepted:
            return seq, dict.fromkeys(request.offsets, error)
        return seq, dict.fromkeys(accepted, error) | dict.fromkeys(too_large, ErrorCode.OFFSET_METADATA_TOO_LARGE)

    async def _store(self, request: TransactionalCommit, accepted: list[TopicPartition]) -> tuple[int, ErrorCode]:
        group, shard = request.group, partition_of(request.group, self.store.partitions)
        keys = [OffsetKey(group=group, topic=topic, partition=partition) for topic, partition in accepted]
        values = [request.offsets[each] for each in accepted]
        if not keys:
            return self.state_log.next_seq, ErrorCode.NONE
        numbering = Numbering(producer_id=request.producer_id, producer_epoch=request.producer_epoch, base_sequence=0)
        batch = encode_batch(zip(keys, values, strict=True), self.wall_ms(), numbering)
        verification = await self._verified(request, shard, batch)
        seq = self.state_log.next_seq
        if isinstance(verification, ErrorCode):
            return seq, verification
        known = self.store.group(group)
        error = self.members.coordinator_error(group)
        if error or known is None:
            return seq, error or ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = known.membership.commits_in_transaction(request.generation, request.member, request.instance)
        if error:
            return seq, error

        def records(base_offset: int) -> list[OffsetRecord]:
            return [
                OffsetRecord(
                    log_offset=NO_OFFSET if base_offset == NO_OFFSET else base_offset + index,
                    key=key,
                    value=value,
                    producer_id=request.producer_id,
                )
                for index, (key, value) in enumerate(zip(keys, values, strict=True))
            ]

        self.store.hold(shard, records(NO_OFFSET))
        result = await self.topic.append(
            shard,
            batch,
            client=request.client,
            correlation_id=request.correlation_id,
            verification=verification,
        )
        if result.error is not ErrorCode.NONE:
            self.store.let_go(group, request.producer_id, accepted)
            return seq, COMMIT_ERRORS.get(result.error, result.error)
        self.store.stored_held(shard, records(result.base_offset))
        if not self.store.rules.transactional_offsets_wait_for_the_end:
            self.store.committed(shard, records(result.base_offset))
        return seq, ErrorCode.NONE

    async def _verified(
        self, request: TransactionalCommit, shard: int, batch: bytes
    ) -> Verification | ErrorCode | None:
        """Return the verification for the append, or why the offsets may not be appended."""
        header, key = first_header(batch), (OFFSETS_TOPIC, shard)
        assert header is not None, "a batch was built"
        answer = (await self.verifier.verify(request.transactional_id, {key: header})).get(key)
        if not isinstance(answer, ErrorCode):
            return answer
        if answer is ErrorCode.NETWORK_EXCEPTION:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # clients try again without looking for the coordinator
        if answer is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if answer is ErrorCode.TRANSACTION_ABORTABLE and not request.knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return COMMIT_ERRORS.get(answer, answer)
