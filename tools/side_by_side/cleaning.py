"""Situations of a compacted topic, batch by batch: what does a cleaner leave of what was written?

`cleaning-3.9.json` has what one broker of Kafka 3.9 with `PROPERTIES` left, to
`python -m tools.side_by_side.cleaning`. A test plays the same to this broker.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.broker.log.batch import (
    UNNUMBERED,
    BatchHeader,
    Numbering,
    build_batch,
    iter_batches,
    parse_header,
    parse_records,
    recompressed,
)
from harness.broker.log.compression import CODEC_NAMES, NO_COMPRESSION
from harness.broker.log.markers import TRANSACTIONAL
from harness.broker.log.records import Record
from harness.broker.replicas.fetcher_messages import (
    FETCH_VERSION,
    Limits,
    PartitionRequest,
    fetch_request,
    without_session,
)
from harness.broker.wire import messages as m
from harness.broker.wire.sentinels import CONSUMER, EARLIEST, NO_EPOCH
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Transport
from tools.peers import running

RECORDED = Path(__file__).with_name("cleaning-3.9.json")

TIMEOUT_S = 30
QUIET_S = 2.0
"""For so long nothing changed: the cleaner is through."""
LOOK_EVERY_S = 0.1
BEGAN_MS = 1_700_000_000_000
"""Timestamps count from here, whatever the time is."""
FUTURE_MS = 50 * 365 * 86_400_000
"""A time later than all those timestamps."""
A_YEAR_MS = 365 * 86_400_000
NOW_MS = range(BEGAN_MS + A_YEAR_MS, BEGAN_MS + 40 * A_YEAR_MS)
"""Timestamps of markers, which a broker gives."""
PROPERTIES = {"log.cleaner.backoff.ms": "100", "transaction.partition.verification.enable": "false"}
"""Markers come from the situations: there are no coordinators."""
CONFIG = {
    "segment.bytes": "1000",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
    "message.timestamp.difference.max.ms": "9223372036854775807",
}
TOPIC_RESOURCE = 2
SET = 0
FETCH_LIMITS = Limits(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, partition_max_bytes=1 << 20)

Pair = tuple[str | None, str | None]


@dataclass(slots=True)
class Script:
    """One topic of one partition, what is written to it, and what is there when the cleaner was."""

    transport: Transport
    host: str
    port: int
    topic: str
    transcript: list[str] = field(default_factory=list)
    _written: int = 0

    async def ask(self, message: Any, version: int) -> Any:
        """Return the broker's answer."""
        connection = await self.transport.connect(self.host, self.port, client_id="c", timeout_s=TIMEOUT_S)
        try:
            return await connection.request(message, version, timeout_s=TIMEOUT_S)
        finally:
            connection.close()

    async def create(self) -> None:
        """Make the topic, which is not compacted yet, and wait for its leader."""
        creatable = m.CreateTopicsRequest.CreatableTopic
        configs = [creatable.CreatableTopicConfig(name=name, value=value) for name, value in CONFIG.items()]
        wanted = creatable(name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=configs)
        await self.ask(m.CreateTopicsRequest(topics=[wanted], timeout_ms=5000, validate_only=False), 4)
        async with asyncio.timeout(TIMEOUT_S):
            while (await self._fetched(0)).error_code:  # noqa: ASYNC110  another process knows
                await asyncio.sleep(LOOK_EVERY_S)

    async def write(
        self,
        *pairs: Pair,
        codec: int = NO_COMPRESSION,
        numbering: Numbering = UNNUMBERED,
        later_ms: int = 0,
        transactional: bool = False,
    ) -> None:
        """Write one batch; each record is a millisecond later than the one before, and so much later still."""
        records = []
        for key, value in pairs:
            headers = (("h", b"v"),) if key == "with-header" else ()
            records.append(
                Record(
                    key=_encoded(key),
                    value=_encoded(value),
                    timestamp_ms=BEGAN_MS + self._written + later_ms,
                    headers=headers,
                )
            )
            self._written += 1
        plain = build_batch(records, attributes=TRANSACTIONAL if transactional else 0, numbering=numbering)
        batch = plain if codec == NO_COMPRESSION else bytes(recompressed(plain, parse_header(plain), codec))
        data = m.ProduceRequest.TopicProduceData
        partition = data.PartitionProduceData(index=0, records=batch)
        request = m.ProduceRequest(
            transactional_id=self.topic if transactional else None,
            acks=-1,
            timeout_ms=5000,
            topic_data=[data(name=self.topic, partition_data=[partition])],
        )
        answer = (await self.ask(request, 8)).responses[0].partition_responses[0]
        if answer.error_code:
            self.transcript.append(f"write: error {answer.error_code}")

    async def transact(self, producer_id: int, sequence: int, *pairs: Pair) -> None:
        """Write one transactional batch of a producer's epoch 0."""
        await self.write(*pairs, numbering=Numbering(producer_id, 0, sequence), transactional=True)

    async def end(self, producer_id: int, *, commit: bool) -> None:
        """Write the marker that ends a producer's transaction."""
        marker = m.WriteTxnMarkersRequest.WritableTxnMarker
        ended = marker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=commit,
            topics=[marker.WritableTxnMarkerTopic(name=self.topic, partition_indexes=[0])],
            coordinator_epoch=0,
        )
        answer = await self.ask(m.WriteTxnMarkersRequest(markers=[ended]), 1)
        error = answer.markers[0].topics[0].partitions[0].error_code
        if error:
            self.transcript.append(f"marker: error {error}")

    async def roll(self, later_ms: int = 0) -> None:
        """Write what fills a segment, so that nothing before it is in the last one."""
        await self.write((f"filling-{self._written}", "x" * 900), later_ms=later_ms)

    async def clean(self, policy: str = "compact", **more: str) -> None:
        """Compact the topic, return what is left when nothing changes any more, and stop the compaction."""
        before = await self._everything()
        await self._configure(policy, **more)
        seen, since_s = before, asyncio.get_running_loop().time()
        async with asyncio.timeout(TIMEOUT_S):
            while seen == before or asyncio.get_running_loop().time() - since_s < QUIET_S:
                await asyncio.sleep(LOOK_EVERY_S)
                now = await self._everything()
                if now != seen:
                    seen, since_s = now, asyncio.get_running_loop().time()
        await self._configure("delete")
        self.transcript.append(f"from {await self._start()} on")
        self.transcript += [_line(header, batch) for header, batch in iter_batches(seen)]
        self.transcript.append("--")

    async def _configure(self, policy: str, **more: str) -> None:
        resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource
        values = {"cleanup.policy": policy} | {name.replace("_", "."): value for name, value in more.items()}
        changes = [
            resource.AlterableConfig(name=name, config_operation=SET, value=value) for name, value in values.items()
        ]
        wanted = resource(resource_type=TOPIC_RESOURCE, resource_name=self.topic, configs=changes)
        await self.ask(m.IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False), 0)

    async def _everything(self) -> bytes:
        data, offset = b"", await self._start()
        while records := (await self._fetched(offset)).records:
            data += bytes(records)
            *_, (last, _) = iter_batches(bytes(records))
            offset = last.last_offset + 1
        return data

    async def _start(self) -> int:
        """Return where the log begins."""
        topic = m.ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = m.ListOffsetsRequest(replica_id=-1, topics=[topic(name=self.topic, partitions=[partition])])
        return int((await self.ask(request, 1)).topics[0].partitions[0].offset)

    async def _fetched(self, offset: int) -> Any:
        partition = PartitionRequest((self.topic, 0), NO_EPOCH, offset)
        request = fetch_request(CONSUMER, FETCH_LIMITS, without_session([partition]))
        return (await self.ask(request, FETCH_VERSION)).responses[0].partitions[0]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _line(header: BatchHeader, batch: memoryview) -> str:
    records = [
        f"{record.offset}:{_record(header, record)}@{_time(record.timestamp_ms)}"
        + ("+header" if record.headers else "")
        for record in parse_records(batch)
    ]
    base = _time(header.base_timestamp) if header.base_timestamp >= 0 else header.base_timestamp
    kind = (" transactional" if header.is_transactional else "") + (" control" if header.is_control else "")
    return (
        f"{header.base_offset}-{header.last_offset} epoch {header.leader_epoch} {CODEC_NAMES[header.codec]}{kind}"
        f" from {'a horizon' if header.delete_horizon_ms is not None else base} to {_time(header.max_timestamp)}"
        f" by {header.producer_id}/{header.producer_epoch}/{header.base_sequence}: {' '.join(records)}"
    )


