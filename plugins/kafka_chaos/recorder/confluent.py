"""Producer and consumer of confluent-kafka that write down what they do."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from kafka_chaos.recorder.recording import Reading, id_of, stamped, topic_settings, value_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_chaos.recorder.recording import Recorder

ASK_S = 10.0
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
_OF_CONNECTION = ("bootstrap.servers", "metadata.broker.list", "security.", "sasl.", "ssl.")
"""How settings begin that an administrator's client takes over."""


class Producer(confluent_kafka.Producer):
    """`confluent_kafka.Producer` with a recorder."""

    def __init__(self, config: dict[str, Any], *, recorder: Recorder) -> None:
        super().__init__(config)
        self._config = config
        self._lines = recorder.lines("producer")
        self._lines.transactional_id = str(config.get("transactional.id", ""))
        self._stamp = recorder.stamp
        self._acks = _ACKS.get(str(_of(config, "acks", "request.required.acks", default="all")), -1)
        idempotent = str(config.get("enable.idempotence", "transactional.id" in config)).lower() == "true"
        self._lines.settings({"idempotence": idempotent, "acks": "all" if self._acks < 0 else self._acks})
        self._topics: set[str] = set()
        recorder.follow(self)

    def produce(  # type: ignore[override]  # what is left over goes to the library as it is
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[[Any, Any], None] | None = None,
        on_delivery: Callable[[Any, Any], None] | None = None,
        **more: Any,
    ) -> None:
        """Write down the send, and how it ends."""
        lines, called = self._lines, on_delivery or callback
        if self._stamp:
            headers = more.get("headers")
            identity, more["headers"] = stamped(lines, list(headers.items()) if isinstance(headers, dict) else headers)
        else:
            identity = value_id(value)
        self._topics.add(topic)
        start = lines.send_begins(topic, partition, key, identity, self._acks)

        def ended(error: Any, message: Any) -> None:
            if error is None:
                offset = message.offset()
                lines.send_ends(start, "ok", message.partition(), -1 if offset is None else offset)
            else:
                lines.send_ends(start, "info", partition, -1, str(error))
            if called is not None:
                called(error, message)

        try:
            super().produce(topic, value, key, partition, on_delivery=ended, **more)
        except (BufferError, KafkaException, TypeError, ValueError) as error:
            lines.send_ends(start, "fail", partition, -1, str(error))
            raise

    def init_transactions(self, *timeout: float) -> None:
        """Write down that the producer becomes the present one of its id."""
        with self._lines.transacting("init_transactions"):
            super().init_transactions(*timeout)

    def begin_transaction(self) -> None:
        """Write down that a transaction begins."""
        with self._lines.transacting("begin_transaction"):
            super().begin_transaction()

    def commit_transaction(self, *timeout: float) -> None:
        """Write down the commit, and how it ends."""
        with self._lines.transacting("commit_transaction"):
            super().commit_transaction(*timeout)

    def abort_transaction(self, *timeout: float) -> None:
        """Write down the abort, and how it ends."""
        with self._lines.transacting("abort_transaction"):
            super().abort_transaction(*timeout)

    def produce_batch(self, *_: Any, **__: Any) -> int:
        """Refuse: records of a batch would be read and never sent, as the recorder sees it."""
        raise NotImplementedError("produce_batch is not recorded: call produce for each record")

    def close(self) -> bool:
        """Finish the recording, and close."""
        self.finish_recording()
        return super().close()

    def __exit__(self, *error: Any) -> bool | None:
        """Finish the recording, and close."""
        self.finish_recording()
        return super().__exit__(*error)

    def finish_recording(self) -> None:
        """Wait for the ends of all sends; write the settings of their topics and the end of the file."""
        if not self._lines.closed:
            self.flush(ASK_S)
            self._lines.settings(_settings_of(self._config, self._topics))
            self._lines.close()


