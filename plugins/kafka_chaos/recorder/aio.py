"""Producer and consumer of aiokafka that write down what they do."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from kafka_chaos.recorder.recording import Reading, id_of, stamped, topic_settings, value_id

if TYPE_CHECKING:
    from asyncio import Future

    from kafka_chaos.recorder.recording import Recorder

_ACKS = {"all": -1, -1: -1, 1: 1, 0: 0}
_OF_CONNECTION = ("bootstrap_servers", "security_protocol", "sasl_", "ssl_")
"""How settings begin that an administrator's client takes over."""


class Producer(aiokafka.AIOKafkaProducer):
    """`aiokafka.AIOKafkaProducer` with a recorder; `stop` ends its file."""

    def __init__(self, *, recorder: Recorder, **config: Any) -> None:
        super().__init__(**config)
        self._connection = config
        self._lines = recorder.lines("producer")
        self._lines.transactional_id = config.get("transactional_id") or ""
        self._stamp = recorder.stamp
        idempotent = bool(config.get("enable_idempotence") or config.get("transactional_id"))
        self._acks_of_lines = _ACKS[config.get("acks", "all" if idempotent else 1)]
        acks = "all" if self._acks_of_lines < 0 else self._acks_of_lines
        self._lines.settings({"idempotence": idempotent, "acks": acks})
        self._topics: set[str] = set()

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Any:
        """Write down the send, and how it ends."""
        lines, place = self._lines, -1 if partition is None else partition
        identity, headers = stamped(lines, headers) if self._stamp else (value_id(value), headers)
        self._topics.add(topic)
        start = lines.send_begins(topic, place, key, identity, self._acks_of_lines)
        try:
            future = await super().send(topic, value, key, partition, timestamp_ms, headers)
        except BaseException as error:
            lines.send_ends(start, "info", place, -1, str(error))
            raise

        def ended(sent: Future[Any]) -> None:
            if sent.cancelled() or sent.exception() is not None:
                lines.send_ends(start, "info", place, -1, "cancelled" if sent.cancelled() else str(sent.exception()))
            elif (answer := sent.result()) is None:
                lines.send_ends(start, "ok", place, -1)
            else:
                lines.send_ends(start, "ok", answer.partition, answer.offset)

        future.add_done_callback(ended)
        return future

    async def start(self) -> None:
        """Start, by which a producer becomes the present one of its transactional id."""
        of_id = self._lines.transactional_id
        with self._lines.transacting("init_transactions") if of_id else nullcontext():
            await super().start()

    async def begin_transaction(self) -> None:
        """Write down that a transaction begins."""
        with self._lines.transacting("begin_transaction"):
            await super().begin_transaction()

    async def commit_transaction(self) -> None:
        """Write down the commit, and how it ends."""
        with self._lines.transacting("commit_transaction"):
            await super().commit_transaction()

    async def abort_transaction(self) -> None:
        """Write down the abort, and how it ends."""
        with self._lines.transacting("abort_transaction"):
            await super().abort_transaction()

    async def send_batch(self, *_: Any, **__: Any) -> Any:
        """Refuse: records of a batch would be read and never sent, as the recorder sees it."""
        raise NotImplementedError("send_batch is not recorded: call send for each record")

    async def stop(self) -> None:
        """Stop, which waits for the ends of all sends; write the settings of their topics and the end of the file."""
        await super().stop()
        if not self._lines.closed:
            self._lines.settings(await _settings_of(self._connection, self._topics))
            self._lines.close()


