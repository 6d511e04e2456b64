"""Corruptions of what logs and coordinators say of transactions, in every replica alike unless they say otherwise."""

from collections import Counter

from tests.analysis.model_cluster import PAYMENTS, TRANSACTIONS
from tests.analysis.model_evidence import REPLICAS, STATE_CHANGES, Evidence, Line

STRANGER = 999_999
"""Id of a producer that no transactional id has."""


def _of_broker(run: Evidence, type_: str, topic: str = PAYMENTS, broker: int = 1) -> list[Line]:
    return list(run.lines(REPLICAS, type=type_, topic=topic, broker=broker))


def _everywhere(run: Evidence, line: Line, place: str = "offset") -> list[Line]:
    """Return the same line of every replica."""
    same = ("type", "topic", "partition", "producer_id", place)
    return list(run.lines(REPLICAS, **{name: line[name] for name in same}))


def _markers(run: Evidence, *, of_several: bool = False, result: str = "") -> list[Line]:
    """Return the markers of a producer in a partition, the last ones first; none if a loss may be allowed."""
    if any(run.lines(STATE_CHANGES, ev="election", unclean=True)):
        return []
    markers = _of_broker(run, "marker")
    counts = Counter((line["producer_id"], line["partition"]) for line in markers)
    return [
        line
        for line in reversed(markers)
        if counts[(line["producer_id"], line["partition"])] > of_several
        and line["result"] in (result or line["result"])
    ]


def _final(run: Evidence) -> list[Line]:
    """Return the markers that commit and that none of their producer follows in their partition."""
    last = {(line["producer_id"], line["partition"]): line["offset"] for line in _of_broker(run, "marker")}
    markers = _markers(run, result="commit")
    return [line for line in markers if last[(line["producer_id"], line["partition"])] == line["offset"]]


def keep_partition(run: Evidence) -> bool:
    """A transaction is complete and has a partition still."""
    lines = [line for line in _of_broker(run, "transition", TRANSACTIONS) if line["state"].startswith("Complete")]
    for line in lines[-1:]:
        for each in _everywhere(run, line):
            each["partitions"] = [f"{PAYMENTS}-0"]
    return bool(lines)


def raise_epoch(run: Evidence) -> bool:
    """The epoch of a producer grows by more than one."""
    lines = [line for line in _of_broker(run, "transition", TRANSACTIONS) if line["state"] == "CompleteCommit"]
    last = _of_broker(run, "transition", TRANSACTIONS)[-1:]
    if not lines or lines[-1:] != last:
        return False
    for each in _everywhere(run, lines[-1]):
        each["producer_epoch"] = 3
    return True


def mark_early(run: Evidence) -> bool:
    """A leader writes a marker before the decision is stored."""
    first = next(run.lines(STATE_CHANGES, ev="txn_marker"), None)
    if first is not None:
        first["mono"] = 1
    return first is not None


def mark_for_stranger(run: Evidence) -> bool:
    """A marker that commits names another producer, so that the transaction has none."""
    final = _final(run)
    for each in _everywhere(run, final[0]) if final else ():
        each["producer_id"] = STRANGER
    return bool(final)


def tear(run: Evidence) -> bool:
    """A transaction that commits is aborted in one partition, after others of its producer and epoch were aborted."""

    def of(line: Line) -> tuple[object, ...]:
        return line["producer_id"], line["producer_epoch"], line["partition"]

    aborted: dict[tuple[object, ...], int] = {}
    for line in _markers(run, result="abort"):
        aborted[of(line)] = max(line["offset"], aborted.get(of(line), -1))
    commits = _markers(run, result="commit")
    torn = [line for line in commits if of(line) in aborted and line["offset"] > aborted[of(line)]]
    for each in _everywhere(run, torn[0]) if torn else ():
        each["result"] = "abort"
    return bool(torn)


def write_outside(run: Evidence) -> bool:
    """A transaction has records in a partition that it does not name, where its producer has another one."""
    markers = _markers(run, of_several=True, result="commit")
    if not markers:
        return False
    name, producer_id = f"{PAYMENTS}-{markers[0]['partition']}", markers[0]["producer_id"]
    transitions = _of_broker(run, "transition", TRANSACTIONS)
    named = [line for line in transitions if line["producer_id"] == producer_id and name in line["partitions"]]
    for line in named[-2:]:
        for each in _everywhere(run, line):
            each["partitions"] = [other for other in each["partitions"] if other != name]
    return True


def mark_from_the_past(run: Evidence) -> bool:
    """A marker has an older coordinator epoch than the one before it."""
    markers = _markers(run, of_several=True)
    if not markers:
        return False
    place = {name: markers[-1][name] for name in ("topic", "partition", "producer_id")}
    for each in _everywhere(run, markers[-1]):
        each["coordinator_epoch"] += 1_000
        if len(list(run.lines(REPLICAS, type="marker", broker=each["broker"], **place))) == 1:
            for known in run.lines(REPLICAS, type="producer", broker=each["broker"], **place):
                known["coordinator_epoch"] = each["coordinator_epoch"]
    return True


def write_fenced(run: Evidence) -> bool:
    """A producer writes in an older epoch than the partition has."""
    markers = _markers(run, of_several=True)
    if not markers:
        return False
    place = {name: markers[0][name] for name in ("producer_id", "partition")}
    first = next(line for line in _of_broker(run, "batch") if place.items() <= line.items())
    for each in _everywhere(run, first, "first_offset"):
        each["producer_epoch"] = 7
    return True


def lose_entry(run: Evidence) -> bool:
    """The index of one replica lacks an aborted transaction."""
    entries = _of_broker(run, "aborted")
    run.remove(REPLICAS, entries[:1])
    return bool(entries)


def clean_marker(run: Evidence) -> bool:
    """Compaction has removed the last marker of a producer, and its records are there."""
    final = _final(run)
    run.remove(REPLICAS, _everywhere(run, final[0]) if final else [])
    return bool(final)


def remember_otherwise(run: Evidence) -> bool:
    """A snapshot has another last record of a producer than the log."""
    producers = _of_broker(run, "producer")
    for each in producers[:1]:
        each["last_offset"] += 1
    return bool(producers)


def move_stable_offset(run: Evidence) -> bool:
    """A leader's last stable offset is past the transaction that is open."""
    line = next(run.lines(STATE_CHANGES, ev="lso", role="leader"), None)
    if line is not None:
        line["first_unstable_offset"] = line["new"] - 1
    return line is not None
