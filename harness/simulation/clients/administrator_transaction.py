"""The transaction of an administrator: records for its topics and offsets of its groups, and other requests between.

After any error the next transaction begins with InitProducerId, which aborts what is open (KIP-98).
"""

from collections.abc import Awaitable, Callable

from harness.broker.log.batch import Numbering, build_batch
from harness.broker.log.markers import TRANSACTIONAL
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ProduceRequest
from harness.broker.wire.transport import PeerError
from harness.client_rules.administering import Request
from harness.client_rules.steps import Failure
from harness.simulation.clients.metadata import METADATA_VERSION, ClusterClient, metadata_request
from harness.simulation.clients.offsets import NO_MEMBER
from harness.simulation.clients.producer import PRODUCE_VERSION
from harness.simulation.clients.refusals import Refused
from harness.simulation.clients.transactional_requests import NEW, TransactionalRequests, TransactionError
from harness.simulation.evidence import wall_ms
from harness.values import ACKS_ALL, NO_BROKER, TopicPartition

TRANSACTION_TIMEOUT_MS = 5000
ABORTED_SHARE = 0.3


class AdministratorTransaction:
    """One at a time; each method raises PeerError or Refused."""

    def __init__(self, transactional_id: str, client: ClusterClient) -> None:
        self._client = client
        self._id = transactional_id
        self._requests = TransactionalRequests(
            transactional_id, client, timeout_ms=TRANSACTION_TIMEOUT_MS, patience_s=client.timeout_s
        )
        self._is_ready = False
        self._sequences: dict[TopicPartition, int] = {}

    async def write(self, request: Request) -> None:
        """Add a partition, and write a record there."""
        key = (request.topic, request.partition)

        async def written() -> None:
            await self._requests.add_partition(key)
            await self._produce(key)

        await self._tried(written)

    async def send_offsets(self, request: Request) -> None:
        """Add a group, and commit an offset of it as a client that is no member."""

        async def sent() -> None:
            await self._requests.add_offsets(request.group)
            positions = {(request.topic, request.partition): request.offset}
            await self._requests.commit_offsets(request.group, positions, NO_MEMBER)

        await self._tried(sent)

    async def end(self, request: Request) -> None:
        """Commit, or abort."""

        async def ended() -> None:
            await self._requests.end(commit=request.lucky >= ABORTED_SHARE)

        await self._tried(ended)

    async def _tried(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            if not self._is_ready:
                self._requests.producer = NEW
                await self._requests.init_producer_id()
                self._is_ready = True
                self._sequences.clear()
            await act()
        except TransactionError as error:
            self._is_ready = False
            if error.failure is Failure.RETRIABLE and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise PeerError(str(error)) from error
            raise Refused(error.code) from error
        except (PeerError, Refused):
            self._is_ready = False
            raise

    async def _produce(self, key: TopicPartition) -> None:
        topic, number = key
        sequence, producer = self._sequences.get(key, 0), self._requests.producer
        record = Record(key=self._id.encode(), value=str(sequence).encode(), timestamp_ms=wall_ms())
        numbering = Numbering(producer.producer_id, producer.epoch, sequence)
        data = ProduceRequest.TopicProduceData
        partition = data.PartitionProduceData(
            index=number, records=build_batch([record], attributes=TRANSACTIONAL, numbering=numbering)
        )
        request = ProduceRequest(
            transactional_id=self._id,
            acks=ACKS_ALL,
            timeout_ms=int(self._client.timeout_s * 1000),
            topic_data=[data(name=topic, partition_data=[partition])],
        )
        answer = await self._client.ask(await self._leader(key), request, PRODUCE_VERSION)
        code = answer.responses[0].partition_responses[0].error_code
        if code != ErrorCode.NONE:
            raise Refused(code)
        self._sequences[key] = sequence + 1

    async def _leader(self, key: TopicPartition) -> int:
        """Return a partition's leader; raises PeerError or Refused while it has none."""
        topic, number = key
        brokers = self._client.broker_ids
        if not brokers:
            raise PeerError("no broker is known")
        asked = brokers[len(self._sequences) % len(brokers)]
        answer = await self._client.ask(asked, metadata_request([topic]), METADATA_VERSION)
        partitions = {each.partition_index: each for each in answer.topics[0].partitions}
        if number not in partitions or partitions[number].leader_id == NO_BROKER:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        leader: int = partitions[number].leader_id
        return leader