class Consumer(aiokafka.AIOKafkaConsumer):
    """`aiokafka.AIOKafkaConsumer` with a recorder; `stop` ends its file."""

    def __init__(self, *topics: str, recorder: Recorder, **config: Any) -> None:
        super().__init__(*topics, **config)
        self._connection = config
        self._lines = recorder.lines("consumer")
        self._lines.isolation = str(config.get("isolation_level", "read_uncommitted"))
        self._mode = "subscribe" if topics else "assign"
        self._reading = Reading()
        self._from_start = config.get("auto_offset_reset", "latest") == "earliest"
        self._commits = config.get("group_id") is not None and not config.get("enable_auto_commit", True)
        self._committed: set[TopicPartition] = set()

    def subscribe(self, *args: Any, **more: Any) -> None:
        """Subscribe: a rebalance may move the reader from now on."""
        self._mode = "subscribe"
        super().subscribe(*args, **more)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign; after another assignment the reader is another process."""
        self._mode = "assign"
        if self._reading.partitions:
            self._lines.moved()
        super().assign(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Seek; from here on the reader is another process, and began at its own offset."""
        self._lines.moved()
        self._reading.sought(partition.topic, partition.partition, at_start=offset == 0)
        super().seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Seek; from here on the reader is another process."""
        self._sought(partitions, at_start=True)
        return bool(await super().seek_to_beginning(*partitions))

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Seek; from here on the reader is another process, that does not read from the start."""
        self._sought(partitions, at_start=False)
        return bool(await super().seek_to_end(*partitions))

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """Seek; from here on the reader is another process, that does not read from the start."""
        self._sought(partitions, at_start=False)
        sought: dict[TopicPartition, int | None] = await super().seek_to_committed(*partitions)
        return sought

    def _sought(self, partitions: tuple[TopicPartition, ...], *, at_start: bool) -> None:
        self._lines.moved()
        for each in partitions or self.assignment():
            self._reading.sought(each.topic, each.partition, at_start=at_start)

    async def getone(self, *partitions: TopicPartition) -> Any:
        """Record the returned record; the iterator uses this method too."""
        began_ns = monotonic_ns()
        record = await super().getone(*partitions)
        await self._began()
        self._lines.polled(began_ns, self._mode, (_record(record),))
        return record

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Any]]:
        """Record the returned records."""
        began_ns = monotonic_ns()
        polled: dict[TopicPartition, list[Any]] = await super().getmany(
            *partitions, timeout_ms=timeout_ms, max_records=max_records
        )
        if polled:
            await self._began()
            self._lines.polled(began_ns, self._mode, [_record(each) for records in polled.values() for each in records])
        return polled

    async def commit(self, offsets: Any = None) -> None:
        """Write down the commit, and how it ends; without automatic commits only, which are not seen."""
        if not self._commits:
            await super().commit(offsets)
            return
        if offsets is None:
            offsets = {each: await self.position(each) for each in self.assignment()}
        group, begin = str(self._connection["group_id"]), self._lines.commit_begins
        starts = [
            begin(group, at.topic, at.partition, each[0] if isinstance(each, tuple) else each)
            for at, each in offsets.items()
        ]
        self._committed |= offsets.keys()
        try:
            await super().commit(offsets)
        except BaseException as error:
            for start in starts:
                self._lines.commit_ends(start, "info", str(error))
            raise
        for start in starts:
            self._lines.commit_ends(start, "ok")

    async def committed(self, partition: TopicPartition) -> int | None:
        """Write down the committed offset that is read back."""
        began_ns = monotonic_ns()
        offset: int | None = await super().committed(partition)
        if self._commits:
            known, group = -1 if offset is None else offset, str(self._connection["group_id"])
            self._lines.committed(group, partition.topic, partition.partition, began_ns, known)
        return offset

    async def read_to_the_end(self, timeout_s: float = 30.0) -> bool:
        """Read until every assigned partition is read to its end; False when time is up."""
        deadline = monotonic() + timeout_s
        while monotonic() < deadline:
            await self.getmany(timeout_ms=200)
            if assigned := self.assignment():
                ends = await self.end_offsets(list(assigned))
                if all([await self.position(each) >= end for each, end in ends.items()]):
                    await self._began()
                    return True
        return False

    async def stop(self) -> None:
        """Ask for the end of each partition that was read; write it, the settings and the end of the file; stop."""
        if not self._lines.closed:
            partitions = [TopicPartition(*each) for each in self._reading.partitions]
            starts: dict[tuple[str, int], int] = {}
            with suppress(KafkaError):
                first = await self.beginning_offsets(partitions) if partitions else {}
                starts = {(at.topic, at.partition): offset for at, offset in first.items()}
                began_ns = monotonic_ns()
                for at, end in (await self.end_offsets(partitions) if partitions else {}).items():
                    self._lines.end_offset(at.topic, at.partition, began_ns, end)
            with suppress(KafkaError):
                for each in sorted(self._committed):
                    await self.committed(each)
            self._lines.settings(self._reading.settings(starts))
            topics = {topic for topic, _ in self._reading.partitions}
            self._lines.settings(await _settings_of(self._connection, topics))
            self._lines.close()
        await super().stop()

    async def _began(self) -> None:
        """Remember where reading began, of the partitions that are assigned for the first time."""
        for each in self.assignment():
            if (each.topic, each.partition) not in self._reading.partitions:
                grouped = self._connection.get("group_id") is not None and self._mode == "subscribe"
                from_start = self._from_start and not (grouped and await super().committed(each))
                self._reading.partitions[each.topic, each.partition] = from_start


def _record(record: Any) -> tuple[str, int, int, str]:
    return record.topic, record.partition, record.offset, id_of(record.value, record.headers)


async def _settings_of(config: dict[str, Any], topics: set[str]) -> dict[str, object]:
    """Return what the topics' configurations allow; nothing where the cluster does not say."""
    connection = {name: value for name, value in config.items() if name.startswith(_OF_CONNECTION)}
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in sorted(topics)]
    with suppress(KafkaError, ValueError, TypeError):
        admin = AIOKafkaAdminClient(**connection)
        await admin.start()
        try:
            answers = await admin.describe_configs(asked) if asked else []
            return topic_settings(
                {entry[0]: entry[1] for entry in resource[4]}
                for answer in answers
                for resource in getattr(answer, "resources", ())
            )
        finally:
            await admin.close()
    return {}


__all__ = ["Consumer", "Producer"]