def _record(header: BatchHeader, record: Record) -> str:
    if header.is_control:
        return f"{(record.key or b'').hex()}={(record.value or b'').hex()}"
    return f"{_text(record.key)}={_text(record.value)}"


def _time(timestamp_ms: int) -> int | str:
    return "now" if timestamp_ms in NOW_MS else timestamp_ms - BEGAN_MS


def _text(data: bytes | None) -> str:
    return "null" if data is None else f"{data.decode()[:12]!r}"


Situation = Callable[[Script], Awaitable[None]]


async def overwritten(s: Script) -> None:
    """Keys that are written again and again, one record a batch."""
    for number in range(40):
        await s.write((f"k{number % 3}", f"{number}"))
    await s.roll()
    await s.clean()


async def batches(s: Script) -> None:
    """Batches of which some records stay, all, or none."""
    await s.write(("a", "1"), ("b", "2"), ("c", "3"))
    await s.write(("b", "4"), ("with-header", "5"), ("b", "6"))
    await s.write(("d", "7"), ("e", "8"))
    await s.write(("a", "9"))
    await s.write(("d", "10"), ("e", "11"), ("", "empty key"), ("f", ""))
    await s.roll()
    await s.write(("c", "in the last segment"))
    await s.clean()


async def codecs(s: Script) -> None:
    """Compressed batches stay compressed as they were."""
    for codec in CODEC_NAMES:
        await s.write((f"only-{codec}", "1"), ("all", f"{codec}"), codec=codec)
    await s.roll()
    await s.clean()


