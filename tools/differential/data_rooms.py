"""Random calls on the records of topics: produce, fetch, lookups, deletion, and transactions."""

from collections.abc import Iterator
from typing import Any

from harness.client_rules.scripts.answers import FIRST_WITH_SESSIONS
from harness.client_rules.scripts.script import Step
from harness.contracts.requests import BEGAN_MS
from tools.differential.draws import Draw

TOPIC_CONFIGS = (
    ("max.message.bytes", "300"),
    ("message.timestamp.type", "LogAppendTime"),
    ("segment.bytes", "300"),
    ("compression.type", "uncompressed"),
    ("cleanup.policy", "compact"),
    ("message.timestamp.before.max.ms", "1000"),
    ("message.timestamp.after.max.ms", "1000"),
    ("index.interval.bytes", "0"),
    ("segment.ms", "5000"),
)
SIZES = (299, 300, 301)
"""About the limits of `TOPIC_CONFIGS`."""
HEADERS: tuple[dict[str, Any], ...] = (
    {"last_offset_delta": 5},
    {"records_count": 7},
    {"records_count": 0},
    {"records_count": -1},
    {"base_offset": 5},
    {"magic": 1},
    {"magic": 3},
    {"crc": 1},
    {"attributes": 0x10},
    {"attributes": 0x20},
    {"attributes": 0x30},
    {"attributes": 0x80},
    {"attributes": 5},
    {"producer_epoch": 0},
    {"base_sequence": 0},
    {"leader_epoch": 3},
)


def create(draw: Draw) -> Step:
    """A topic that can be created."""
    configs = draw.some(TOPIC_CONFIGS, 2) if draw.bad(0.5) else []
    topic = {
        "name": draw.new_topic(),
        "num_partitions": draw.one(1, 2, 2),
        "replication_factor": 1,
        "configs": [{"name": name, "value": value} for name, value in dict(configs).items()],
    }
    return draw.step("CreateTopics", topics=[topic], timeout_ms=5000)


def batch(draw: Draw, topic: str, partition: int, *, attributes: int = 0) -> dict[str, Any]:
    """A batch, mostly a valid one."""
    size = draw.rng.randint(1, 4)
    records = [
        [
            draw.usually(draw.one("k0", "k1", "k2"), None),
            draw.usually(draw.one("a", "b", "cc"), None, "", 100, 400, share=0.7),
            draw.usually(1000 * draw.rng.randint(0, 10), -BEGAN_MS, -BEGAN_MS - 1, 10**12, share=0.95),
        ]
        for _ in range(size)
    ]
    made: dict[str, Any] = {"records": records, "codec": draw.usually(0, 1, 2, 3, 4, share=0.6)}
    if attributes or (draw.producers and draw.bad(0.4)):
        index = draw.rng.randrange(max(draw.producers, 1))
        key = (index, topic, partition)
        sequence = draw.sequences.get(key, 0)
        drawn = draw.usually(sequence, sequence - size, sequence + 1, 0, -1, 2**31 - 1, share=0.8)
        draw.sequences[key] = sequence + size if drawn == sequence else sequence
        producer_id, epoch = draw.producer() if draw.bad() else (f"$p:{index}", f"$e:{index}")
        made |= {"producer": producer_id, "epoch": epoch, "sequence": drawn, "attributes": attributes}
    if draw.bad(0.08):
        made["size"] = draw.one(*SIZES)
    if draw.bad():
        return made | draw.one({"header": draw.one(*HEADERS)}, {"cut": draw.one(1, 30)}, {"flip": 65}, {"magic": 1})
    return made


def produce(draw: Draw) -> Step:
    """Produce to one or two partitions."""
    topic = draw.topic()
    data = []
    for partition in draw.partitions():
        batches = [batch(draw, topic, partition) for _ in range(draw.usually(1, 2, 0, share=0.95))]
        data.append({"index": partition, "records": batches})
    return draw.step(
        "Produce",
        transactional_id=draw.usually(None, "$x:0", share=0.97),
        acks=draw.usually(-1, 1, 2, -2, share=0.85),
        timeout_ms=1000,
        topic_data=[{"name": topic, "partition_data": data}],
    )


