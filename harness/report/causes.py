"""Which violations have the same cause.

A record is lost when a broker without it becomes leader. All that checks find about offsets that one change of leader
lost, and about the leadership before it, has that cause; so have changes of leader of several partitions under one
fault. Any other cause is the place: a transaction, an offset, or a leader epoch.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.progress import number_of
from harness.report.evidence import RunEvidence
from harness.report.findings import Row
from harness.report.moments import as_json, broker
from harness.report.step_story import illegal_step

LOSSES = ("lost-write", "lost-committed-write", "unseen", "I10")
"""Checks whose violations are lost records."""
COMPARING = (*LOSSES, "I6", "I7", "I9", "I11", "inconsistent-offsets")
"""Checks whose violation at an offset that a change of leader cut off shows that the change broke a promise."""

Key = tuple[Any, ...]
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A change of leader that lost the end of a partition."""

    partition: Partition
    leader_epoch: int
    """Of the leader that lacked records."""
    previous_leader_epoch: int
    broker: int
    first_offset: int
    """Where the log of the new leader ended."""
    end_offset: int
    """Where the logs of earlier leaders ended."""
    time_ns: int

    @property
    def text(self) -> str:
        """As a sentence without its full stop."""
        (topic, partition), last = self.partition, self.end_offset - 1
        lost = f"offset {last}" if last == self.first_offset else f"offsets {self.first_offset} to {last}"
        return (
            f"{broker(self.broker)} became leader of {topic}-{partition} in epoch {self.leader_epoch} with a log that "
            f"ended at {self.first_offset}: the records that earlier leaders had written at {lost} were lost"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Violations with one cause."""

    told: Row
    """The violation whose story stands for all: of a lost record, at the place that most checks name."""
    rows: list[Row]
    totals: Mapping[str, int]
    """Violations of each check, of all causes."""
    losses: list[Loss]
    """Changes of leader that lost records; empty for other causes."""

    @property
    def is_loss(self) -> bool:
        """Whether a check saw a lost record."""
        return any(row["check"] in LOSSES for row in self.rows)

    @property
    def sights(self) -> list[tuple[Row, str]]:
        """Of each check its first violation and how many have this cause; the told one first, the others by name."""
        by_check: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            by_check[row["check"]].append(row)
        seen = by_check.pop(self.told["check"])
        others = [(each[0], len(each)) for _, each in sorted(by_check.items())]
        return [(row, self._counted(row["check"], count)) for row, count in ((self.told, len(seen)), *others)]

    def _counted(self, check: str, count: int) -> str:
        every = number_of(self.totals[check], "violation")
        return every if count == self.totals[check] else f"{count:,} of {every}"


def causes_of(evidence: RunEvidence) -> list[Cause]:
    """Return the causes of all violations, losses and those that many checks saw first."""
    broken = [row for row in evidence.findings() if row["severity"] == "violation"]
    partitions = sorted({part for row in broken if (part := partition_of(row)) is not None})
    losses = {partition: _losses_seen(evidence, partition, broken) for partition in partitions}
    faults_ns = sorted(row["injected_ns"] for row in evidence.rows("fault_windows", "injection") if row["injected_ns"])
    groups = _Groups()
    found: dict[int, Loss] = {}
    for row in broken:
        partition = partition_of(row)
        loss = _loss_of(row, losses[partition]) if partition else None
        groups.add(row, list(_places_of(row)) if loss is None else [_fault_of(loss, faults_ns)])
        if loss is not None:
            found[id(row)] = loss
    totals = Counter(row["check"] for row in broken)
    causes = (_cause(rows, [found[id(row)] for row in rows if id(row) in found], totals) for rows in groups.all)
    return sorted(causes, key=_order)


def partition_of(row: Row) -> Partition | None:
    """Return the partition that a finding names."""
    return None if row["topic"] is None or row["partition"] is None else (row["topic"], row["partition"])


def worth_telling(causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes that lost records, and of the others those with a check that none before them has."""
    told: list[Cause] = []
    seen: set[str] = set()
    for cause in causes:
        checks = {row["check"] for row in cause.rows}
        if (cause.is_loss and cause.losses) or not seen >= checks:
            told.append(cause)
            seen |= checks
    return told


class _Groups:
    """Rows that are joined if they share a key."""

    def __init__(self) -> None:
        self._rows: dict[Key, list[Row]] = {}

    def add(self, row: Row, keys: Sequence[Key]) -> None:
        """Add a row to the groups of its keys, which become one."""
        joined = {id(rows): rows for key in keys if (rows := self._rows.get(key)) is not None}
        first, *others = joined.values() or [[]]
        for rows in others:
            first += rows
            self._rows |= {key: first for key, known in self._rows.items() if known is rows}
        first.append(row)
        self._rows |= dict.fromkeys(keys, first)

    @property
    def all(self) -> list[list[Row]]:
        """Each group once, in the order of their first rows."""
        return list({id(rows): rows for rows in self._rows.values()}.values())


def _order(cause: Cause) -> tuple[bool, int, int, bool]:
    since_ns = min((loss.time_ns for loss in cause.losses), default=sys.maxsize)
    return not cause.is_loss, since_ns, -len(cause.sights), cause.told["offset"] is None


def _cause(rows: Sequence[Row], losses: Sequence[Loss], totals: Mapping[str, int]) -> Cause:
    checks: dict[Key, set[str]] = defaultdict(set)
    for row in rows:
        checks[_spot(row)].add(row["check"])
    told = min(rows, key=lambda row: (row["check"] not in LOSSES, -len(checks[_spot(row)]), row["offset"] is None))
    place = partition_of(told)
    ordered = sorted(dict.fromkeys(losses), key=lambda loss: (loss.partition != place, loss.time_ns, loss.partition))
    return Cause(told=told, rows=list(rows), totals=totals, losses=ordered)


def _spot(row: Row) -> Key:
    """Return the offset of a partition, or without one its leader epoch."""
    return row["topic"], row["partition"], row["offset"], row["leader_epoch"] if row["offset"] is None else None


def _places_of(row: Row) -> Iterator[Key]:
    """Yield what a violation is about if no change of leader lost it."""
    yield _spot(row)
    if row["check"] in LOSSES and row["leader_epoch"] is not None:
        yield "lost", row["topic"], row["partition"], row["leader_epoch"]
    for text in row.get("evidence") or ():
        shown = as_json(text)
        if isinstance(shown, dict) and shown.get("process") and shown.get("transaction") is not None:
            yield "transaction", shown["process"], shown["transaction"]


def _losses_seen(evidence: RunEvidence, partition: Partition, broken: Sequence[Row]) -> list[Loss]:
    """Return the changes of leader that lost records of a promise; records without one may be lost."""
    losses = list(_losses(evidence, partition))
    comparing = (row for row in broken if row["check"] in COMPARING and partition_of(row) == partition)
    seen = {_loss_of(row, losses) for row in comparing}
    return [loss for loss in losses if loss in seen]


def _losses(evidence: RunEvidence, partition: Partition) -> Iterator[Loss]:
    """Yield the changes of leader that lost records: the new log ended before that of an earlier leader."""
    place = dict(zip(("topic", "partition"), partition, strict=True))
    claims: dict[int, Row] = {}
    for row in evidence.matching("leadership_claims", role="leader", **place):
        if row["time_ns"] is not None and row["log_end_offset"] is not None:
            claims.setdefault(row["leader_epoch"], row)
    written = [row for row in evidence.matching("appends", role="leader", **place) if row["last_offset"] is not None]
    for previous, epoch in pairwise(sorted(claims)):
        row = claims[epoch]
        ends = [claims[previous]["log_end_offset"]]
        ends += [each["last_offset"] + 1 for each in written if previous <= each["leader_epoch"] < epoch]
        if max(ends) > row["log_end_offset"]:
            yield Loss(
                partition=partition,
                leader_epoch=epoch,
                previous_leader_epoch=previous,
                broker=row["broker"],
                first_offset=row["log_end_offset"],
                end_offset=max(ends),
                time_ns=row["time_ns"],
            )


def _loss_of(row: Row, losses: Sequence[Loss]) -> Loss | None:
    """Return the change of leader that lost a finding's offset, or that ended or began its leader epoch."""
    step = illegal_step(row)
    offset, epoch = (row["offset"], row["leader_epoch"]) if step is None else (step.offset, step.leader_epoch)
    for loss in losses:
        is_earlier = epoch is not None and loss.leader_epoch < epoch
        if offset is not None and not is_earlier and loss.first_offset <= offset <= loss.end_offset:
            return loss
    if row["offset"] is not None or epoch is None:
        return None
    ended = (loss for loss in losses if loss.previous_leader_epoch == epoch)
    return next(ended, None) or next((loss for loss in losses if loss.leader_epoch == epoch), None)


def _fault_of(loss: Loss, faults_ns: Sequence[int]) -> Key:
    """Return the last fault before a loss; the loss itself if there is none."""
    before = [each for each in faults_ns if each <= loss.time_ns]
    return ("fault", max(before)) if before else ("loss", loss.partition, loss.leader_epoch)
