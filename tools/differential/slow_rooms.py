"""Random calls whose effect comes with time: retention by size and time, compaction, expiry of offsets and producers,
and transactions that take too long.
"""

from collections.abc import Iterator
from typing import Any

from harness.client_rules.scripts.script import ASK, SETTLE, Step
from tools.differential.draws import Draw

OLDEST, LATEST = -2, -1
MOST_RECORDS = 24
LONG_MS = 60_000
DAY_MS = 86_400_000
YEARS_MS = 50 * 365 * DAY_MS
"""Later than now, whenever that is."""


def _create(draw: Draw, **configs: str) -> Step:
    values = {"retention.ms": "-1", "segment.bytes": draw.one("200", "300", "500"), "file.delete.delay.ms": "100"}
    values |= {name.replace("_", "."): value for name, value in configs.items()}
    topic = {
        "name": draw.new_topic(),
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": name, "value": value} for name, value in values.items()],
    }
    return draw.step("CreateTopics", topics=[topic], timeout_ms=5000)


def _write(draw: Draw, later_ms: int = 0, *, keys: tuple[str, ...] = ("k0", "k1", "k2"), codec: int = 0) -> Step:
    records = [
        [
            draw.one(*keys),
            draw.usually(draw.one("a", "b", 30), None, share=0.85),
            later_ms + 1000 * draw.rng.randint(0, 9),
        ]
        for _ in range(draw.rng.randint(1, 3))
    ]
    data = [{"index": 0, "records": [{"records": records, "codec": codec}]}]
    return draw.step("Produce", acks=-1, timeout_ms=1000, topic_data=[{"name": "$t:0", "partition_data": data}])


def _configure(draw: Draw, **configs: str) -> Step:
    changes = [
        {"name": name.replace("_", "."), "value": value, "config_operation": 0} for name, value in configs.items()
    ]
    resource = {"resource_type": 2, "resource_name": "$t:0", "configs": changes}
    return draw.step("IncrementalAlterConfigs", resources=[resource])


def _start(draw: Draw, how: str = SETTLE) -> Step:
    partitions = [{"partition_index": 0, "timestamp": OLDEST}]
    return draw.step("ListOffsets", how=how, replica_id=-1, topics=[{"name": "$t:0", "partitions": partitions}])


def _batches(draw: Draw) -> Iterator[Step]:
    """Fetch batch by batch: Kafka's answer ends with a segment, that of this project's broker does not."""
    for offset in range(0, MOST_RECORDS, 2):
        partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}]
        how = ASK if offset else SETTLE
        yield draw.step("Fetch", how=how, max_bytes=1, topics=[{"topic": "$t:0", "partitions": partitions}])


def retention(draw: Draw) -> Iterator[Step]:
    """Old records and new ones, then a retention by size or by time, then what is left."""
    yield _create(draw)
    for _ in range(draw.rng.randint(2, 8)):
        yield _write(draw, draw.usually(0, YEARS_MS, share=0.6))
    for _ in range(draw.rng.randint(1, 2)):
        yield draw.one(
            _configure(draw, retention_ms=draw.one("1000", str(DAY_MS))),
            _configure(draw, retention_bytes=draw.one("0", "1", "300", "600")),
            _configure(draw, retention_ms="-1", retention_bytes="400"),
        )
        yield _start(draw)
        if draw.bad(0.5):
            yield _write(draw, draw.one(0, YEARS_MS))
            yield _start(draw)
    yield from _batches(draw)


def compaction(draw: Draw) -> Iterator[Step]:
    """Keys again and again, then a compaction, then what is left."""
    yield _create(draw, min_cleanable_dirty_ratio="0", delete_retention_ms=draw.one("0", "100000"))
    transacts = draw.bad(0.4)
    if transacts:
        yield draw.step("InitProducerId", transactional_id="$x:0", transaction_timeout_ms=LONG_MS)
    sequence = 0
    for _ in range(draw.rng.randint(3, 10)):
        if transacts and draw.bad(0.5):
            yield from _transaction(draw, sequence)
            sequence += 1
        else:
            yield _write(draw, codec=draw.usually(0, 1, 2, 3, 4, share=0.7))
    yield _write(draw, keys=("filling",), codec=0)
    more = {"min_compaction_lag_ms": "1"} if draw.bad(0.2) else {}
    yield _configure(draw, cleanup_policy="compact", **more)
    yield from _batches(draw)
    yield _write(draw)
    yield _write(draw, keys=("filling",))
    yield from _batches(draw)
    yield _start(draw, how="ask")