def fetch(draw: Draw) -> Step:
    """Fetch with limits, without a session or at the beginning of one."""
    partitions = [
        {
            "partition": partition,
            "current_leader_epoch": draw.usually(-1, 0, 1, -2, share=0.8),
            "fetch_offset": draw.offset(),
            "last_fetched_epoch": draw.usually(-1, 0, 5, share=0.95),
            "log_start_offset": draw.usually(-1, 3, share=0.9),
            "partition_max_bytes": draw.usually(1 << 20, 0, 1, 90, 200, -1, share=0.6),
        }
        for partition in draw.partitions()
    ]
    session = draw.usually((0, -1), (0, 0), (5, 3), (5, -1), (0, 4), share=0.9)
    return draw.step(
        "Fetch",
        replica_id=draw.usually(-1, -2, 0, 9, share=0.97),
        max_wait_ms=draw.one(0, 1),
        min_bytes=draw.one(0, 1),
        max_bytes=draw.usually(1 << 20, 0, 1, 90, 200, -1, share=0.6),
        isolation_level=draw.one(0, 1),
        session_id=session[0],
        session_epoch=session[1],
        topics=[{"topic": draw.topic(), "partitions": partitions}],
    )


def fetch_in_session(draw: Draw) -> Iterator[Step]:
    """Fetch in a session of its own: all partitions, then what has changed, with partitions forgotten and added."""
    topics = [draw.topic()]
    first, last = draw.versions["Fetch"]
    version = draw.rng.randint(max(first, FIRST_WITH_SESSIONS), last)
    session = f"$s:{draw.sessions}"
    draw.sessions += 1

    def asked(session_id: str | int, epoch: int, numbers: list[int]) -> Step:
        partitions = [
            {
                "partition": each,
                "fetch_offset": draw.rng.randint(0, 3),
                "partition_max_bytes": draw.usually(1 << 20, 90),
            }
            for each in numbers
        ]
        forgets = epoch > 0 and draw.bad(0.2)
        return draw.step(
            "Fetch",
            version=version,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=draw.one(0, 1),
            session_id=session_id,
            session_epoch=epoch,
            topics=[{"topic": each, "partitions": partitions} for each in topics] if numbers else [],
            forgotten_topics_data=[{"topic": topics[0], "partitions": [0]}] if forgets else [],
        )

    yield asked(0, 0, [0, 1])
    for epoch in range(1, draw.rng.randint(2, 4)):
        if draw.bad(0.5):
            yield produce(draw)
        yield asked(session, epoch, draw.some([0, 1], 2) if draw.bad(0.5) else [])
    if draw.bad(0.5):
        yield asked(session, draw.one(-1, 0, 1, 7), draw.usually([0], []))


def list_offsets(draw: Draw) -> Step:
    """Look up offsets: by name or by timestamp."""
    by_time = BEGAN_MS + 1000 * draw.rng.randint(-1, 11) + draw.one(-1, 0, 0, 1)
    partitions = [
        {
            "partition_index": partition,
            "current_leader_epoch": draw.usually(-1, 0, 1, share=0.85),
            "timestamp": draw.usually(by_time, -1, -2, -3, -4, -5, -6, 0, share=0.5),
        }
        for partition in draw.partitions()
    ]
    return draw.step(
        "ListOffsets",
        replica_id=draw.usually(-1, -2, 0, share=0.95),
        isolation_level=draw.one(0, 1),
        topics=[{"name": draw.topic(), "partitions": partitions}],
    )


def delete_records(draw: Draw) -> Step:
    """Delete records before an offset."""
    partitions = [{"partition_index": each, "offset": draw.offset()} for each in draw.partitions()]
    return draw.step("DeleteRecords", topics=[{"name": draw.topic(), "partitions": partitions}], timeout_ms=1000)


def offset_for_leader_epoch(draw: Draw) -> Step:
    """Ask where a leader epoch ends."""
    partitions = [
        {
            "partition": each,
            "current_leader_epoch": draw.usually(-1, 0, 1),
            "leader_epoch": draw.one(0, 0, 1, -1, -2, 5),
        }
        for each in draw.partitions()
    ]
    return draw.step(
        "OffsetForLeaderEpoch",
        replica_id=draw.usually(-1, -2, 0),
        topics=[{"topic": draw.topic(), "partitions": partitions}],
    )