async def tombstones(s: Script) -> None:
    """A tombstone is kept by the first cleaning and, its retention being over, not by the next."""
    await s.write(("a", "1"), ("b", "2"), ("c", "3"))
    await s.write(("a", None), ("d", "4"))
    await s.write(("b", None))
    await s.write(("never", None), ("b", "back"))
    await s.roll()
    await s.clean()
    await s.write(("d", None), ("e", "5"))
    await s.roll()
    await s.clean()
    await s.write(("f", "6"))
    await s.roll()
    await s.clean()


async def compressed_tombstones(s: Script) -> None:
    """The horizon of a compressed batch."""
    await s.write(("a", "1"), ("a", None), ("b", "2"), codec=4)
    await s.roll()
    await s.clean()
    await s.write(("c", "3"))
    await s.roll()
    await s.clean()


async def without_keys(s: Script) -> None:
    """Records without a key, from before the topic was compacted, go."""
    await s.write((None, "1"), ("a", "2"), (None, "3"))
    await s.write((None, "4"))
    await s.roll()
    await s.clean()


async def compacted_refuses(s: Script) -> None:
    """A record without a key is refused while the topic is compacted."""
    await s.write(("a", "1"))
    await s.write(("a", "2"))
    await s.roll()
    await s.clean()
    await s._configure("compact")
    await asyncio.sleep(QUIET_S)
    await s.write((None, "3"))
    await s.write(("a", "4"), (None, "5"))


async def producers(s: Script) -> None:
    """The last batch of an idempotent producer is kept, be it empty; that of a batch that lost some stays whole."""
    await s.write(("a", "1"), ("b", "2"), numbering=Numbering(1000, 0, 0))
    await s.write(("a", "3"), ("c", "4"), numbering=Numbering(2000, 3, 0))
    await s.write(("a", "5"), ("b", "6"))
    await s.roll()
    await s.clean()


async def small_segments(s: Script) -> None:
    """Many cleanings, each of which has a little more to do."""
    for round_ in range(3):
        for number in range(20):
            await s.write((f"k{number % 5}", f"{round_}-{number}"), (f"r{round_}", f"{number}"))
        await s.roll()
        await s.clean()


async def deleted_by_size(s: Script) -> None:
    """With `compact,delete` a topic is compacted, and its oldest segments go while it is larger than it may be."""
    for number in range(40):
        await s.write((f"k{number % 20}", f"{number}" + "x" * 90))
    await s.roll()
    await s.clean("compact,delete")
    await s.clean("compact,delete", retention_bytes="2500")


async def deleted_by_time(s: Script) -> None:
    """With `compact,delete` the oldest segments go that are too old as well, by the records that stayed.

    Something stays of each segment: how old an empty one is, is not the same here and there.
    """
    for number in range(20):
        await s.write((f"old{number}" if number % 2 else "again", f"{number}" + "x" * 90))
    for number in range(20, 40):
        await s.write((f"k{number % 15}", f"{number}" + "x" * 90), later_ms=FUTURE_MS)
    await s.roll(later_ms=FUTURE_MS)
    await s.clean("compact,delete")
    await s.clean("compact,delete", retention_ms="86400000")


