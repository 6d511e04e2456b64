"""How soon does a cluster accept writes, whoever leads? Writes to every broker at once, without a client's back-off."""

import asyncio
import threading
import time

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.wire.messages import ProduceRequest
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Connection, PeerError

_PRODUCE_VERSION = 8
_TIMEOUT_S = 2.0
_PAUSE_S = 0.01


class DirectWriter:
    """Sends each broker, again and again in a thread, a record with acks=all for partition 0 of a topic.

    `instants` are the acknowledgements, in seconds of the wall clock. A broker that does not lead refuses.
    """

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.instants: list[float] = []
        self._topic = topic
        self._brokers = [address.rsplit(":", 1) for address in bootstrap_servers.split(",")]
        self._stopped = False
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), daemon=True)
        self._thread.start()

    async def _run(self) -> None:
        await asyncio.gather(*(self._send(host, int(port)) for host, port in self._brokers))

    async def _send(self, host: str, port: int) -> None:
        connection: Connection | None = None
        while not self._stopped:
            try:
                if connection is None:
                    connection = await TcpTransport().connect(host, port, client_id="direct", timeout_s=_TIMEOUT_S)
                answer = await connection.request(self._request(), _PRODUCE_VERSION, timeout_s=_TIMEOUT_S)
                if answer.responses[0].partition_responses[0].error_code == 0:
                    self.instants.append(time.time())
            except PeerError:
                if connection is not None:
                    connection.close()
                connection = None
            await asyncio.sleep(_PAUSE_S)

    def _request(self) -> ProduceRequest:
        data = ProduceRequest.TopicProduceData
        records = build_batch([Record(value=b"x" * 100, timestamp_ms=int(time.time() * 1000))])
        return ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=int(_TIMEOUT_S * 1000),
            topic_data=[data(name=self._topic, partition_data=[data.PartitionProduceData(index=0, records=records)])],
        )

    def close(self) -> None:
        """Stop sending."""
        self._stopped = True
        self._thread.join()