class Consumer(confluent_kafka.Consumer):
    """`confluent_kafka.Consumer` with a recorder; records are taken one by one or many at once."""

    def __init__(self, config: dict[str, Any], *, recorder: Recorder) -> None:
        super().__init__(config)
        self._config = config
        self._lines = recorder.lines("consumer")
        self._lines.isolation = str(config.get("isolation.level", "read_committed"))
        self._mode = "subscribe"
        self._reading = Reading()
        reset = str(_of(config, "auto.offset.reset", "topic.auto.offset.reset", default="latest"))
        self._from_start = reset in ("earliest", "beginning", "smallest")
        self._group = str(config.get("group.id", ""))
        self._commits = str(config.get("enable.auto.commit", True)).lower() == "false"
        self._positions_are_stored = str(config.get("enable.auto.offset.store", True)).lower() != "false"
        self._committed: set[tuple[str, int]] = set()
        recorder.follow(self)

    def subscribe(  # type: ignore[override]  # what is left over goes to the library as it is
        self, topics: list[str], on_assign: Callable[[Any, Any], None] | None = None, **more: Any
    ) -> None:
        """Subscribe; where reading begins is asked for as partitions are assigned."""
        self._mode = "subscribe"

        def assigned(consumer: Any, partitions: list[TopicPartition]) -> None:
            self._begin(partitions)
            if on_assign is not None:
                on_assign(consumer, partitions)

        super().subscribe(topics, on_assign=assigned, **more)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign; where reading begins is in the partitions."""
        self._mode = "assign"
        if self._reading.partitions:
            self._lines.moved()
        self._begin(partitions)
        for each in partitions:
            if each.offset > 0 or each.offset == confluent_kafka.OFFSET_END:
                self._reading.sought(each.topic, each.partition, at_start=False)
        super().assign(partitions)

    def seek(self, partition: TopicPartition) -> None:
        """Seek; from here on the reader is another process."""
        self._lines.moved()
        at_start = partition.offset in (0, confluent_kafka.OFFSET_BEGINNING)
        self._reading.sought(partition.topic, partition.partition, at_start=at_start)
        super().seek(partition)

    def poll(self, timeout: float = -1) -> confluent_kafka.Message | None:
        """Record the returned record."""
        began_ns = monotonic_ns()
        message = super().poll(timeout)
        if message is not None and message.error() is None:
            self._lines.polled(began_ns, self._mode, (_record(message),))
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[confluent_kafka.Message]:
        """Record the returned records."""
        began_ns = monotonic_ns()
        messages = super().consume(num_messages, timeout)
        records = [_record(message) for message in messages if message.error() is None]
        if records:
            self._lines.polled(began_ns, self._mode, records)
        return messages

    def commit(  # type: ignore[override]  # the library's overloads
        self,
        message: Any = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Write down the commit, and how it ends; how one ends that is not waited for stays unknown.

        Without automatic commits only, which are not seen. Offsets that the application stores are not seen either:
        after their commit nothing is said of the group's offsets.
        """
        places = self._to_commit(message, offsets) if self._commits else []
        if not places:
            self._commits = False
            asked: dict[str, Any] = {"message": message} if message is not None else {}
            asked |= {"offsets": offsets} if offsets is not None else {}
            return self._commit(asynchronous=asynchronous, **asked)
        lines = self._lines
        starts = {
            (each.topic, each.partition): lines.commit_begins(self._group, each.topic, each.partition, each.offset)
            for each in places
        }
        self._committed |= starts.keys()
        try:
            ended = self._commit(offsets=places, asynchronous=asynchronous)
        except KafkaException as failure:
            for start in starts.values():
                lines.commit_ends(start, "info", str(failure))
            raise
        for each in ended or ():
            why = "" if each.error is None else str(each.error)
            lines.commit_ends(starts[each.topic, each.partition], "info" if why else "ok", why)
        return ended

    def _commit(self, **asked: Any) -> list[TopicPartition] | None:
        committed: list[TopicPartition] | None = super().commit(**asked)
        return committed

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Write down the committed offsets that are read back."""
        began_ns = monotonic_ns()
        read: list[TopicPartition] = super().committed(partitions, timeout)
        for each in read if self._commits else ():
            if each.error is None:
                self._lines.committed(self._group, each.topic, each.partition, began_ns, max(each.offset, -1))
        return read

    def read_to_the_end(self, timeout_s: float = 30.0) -> bool:
        """Read until every assigned partition is read to its end; False when time is up."""
        deadline = monotonic() + timeout_s
        while monotonic() < deadline:
            self.consume(500, 0.2)
            if self.assignment() and all(self._is_at_the_end(each) for each in self.assignment()):
                return True
        return False

    def close(self) -> None:
        """Write the ends of the partitions that were read, and close."""
        self.finish_recording()
        super().close()

    def finish_recording(self) -> None:
        """Ask for the end of each partition that was read; write it, the settings and the end of the file."""
        if self._lines.closed:
            return
        starts: dict[tuple[str, int], int] = {}
        for topic, partition in self._reading.partitions:
            began_ns = monotonic_ns()
            with suppress(KafkaException, RuntimeError):
                low, high = self.get_watermark_offsets(TopicPartition(topic, partition), ASK_S, cached=False)
                starts[topic, partition] = low
                self._lines.end_offset(topic, partition, began_ns, high)
        if self._committed and self._commits:
            with suppress(KafkaException, RuntimeError):
                self.committed([TopicPartition(*place) for place in sorted(self._committed)], ASK_S)
        self._lines.settings(self._reading.settings(starts))
        self._lines.settings(_settings_of(self._config, {topic for topic, _ in self._reading.partitions}))
        self._lines.close()

    def _begin(self, partitions: list[TopicPartition]) -> None:
        known = {}
        with suppress(KafkaException):
            known = {(each.topic, each.partition): each.offset for each in super().committed(partitions, ASK_S)}
        for each in partitions:
            place = (each.topic, each.partition)
            unsaid = each.offset == confluent_kafka.OFFSET_INVALID
            self._reading.partitions.setdefault(
                place, self._begins_at_start(known.get(place) if unsaid else each.offset)
            )

    def _to_commit(self, message: Any, offsets: list[TopicPartition] | None) -> list[TopicPartition]:
        """Return the offsets that a commit is about; none where only the library knows them."""
        if message is not None:
            return [TopicPartition(message.topic(), message.partition(), message.offset() + 1)]
        if offsets is not None:
            return list(offsets)
        if not self._positions_are_stored:
            return []
        return [each for each in self.position(self.assignment()) if each.offset >= 0]

    def _begins_at_start(self, offset: int | None) -> bool:
        """Return whether reading that begins at an offset, or where the configuration says, begins at the start."""
        if offset is None or offset == confluent_kafka.OFFSET_END or offset > 0:
            return False
        return offset in (0, confluent_kafka.OFFSET_BEGINNING) or self._from_start

    def _is_at_the_end(self, partition: TopicPartition) -> bool:
        _, high = self.get_watermark_offsets(partition, ASK_S, cached=False)
        (position,) = self.position([partition])
        return high == 0 or position.offset >= high


def _record(message: Any) -> tuple[str, int, int, str]:
    return message.topic(), message.partition(), message.offset(), id_of(message.value(), message.headers())


def _of(config: dict[str, Any], *names: str, default: object) -> object:
    return next((config[name] for name in names if name in config), default)


def _settings_of(config: dict[str, Any], topics: set[str]) -> dict[str, object]:
    """Return what the topics' configurations allow; nothing where the cluster does not say."""
    connection = {name: value for name, value in config.items() if name.startswith(_OF_CONNECTION)}
    with suppress(KafkaException, TimeoutError):
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(topics)]
        admin = AdminClient(connection)  # its answers come as long as it is there
        answers = admin.describe_configs(asked, request_timeout=ASK_S) if asked else {}
        return topic_settings(
            {name: entry.value for name, entry in answer.result(ASK_S).items()} for answer in answers.values()
        )
    return {}


__all__ = ["Consumer", "Producer"]
