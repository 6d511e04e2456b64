"""A client that asks for offsets of every partition all the time, and deletes records now and then."""

import asyncio
from collections.abc import Iterable

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import DeleteRecordsRequest
from harness.broker.wire.sentinels import EARLIEST, LATEST
from harness.broker.wire.transport import PeerError
from harness.client_rules import listing
from harness.client_rules.listing import Inquiry, Listing
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.fetching import list_offset
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.clients.refusals import Refused
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryTransport
from harness.store.recording import Recorder

DELETE_RECORDS_VERSION = 1
_SENTINELS = {listing.LATEST: LATEST, listing.EARLIEST: EARLIEST}


class SimulatedLister:
    """One process."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self._rules = Listing(plan, recorder, wall_ms)
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
                self._rules.answered(inquiry, await self._answer(inquiry))
            except Refused as error:
                self._client.refresh_soon()
                self._rules.refused(inquiry, described(error.code))
            except PeerError as error:
                self._client.refresh_soon()
                self._rules.refused(inquiry, str(error))
            await asyncio.sleep(self._rules.interval_s)
        self._client.close()

    async def _answer(self, inquiry: Inquiry) -> int:
        """Return the offset that the leader answers with; raises PeerError or Refused."""
        leader = self._client.leaders.get(inquiry.partition)
        if leader is None:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        if inquiry.deletes:
            return await self._delete(leader.broker_id, inquiry)
        timestamp = _SENTINELS.get(inquiry.invoked.mode, inquiry.timestamp_ms)
        return await list_offset(self._client, leader.broker_id, inquiry.partition, timestamp)

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
