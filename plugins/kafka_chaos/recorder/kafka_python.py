"""Producer and consumer of kafka-python that write down what they do."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from kafka_chaos.recorder.recording import Reading, id_of, stamped, topic_settings, value_id

if TYPE_CHECKING:
    from kafka_chaos.recorder.recording import Recorder

ASK_S = 10.0
_OF_CONNECTION = ("bootstrap_servers", "security_protocol", "sasl_", "ssl_", "api_version")
"""How settings begin that an administrator's client takes over."""


class Producer(kafka.KafkaProducer):
    """`kafka.KafkaProducer` with a recorder."""

    def __init__(self, *, recorder: Recorder, **config: Any) -> None:
        super().__init__(**config)
        self._connection = config
        self._lines = recorder.lines("producer")
        self._lines.transactional_id = str(self.config.get("transactional_id") or "")
        self._stamp = recorder.stamp
        self._acks = int(str(self.config["acks"]))
        idempotent = bool(self.config.get("enable_idempotence", False))
        self._lines.settings({"idempotence": idempotent, "acks": "all" if self._acks < 0 else self._acks})
        self._topics: set[str] = set()
        recorder.follow(self)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Write down the send, and how it ends."""
        lines, place = self._lines, -1 if partition is None else partition
        identity, headers = stamped(lines, headers) if self._stamp else (value_id(value), headers)
        self._topics.add(topic)
        start = lines.send_begins(topic, place, key, identity, self._acks)
        try:
            future = super().send(topic, value, key, headers, partition, timestamp_ms)
        except Exception as error:
            lines.send_ends(start, "fail", place, -1, str(error))
            raise
        future.add_callback(lambda sent: lines.send_ends(start, "ok", sent.partition, sent.offset))
        future.add_errback(lambda error: lines.send_ends(start, "info", place, -1, str(error)))
        return future

    def init_transactions(self, *args: Any, **more: Any) -> None:
        """Write down that the producer becomes the present one of its id."""
        with self._lines.transacting("init_transactions"):
            super().init_transactions(*args, **more)

    def begin_transaction(self, *args: Any, **more: Any) -> None:
        """Write down that a transaction begins."""
        with self._lines.transacting("begin_transaction"):
            super().begin_transaction(*args, **more)

    def commit_transaction(self, *args: Any, **more: Any) -> None:
        """Write down the commit, and how it ends."""
        with self._lines.transacting("commit_transaction"):
            super().commit_transaction(*args, **more)

    def abort_transaction(self, *args: Any, **more: Any) -> None:
        """Write down the abort, and how it ends."""
        with self._lines.transacting("abort_transaction"):
            super().abort_transaction(*args, **more)

    def close(self, *args: Any, **more: Any) -> None:
        """Write the end of the file, and close."""
        self.finish_recording()
        super().close(*args, **more)

    def finish_recording(self) -> None:
        """Wait for the ends of all sends; write the settings of their topics and the end of the file."""
        if not self._lines.closed:
            with suppress(KafkaError):
                self.flush(ASK_S)
            self._lines.settings(_settings_of(self._connection, self._topics))
            self._lines.close()


class Consumer(kafka.KafkaConsumer):
    """`kafka.KafkaConsumer` with a recorder."""

    def __init__(self, *topics: str, recorder: Recorder, **config: Any) -> None:
        super().__init__(*topics, **config)
        self._connection = config
        self._lines = recorder.lines("consumer")
        self._lines.isolation = str(self.config["isolation_level"])
        self._mode = "subscribe" if topics else "assign"
        self._reading = Reading()
        self._from_start = self.config["auto_offset_reset"] == "earliest"
        self._group = str(self.config["group_id"])
        self._commits = self.config["group_id"] is not None and not self.config["enable_auto_commit"]
        self._committed: set[TopicPartition] = set()
        recorder.follow(self)

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

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek; from here on the reader is another process."""
        self._sought(partitions, at_start=True)
        super().seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek; from here on the reader is another process, that does not read from the start."""
        self._sought(partitions, at_start=False)
        super().seek_to_end(*partitions)

    def _sought(self, partitions: tuple[TopicPartition, ...], *, at_start: bool) -> None:
        self._lines.moved()
        for each in partitions or self.assignment():
            self._reading.sought(each.topic, each.partition, at_start=at_start)

    def poll(self, timeout_ms: int = 0, max_records: int | None = None, update_offsets: bool = True) -> Any:
        """Record the returned records; the iterator returns them one by one."""
        began_ns = monotonic_ns()
        polled = super().poll(timeout_ms, max_records, update_offsets)
        if update_offsets and polled:
            self._began()
            self._lines.polled(began_ns, self._mode, [_record(each) for records in polled.values() for each in records])
        return polled

    def __next__(self) -> Any:
        """Record the returned record."""
        began_ns = monotonic_ns()
        record = super().__next__()
        self._began()
        self._lines.polled(began_ns, self._mode, (_record(record),))
        return record

    def commit(self, offsets: Any = None, timeout_ms: int | None = None) -> None:
        """Write down the commit, and how it ends; without automatic commits only, which are not seen."""
        if not self._commits:
            super().commit(offsets, timeout_ms)
            return
        offsets = self._positions() if offsets is None else offsets
        starts = self._commit_begins(offsets)
        try:
            super().commit(offsets, timeout_ms)
        except BaseException as error:
            self._commit_ends(starts, "info", str(error))
            raise
        self._commit_ends(starts, "ok")

    def commit_async(self, offsets: Any = None, callback: Any = None) -> Any:
        """Write down the commit, and how it ends."""
        if not self._commits:
            return super().commit_async(offsets, callback)
        offsets = self._positions() if offsets is None else offsets
        starts = self._commit_begins(offsets)
        future = super().commit_async(offsets, callback)
        future.add_callback(lambda _: self._commit_ends(starts, "ok"))
        future.add_errback(lambda error: self._commit_ends(starts, "info", str(error)))
        return future

    def committed(self, partition: TopicPartition, *args: Any, **more: Any) -> Any:
        """Write down the committed offset that is read back."""
        began_ns = monotonic_ns()
        read = super().committed(partition, *args, **more)
        if self._commits:
            offset = -1 if read is None else getattr(read, "offset", read)
            self._lines.committed(self._group, partition.topic, partition.partition, began_ns, offset)
        return read

    def _positions(self) -> dict[TopicPartition, Any]:
        """Return what a commit without offsets commits."""
        rest = ["", *[-1] * len(OffsetAndMetadata._fields)][: len(OffsetAndMetadata._fields) - 1]
        known = {each: self.position(each) for each in self.assignment()}
        return {each: OffsetAndMetadata(offset, *rest) for each, offset in known.items() if offset is not None}

    def _commit_begins(self, offsets: dict[TopicPartition, Any]) -> list[str]:
        self._committed |= offsets.keys()
        begin = self._lines.commit_begins
        return [begin(self._group, at.topic, at.partition, each.offset) for at, each in offsets.items()]

    def _commit_ends(self, starts: list[str], outcome: str, error: str = "") -> None:
        for start in starts:
            self._lines.commit_ends(start, outcome, error)

    def read_to_the_end(self, timeout_s: float = 30.0) -> bool:
        """Read until every assigned partition is read to its end; False when time is up."""
        deadline = monotonic() + timeout_s
        while monotonic() < deadline:
            self.poll(200)
            if assigned := self.assignment():
                ends = self.end_offsets(list(assigned))
                if all(self.position(each) >= end for each, end in ends.items()):
                    self._began()
                    return True
        return False

    def close(self, *args: Any, **more: Any) -> None:
        """Write the ends of the partitions that were read, and close."""
        self.finish_recording()
        super().close(*args, **more)

    def finish_recording(self) -> None:
        """Ask for the end of each partition that was read; write it, the settings and the end of the file."""
        if self._lines.closed:
            return
        partitions = [TopicPartition(*each) for each in self._reading.partitions]
        starts: dict[tuple[str, int], int] = {}
        with suppress(KafkaError):
            starts = {(at.topic, at.partition): first for at, first in self.beginning_offsets(partitions).items()}
            began_ns = monotonic_ns()
            for at, end in self.end_offsets(partitions).items():
                self._lines.end_offset(at.topic, at.partition, began_ns, end)
        with suppress(KafkaError):
            for each in sorted(self._committed):
                self.committed(each)
        self._lines.settings(self._reading.settings(starts))
        self._lines.settings(_settings_of(self._connection, {topic for topic, _ in self._reading.partitions}))
        self._lines.close()

    def _began(self) -> None:
        """Remember where reading began, of the partitions that are assigned for the first time."""
        for each in self.assignment():
            if (each.topic, each.partition) not in self._reading.partitions:
                grouped = self.config["group_id"] is not None and self._mode == "subscribe"
                from_start = self._from_start and not (grouped and super().committed(each))
                self._reading.partitions[each.topic, each.partition] = from_start


def _record(record: Any) -> tuple[str, int, int, str]:
    return record.topic, record.partition, record.offset, id_of(record.value, record.headers)


def _settings_of(config: dict[str, Any], topics: set[str]) -> dict[str, object]:
    """Return what the topics' configurations allow; nothing where the cluster does not say."""
    connection = {name: value for name, value in config.items() if name.startswith(_OF_CONNECTION)}
    with suppress(KafkaError, ValueError, KeyError, TypeError, AttributeError):
        admin = KafkaAdminClient(**connection)
        try:
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in sorted(topics)]
            return topic_settings(_configs(_described(admin, asked))) if asked else {}
        finally:
            admin.close()
    return {}


def _described(admin: KafkaAdminClient, asked: list[ConfigResource]) -> Any:
    """Return all configurations; from 3.0 on the library leaves out what has its default, unless it is asked."""
    try:
        return admin.describe_configs(asked, config_filter="all")
    except TypeError:
        return admin.describe_configs(asked)


def _configs(answers: Any) -> list[dict[str, str | None]]:
    """Return the configuration of each topic, from what versions of the library answer."""
    if isinstance(answers, dict):
        topics = answers.get("topic", answers)
        return [{name: _value(entry) for name, entry in entries.items()} for entries in topics.values()]
    return [{entry[0]: entry[1] for entry in resource[4]} for response in answers for resource in response.resources]


def _value(entry: Any) -> str | None:
    value = entry.get("value") if isinstance(entry, dict) else getattr(entry, "value", entry)
    return None if value is None else str(value)


__all__ = ["Consumer", "Producer"]