async def transactions(s: Script) -> None:
    """Committed records are compacted as others are; aborted ones go, and overwrite nothing."""
    await s.transact(1000, 0, ("a", "1"), ("b", "2"))
    await s.end(1000, commit=True)
    await s.transact(1000, 2, ("a", "3"), ("c", "4"))
    await s.end(1000, commit=False)
    await s.transact(2000, 0, ("b", "5"))
    await s.transact(1000, 4, ("d", "6"))
    await s.end(1000, commit=False)
    await s.transact(2000, 1, ("c", "7"))
    await s.end(2000, commit=True)
    await s.roll()
    await s.clean()


async def open_transaction(s: Script) -> None:
    """Nothing is cleaned from the first record of an open transaction on, and everything once it is committed."""
    for number in range(6):
        await s.write((f"k{number % 2}", f"{number}"))
    await s.roll()
    await s.transact(1000, 0, ("k0", "open"), ("k2", "open"))
    for number in range(6, 12):
        await s.write((f"k{number % 3}", f"{number}"))
    await s.roll()
    await s.clean()
    await s.end(1000, commit=True)
    await s.roll()
    await s.clean()


async def open_transaction_aborted(s: Script) -> None:
    """The same, once it is aborted."""
    await s.write(("k0", "1"), ("k1", "2"))
    await s.write(("k0", "3"))
    await s.roll()
    await s.transact(1000, 0, ("k0", "open"), ("k2", "open"))
    await s.write(("k1", "4"))
    await s.roll()
    await s.clean()
    await s.end(1000, commit=False)
    await s.roll()
    await s.clean()


async def markers(s: Script) -> None:
    """A marker stays as long as records of its transaction, then until its retention is over."""
    await s.transact(1000, 0, ("a", "1"))
    await s.end(1000, commit=True)
    await s.transact(2000, 0, ("b", "2"))
    await s.end(2000, commit=False)
    for producer_id in (1000, 2000):
        for number in range(1, 6):  # so that neither cleaner needs the first batch for the producer's state
            await s.transact(producer_id, number, (f"{number}-of-{producer_id}", "3"))
        await s.end(producer_id, commit=True)
    await s.write(("a", "4"))
    await s.roll()
    await s.clean()
    await s.write(("a", "5"))
    await s.roll()
    await s.clean()


async def markers_of_nothing(s: Script) -> None:
    """Markers of transactions without records."""
    await s.end(1000, commit=True)
    await s.end(2000, commit=False)
    await s.write(("a", "1"))
    await s.write(("a", "2"))
    await s.roll()
    await s.clean()
    await s.write(("a", "3"))
    await s.roll()
    await s.clean()


async def interleaved_transactions(s: Script) -> None:
    """Two transactions in the same segment, of which one is aborted in the next segment."""
    await s.transact(1000, 0, ("a", "1"))
    await s.transact(2000, 0, ("a", "2"), ("b", "3"))
    await s.transact(1000, 1, ("b", "4"))
    await s.end(2000, commit=True)
    await s.roll()
    await s.transact(1000, 2, ("c", "5"))
    await s.end(1000, commit=False)
    await s.write(("b", "6"))
    await s.roll()
    await s.clean()


SITUATIONS: tuple[Situation, ...] = (
    overwritten,
    batches,
    codecs,
    tombstones,
    compressed_tombstones,
    without_keys,
    compacted_refuses,
    producers,
    small_segments,
    deleted_by_size,
    deleted_by_time,
    transactions,
    open_transaction,
    open_transaction_aborted,
    markers,
    markers_of_nothing,
    interleaved_transactions,
)


async def play(situation: Situation, transport: Transport, host: str, port: int) -> list[str]:
    """Return what a cleaner leaves in a situation."""
    script = Script(transport, host, port, topic=situation.__name__)
    await script.create()
    await situation(script)
    return script.transcript


def main() -> None:
    """Play all situations to real Kafka, and keep what it leaves."""
    with (
        tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
        running("kafka", Path(folder), brokers=1, properties=PROPERTIES) as peer,
    ):
        host, _, port = peer.bootstrap_servers.rpartition(":")
        transcripts = {each.__name__: asyncio.run(play(each, TcpTransport(), host, int(port))) for each in SITUATIONS}
    RECORDED.write_text(json.dumps(transcripts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