_PRODUCER: dict[str, Any] = {"transactional_id": "$x:0", "producer_id": "$p:0", "producer_epoch": "$e:0"}


def _added(draw: Draw) -> Step:
    added = _PRODUCER | {"topics": [{"name": "$t:0", "partitions": [0]}]}
    return draw.step("AddPartitionsToTxn", version=3, **{f"v3_and_below_{name}": each for name, each in added.items()})


def _sent(draw: Draw, key: str, sequence: int) -> Step:
    batch = {
        "records": [[key, draw.usually("a", None, share=0.7), 0]],
        "producer": "$p:0",
        "epoch": "$e:0",
        "sequence": sequence,
        "attributes": 0x10,
    }
    data = [{"name": "$t:0", "partition_data": [{"index": 0, "records": [batch]}]}]
    return draw.step("Produce", transactional_id="$x:0", acks=-1, timeout_ms=1000, topic_data=data)


def _transaction(draw: Draw, sequence: int) -> Iterator[Step]:
    """One record in a transaction that is committed or aborted."""
    yield _added(draw)
    yield _sent(draw, draw.one("k0", "k1", "k2"), sequence)
    yield draw.step("EndTxn", committed=draw.one(True, True, False), **_PRODUCER)


def expiry(draw: Draw) -> Iterator[Step]:
    """Offsets that are kept for a time of their own, of a group without members."""
    yield _create(draw)
    for _ in range(draw.rng.randint(1, 4)):
        partitions = [
            {"partition_index": each, "committed_offset": draw.rng.randint(0, 5), "committed_metadata": ""}
            for each in draw.some([0, 1, 2], 2)
        ]
        yield draw.step(
            "OffsetCommit",
            version=draw.one(2, 3, 4, 7),
            group_id="$g:0",
            generation_id_or_member_epoch=-1,
            retention_time_ms=draw.one(-1, 0, 1, 300, 10**8),
            topics=[{"name": "$t:0", "partitions": partitions}],
        )
    asked = [{"name": "$t:0", "partition_indexes": [0, 1, 2]}]
    yield draw.step("OffsetFetch", how=SETTLE, version=5, group_id="$g:0", topics=asked)
    yield draw.step("DescribeGroups", groups=["$g:0"])


def timeouts(draw: Draw) -> Iterator[Step]:
    """A transaction that takes too long or ends in time, then the expiry of its id and of its producer."""
    yield _create(draw)
    timeout_ms = draw.one(300, 300, LONG_MS)
    yield draw.step("InitProducerId", transactional_id="$x:0", transaction_timeout_ms=timeout_ms)
    yield _added(draw)
    if draw.bad(0.8):
        yield _sent(draw, "k0", 0)
    if timeout_ms == LONG_MS:
        yield draw.step("EndTxn", committed=draw.one(True, False), **_PRODUCER)
    asked = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    of_topic = [{"topic": "$t:0", "partitions": asked}]
    yield draw.step("Fetch", how=SETTLE, max_bytes=1 << 20, isolation_level=draw.one(0, 1), topics=of_topic)
    yield draw.step("DescribeTransactions", how=SETTLE, transactional_ids=["$x:0"])
    yield draw.step("DescribeProducers", how=SETTLE, topics=[{"name": "$t:0", "partition_indexes": [0]}])
    if draw.bad(0.5):
        yield _sent(draw, "k0", 0)
    yield draw.step("EndTxn", committed=draw.one(True, False), **_PRODUCER)
    yield draw.step("InitProducerId", transactional_id="$x:0", transaction_timeout_ms=LONG_MS)
