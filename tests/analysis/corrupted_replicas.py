"""Corruptions of replicas' logs, and the ways into a run's lines that others share."""

import json
from collections.abc import Iterator

from tests.analysis.model_cluster import ORDERS
from tests.analysis.model_evidence import OPERATIONS, REPLICAS, ZOOKEEPER, Evidence, Line, replica_dump

Place = tuple[int, int]
"""Partition of the kept topic, and offset."""


def acknowledged(run: Evidence, process: str = "p0") -> list[Line]:
    """Return the sends to the kept topic that ended well."""
    lines = run.lines(OPERATIONS, process=process, kind="send", type="ok", topic=ORDERS)
    return [line for line in lines if line["offset"] >= 0]


def polled(run: Evidence, partition: int, offset: int) -> list[tuple[Line, Line]]:
    """Return the polls of the kept topic that gave this offset, each with its record."""
    return [
        (poll, record)
        for poll in run.lines(OPERATIONS, kind="poll", type="ok")
        for record in poll["records"]
        if (record["topic"], record["partition"], record["offset"]) == (ORDERS, partition, offset)
    ]


def held(run: Evidence, partition: int, offset: int) -> dict[int, Line]:
    """Return what each broker holds there."""
    lines = run.lines(REPLICAS, type="record", topic=ORDERS, partition=partition, offset=offset)
    return {line["broker"]: line for line in lines}


def replica(run: Evidence, broker: int, partition: int) -> Line:
    """Return the first line of a dump."""
    return run.files[REPLICAS][replica_dump(broker, ORDERS, partition)][0]


def states(run: Evidence, partition: int) -> list[tuple[Line, Line]]:
    """Return the versions of a partition's state znode, each with what it holds."""
    path = f"/brokers/topics/{ORDERS}/partitions/{partition}/state"
    return [(line, json.loads(line["data"])) for line in run.lines(ZOOKEEPER, path=path)]


def last_isr(run: Evidence, partition: int) -> list[int]:
    isr: list[int] = states(run, partition)[-1][1]["isr"]
    return sorted(isr)


def read_by_all(run: Evidence, *, inside: bool) -> Iterator[tuple[Line, Place]]:
    """Yield the idempotent producer's acknowledged records that two consumers read and all the last ISR holds.

    Inside are those with records of the same producer on both sides.
    """
    for line in acknowledged(run):
        partition, offset = line["partition"], line["offset"]
        here = held(run, partition, offset)
        if len(last_isr(run, partition)) < 2 or len(polled(run, partition, offset)) < 2 or not here:
            continue
        ids = {each["producer_id"] for each in here.values()}
        around = [held(run, partition, offset + step) for step in (-1, 1)]
        is_inside = all(each and {one["producer_id"] for one in each.values()} == ids for each in around)
        if is_inside == inside and (inside or not around[1]):
            yield line, (partition, offset)


def first_inside(run: Evidence) -> tuple[Line, Place] | None:
    return next(read_by_all(run, inside=True), None)


def very_last(run: Evidence) -> tuple[Line, Place] | None:
    return next(read_by_all(run, inside=False), None)


def _on_one(run: Evidence) -> Line | None:
    """Return such a record as the last member of the last ISR holds it."""
    sent = first_inside(run)
    if sent is None:
        return None
    _, (partition, offset) = sent
    return held(run, partition, offset)[last_isr(run, partition)[-1]]


def lack(run: Evidence) -> bool:
    record = _on_one(run)
    run.remove(REPLICAS, [record] if record else [])
    return record is not None


def lack_last(run: Evidence) -> bool:
    sent = very_last(run)
    if sent is None:
        return False
    _, (partition, offset) = sent
    broker = last_isr(run, partition)[-1]
    run.remove(REPLICAS, [held(run, partition, offset)[broker]])
    replica(run, broker, partition)["log_end_offset"] -= 1
    return True


def other_value(run: Evidence) -> bool:
    record = _on_one(run)
    if record is not None:
        record |= {"value": "another", "digest": "digest of another"}
    return record is not None


def other_bytes(run: Evidence) -> bool:
    record = _on_one(run)
    if record is not None:
        record["digest"] = "digest of another header"
    return record is not None


def flat_cache(run: Evidence) -> bool:
    line = replica(run, 1, 0)
    line["leader_epochs"] = [[0, 0], [1, 0]]
    return True


def forget_epoch(run: Evidence) -> bool:
    line = replica(run, last_isr(run, 0)[-1], 0)
    line["leader_epochs"] = line["leader_epochs"][1:]
    return bool(held(run, 0, 0))


def epoch_of_nobody(run: Evidence) -> bool:
    line = replica(run, last_isr(run, 0)[-1], 0)
    line["leader_epochs"] = [*line["leader_epochs"], [99, line["log_end_offset"] + 1]]
    return True


def foreign_epoch(run: Evidence) -> bool:
    sent = very_last(run)
    for record in held(run, *sent[1]).values() if sent else ():
        record["leader_epoch"] += 50
    return sent is not None


def repeat_sequence(run: Evidence) -> bool:
    sent = first_inside(run)
    for record in held(run, *sent[1]).values() if sent else ():
        record["sequence"] -= 1
    return sent is not None


def lose_dump(run: Evidence) -> bool:
    del run.files[REPLICAS][replica_dump(last_isr(run, 0)[-1], ORDERS, 0)]
    return True
