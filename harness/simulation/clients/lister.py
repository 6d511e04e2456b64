"""A client that asks for offsets of every partition all the time; now and then it reads from one on, or deletes."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable

from harness.broker.log.batch import iter_batches, parse_records
from harness.broker.replicas.fetcher_messages import FETCH_VERSION, Limits, PartitionRequest, fetch_request
from harness.broker.replicas.fetcher_session import FetcherSession
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import DeleteRecordsRequest
from harness.broker.wire.sentinels import CONSUMER, EARLIEST, LATEST
from harness.broker.wire.transport import PeerError
from harness.client_rules import listing
from harness.client_rules.listing import LEADER, REPLICA, Inquiry, Listing
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.fetching import list_offset
from harness.simulation.clients.metadata import ClusterClient, Leader
from harness.simulation.clients.refusals import Refused
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryTransport
from harness.store.recording import Recorder
from harness.values import value_id

DELETE_RECORDS_VERSION = 1
MAX_WAIT_MS = 100
"""At the end of a log an answer waits this long for records."""
_SENTINELS = {listing.LATEST: LATEST, listing.EARLIEST: EARLIEST}


class SimulatedLister:
    """One process."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self._rules = Listing(plan, recorder, wall_ms, (LEADER, REPLICA))
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._sessions: defaultdict[int, FetcherSession] = defaultdict(FetcherSession)
        """With each broker (KIP-227)."""
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=plan.parameters["request_timeout_ms"] / 1000,
            changed=lambda: None,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Ask one question after the other until `stop` is set."""
        while not stop.is_set():
            inquiry = self._rules.next()
            try:
                await self._ask(inquiry)
            except Refused as error:
                self._client.refresh_soon()
                self._rules.refused(inquiry, described(error.code))
            except PeerError as error:
                self._client.refresh_soon()
                self._rules.refused(inquiry, str(error))
            await asyncio.sleep(self._rules.interval_s)
        self._client.close()

    async def _ask(self, inquiry: Inquiry) -> None:
        """Let the rules record a broker's answer; raises PeerError or Refused."""
        leader = self._client.leaders.get(inquiry.partition)
        if leader is None:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        if inquiry.reads:
            self._rules.read(inquiry, await self._read(leader, inquiry))
        elif inquiry.deletes:
            self._rules.answered(inquiry, await self._delete(leader.broker_id, inquiry))
        else:
            timestamp = _SENTINELS.get(inquiry.invoked.mode, inquiry.timestamp_ms)
            offset = await list_offset(self._client, leader.broker_id, inquiry.partition, timestamp)
            self._rules.answered(inquiry, offset)

    async def _read(self, leader: Leader, inquiry: Inquiry) -> list[tuple[int, str]]:
        """Return the offsets and value ids of the records that a broker answers with."""
        replicas = [leader.broker_id] if inquiry.invoked.mode == LEADER else self._client.broker_ids
        if not replicas:
            raise Refused(ErrorCode.REPLICA_NOT_AVAILABLE)  # metadata in which no broker lives
        broker_id = self._rng.choice(replicas)
        session, offset = self._sessions[broker_id], inquiry.invoked.offset
        limits = Limits(MAX_WAIT_MS, 1, inquiry.max_bytes, inquiry.max_bytes)
        wanted = [PartitionRequest(inquiry.partition, leader.leader_epoch, offset)]
        try:
            answer = await self._client.ask(
                broker_id, fetch_request(CONSUMER, limits, session.next(wanted)), FETCH_VERSION
            )
        except PeerError:
            session.lost()
            raise
        if answer.error_code != ErrorCode.NONE:
            session.refused(answer.error_code)
            raise Refused(answer.error_code)
        answered = {
            (topic.topic, partition.partition_index): partition
            for topic in answer.responses
            for partition in topic.partitions
        }
        if not session.answered(answer.session_id, answered.keys()):
            raise PeerError(f"broker {broker_id} answers for other partitions than those of the session")
        result = answered.get(inquiry.partition)  # a session leaves out what is not new
        if result is None:
            return []
        if result.error_code != ErrorCode.NONE:
            raise Refused(result.error_code)
        batches = [batch for header, batch in iter_batches(bytes(result.records or b"")) if not header.is_control]
        records = [record for batch in batches for record in parse_records(batch) if record.offset >= offset]
        return [(record.offset, value_id(record.value, record.headers)) for record in records]

    async def _delete(self, broker_id: int, inquiry: Inquiry) -> int:
        of_topic = DeleteRecordsRequest.DeleteRecordsTopic
        topic, number = inquiry.partition
        partition = of_topic.DeleteRecordsPartition(partition_index=number, offset=inquiry.invoked.offset)
        request = DeleteRecordsRequest(
            topics=[of_topic(name=topic, partitions=[partition])], timeout_ms=int(self._client.timeout_s * 1000)
        )
        answer = await self._client.ask(broker_id, request, DELETE_RECORDS_VERSION)
        result = answer.topics[0].partitions[0]
        if result.error_code != ErrorCode.NONE:
            raise Refused(result.error_code)
        begins: int = result.low_watermark
        return begins
