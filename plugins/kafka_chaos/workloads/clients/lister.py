"""A client that keeps requesting offsets of every partition, and sometimes reads from one on or deletes; librdkafka."""

import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from harness.client_rules import listing
from harness.client_rules.listing import READ_RECORDS, Inquiry, Listing
from harness.contracts.workloads import ClientPlan
from harness.store.history import READ_UNCOMMITTED, JsonlWriter, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.connection import connection
from kafka_chaos.workloads.clients.errors import described
from kafka_chaos.workloads.clients.group_member import record_of

_OUTDATED = frozenset({KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._NOENT})
"""Errors after which a client is replaced. With an old leader epoch librdkafka would go on for minutes. After metadata
from a broker without a controller, librdkafka 2.16 has no brokers any more (issue 5301)."""
RENEWED_EVERY_S = 2.0
"""Shortest time between two new clients: a new one may have to wait for brokers."""
_READER = {
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": READ_UNCOMMITTED,
}
"""Of the client that reads from known offsets on."""
_SPECS: dict[str, Any] = {listing.LATEST: OffsetSpec.latest, listing.EARLIEST: OffsetSpec.earliest}


def list_offsets(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Ask one question after the other until `stop` is set."""
    recorder = Recorder(plan.process, operations.write, now_ns, plan.first_index)
    rules = Listing(plan, recorder, lambda: time.time_ns() // 1_000_000)
    admin, made_s = AdminClient(connection(plan)), time.monotonic()
    timeout_s = max(1.0, plan.parameters["request_timeout_ms"] / 1000)
    reader = (
        Consumer(connection(plan) | _READER | {"group.id": plan.process}) if plan.parameters["read_share"] else None
    )
    while not stop.is_set():
        inquiry = rules.next()
        try:
            if inquiry.reads and reader is not None:
                rules.read(inquiry, _read(reader, inquiry, timeout_s))
            else:
                rules.answered(inquiry, _answer(admin, inquiry, timeout_s))
        except KafkaException as error:
            rules.refused(inquiry, described(error.args[0]))
            if error.args[0].code() in _OUTDATED and time.monotonic() - made_s > RENEWED_EVERY_S:
                admin, made_s = AdminClient(connection(plan)), time.monotonic()
        stop.wait(rules.interval_s)
    if reader is not None:
        reader.close()


def _read(reader: Consumer, inquiry: Inquiry, timeout_s: float) -> list[tuple[int, str]]:
    """Return the offsets and value ids of the records that the leader answers with; raises KafkaException."""
    reader.assign([TopicPartition(*inquiry.partition, inquiry.invoked.offset)])
    first = reader.poll(timeout_s)
    if first is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    if (error := first.error()) is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    messages = [first, *reader.consume(READ_RECORDS - 1, timeout=0)]
    reader.unassign()
    records = [record_of(message) for message in messages if message.error() is None]
    return [(record.offset, record.value) for record in records]


def _answer(admin: AdminClient, inquiry: Inquiry, timeout_s: float) -> int:
    """Return the offset that the leader answers with; raises KafkaException."""
    if inquiry.deletes:
        partition = TopicPartition(*inquiry.partition, inquiry.invoked.offset)
        (deleted,) = admin.delete_records([partition], request_timeout=timeout_s).values()
        return int(deleted.result().low_watermark)
    partition = TopicPartition(*inquiry.partition)
    mode = inquiry.invoked.mode
    spec: Any = _SPECS[mode]() if mode in _SPECS else OffsetSpec.for_timestamp(inquiry.timestamp_ms)
    (listed,) = admin.list_offsets({partition: spec}, request_timeout=timeout_s).values()
    return int(listed.result().offset)