def describe_producers(draw: Draw) -> Step:
    """Ask for the producers of partitions."""
    topics = [{"name": draw.topic(), "partition_indexes": draw.partitions()}]
    return draw.step("DescribeProducers", topics=topics)


def init_idempotent(draw: Draw) -> Step:
    """A producer id without a transactional id."""
    draw.producers += 1
    return draw.step("InitProducerId", transactional_id=None, transaction_timeout_ms=draw.one(60_000, -1, 0))


def init_transactional(draw: Draw) -> Step:
    """A session of a transactional id."""
    draw.producers += 1
    known = draw.producer() if draw.bad(0.3) else (-1, -1)
    return draw.step(
        "InitProducerId",
        transactional_id=draw.usually(draw.transactional_id(), "", share=0.97),
        transaction_timeout_ms=draw.usually(60_000, 0, -1, 10**9, share=0.93),
        producer_id=known[0],
        producer_epoch=known[1],
    )


def add_partitions(draw: Draw) -> Step:
    """Add partitions to a transaction, as clients do."""
    producer_id, epoch = draw.producer()
    topics = [{"name": draw.topic(), "partitions": draw.partitions()}]
    fields: dict[str, Any] = {
        "transactional_id": draw.transactional_id(),
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "topics": topics,
    }
    return draw.step(
        "AddPartitionsToTxn",
        version=draw.one(0, 1, 2, 3),
        **{f"v3_and_below_{name}": value for name, value in fields.items()},
    )


def transactional_produce(draw: Draw) -> Step:
    """Produce within a transaction."""
    topic, partition = draw.topic(), draw.one(0, 0, 1)
    data = [{"index": partition, "records": [batch(draw, topic, partition, attributes=0x10)]}]
    return draw.step(
        "Produce",
        transactional_id=draw.usually(draw.transactional_id(), None, share=0.95),
        acks=draw.usually(-1, 1, share=0.95),
        timeout_ms=1000,
        topic_data=[{"name": topic, "partition_data": data}],
    )


def add_offsets(draw: Draw) -> Step:
    """Add a group's offsets to a transaction."""
    producer_id, epoch = draw.producer()
    return draw.step(
        "AddOffsetsToTxn",
        transactional_id=draw.transactional_id(),
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=draw.group(),
    )


def commit_in_transaction(draw: Draw) -> Step:
    """Commit offsets within a transaction."""
    producer_id, epoch = draw.producer()
    partitions = [
        {"partition_index": each, "committed_offset": draw.offset(), "committed_metadata": draw.one("", "m", None)}
        for each in draw.partitions()
    ]
    return draw.step(
        "TxnOffsetCommit",
        transactional_id=draw.transactional_id(),
        group_id=draw.group(),
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id=draw.usually(-1, 1, share=0.9),
        member_id=draw.usually("", "other", share=0.95),
        topics=[{"name": draw.topic(), "partitions": partitions}],
    )


def end(draw: Draw) -> Step:
    """End a transaction."""
    producer_id, epoch = draw.producer()
    return draw.step(
        "EndTxn",
        transactional_id=draw.transactional_id(),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=draw.one(True, True, False),
    )


def write_markers(draw: Draw) -> Step:
    """Write markers as coordinators do, some of which come from an earlier one."""
    producer_id, epoch = draw.producer()
    marker = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": draw.one(True, False),
        "topics": [{"name": draw.topic(), "partition_indexes": draw.partitions()}],
        "coordinator_epoch": draw.one(0, 0, 1, 2),
    }
    return draw.step("WriteTxnMarkers", markers=[marker])


def describe_transactions(draw: Draw) -> Step:
    """Describe transactional ids."""
    return draw.step("DescribeTransactions", transactional_ids=draw.some(["$x:0", "$x:1", "", "$x:9"], 2))


def list_transactions(draw: Draw) -> Step:
    """List transactions."""
    states = draw.some(["Ongoing", "Empty", "CompleteCommit", "nonsense"], 2) if draw.bad(0.5) else []
    return draw.step("ListTransactions", state_filters=states, producer_id_filters=draw.usually([], ["$p:0"]))
