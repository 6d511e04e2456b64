"""Spans of time: reigns of leaders, ISRs, faults in force, times without a write."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from harness.report.evidence import Evidence
from harness.report.findings import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From one instant to the next, in seconds since the first operation."""

    from_s: float
    to_s: float

    @property
    def length_s(self) -> float:
        """How long."""
        return self.to_s - self.from_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign(Span):
    """The time of one leader of one partition."""

    partition: str
    leader: int
    leader_epoch: int
    unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Span):
    """The time of one ISR of one partition."""

    partition: str
    isr: tuple[int, ...]
    missing: int
    """Replicas of the partition outside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultWindow(Span):
    """One fault in force on one target."""

    fault: str
    target: str
    """A broker's id as text, ZooKeeper, or a client's process; empty if it has no single target."""
    healed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Span):
    """A client's transaction, from its begin to the last answer about its end."""

    transactional_id: str
    process: str
    number: int
    outcome: str
    """As its client knows: committed, aborted or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Span):
    """A time without an acknowledged write to one partition."""

    partition: str
    acks: int
    attempts: int


def reigns(evidence: Evidence) -> list[Reign]:
    """Return the leader of each partition over time, by ZooKeeper; internal topics are left out."""
    return [
        Reign(
            partition=partition,
            leader=row["leader"],
            leader_epoch=row["leader_epoch"],
            unclean=bool(row["unclean"]),
            from_s=from_s,
            to_s=to_s,
        )
        for partition, row, from_s, to_s in _lasting(evidence, "leader_epochs")
    ]


def memberships(evidence: Evidence) -> list[Membership]:
    """Return the ISRs of each partition over time, by ZooKeeper; internal topics are left out."""
    rows = list(_lasting(evidence, "isr_changes"))
    replicas: dict[str, int] = {}
    for partition, row, _, _ in rows:
        size = max(len(row["new_isr"]), len(row["assignment"] or ()))
        replicas[partition] = max(size, replicas.get(partition, 0))
    return [
        Membership(
            partition=partition,
            isr=tuple(row["new_isr"]),
            missing=max(len(row["assignment"] or ()) or replicas[partition], len(row["new_isr"])) - len(row["new_isr"]),
            from_s=from_s,
            to_s=to_s,
        )
        for partition, row, from_s, to_s in rows
    ]


def windows(evidence: Evidence) -> list[FaultWindow]:
    """Return the fault windows, one a target; a fault that was never healed lasts to the end."""
    in_force = []
    for row in evidence.rows("fault_windows", "intended_ns"):
        from_s = evidence.seconds_since_start(row["injected_ns"] or row["intended_ns"])
        healed_s = evidence.seconds_since_start(row["healed_ns"])
        if from_s is not None:
            to_s = evidence.end_s() if healed_s is None else healed_s
            healed = healed_s is not None
            in_force += [
                FaultWindow(fault=row["fault"], target=target, healed=healed, from_s=from_s, to_s=max(to_s, from_s))
                for target in row["targets"] or [""]
            ]
    return in_force


def transactions(evidence: Evidence) -> list[Transaction]:
    """Return the transactions of clients; one without an answer lasts to the end."""
    spans = []
    for row in evidence.rows("client_transactions", "begun_ns"):
        from_s = evidence.seconds_since_start(row["begun_ns"])
        if from_s is not None:
            ended_s = evidence.seconds_since_start(row["ended_ns"])
            spans.append(
                Transaction(
                    from_s=from_s,
                    to_s=max(evidence.end_s() if ended_s is None else ended_s, from_s),
                    transactional_id=row["transactional_id"] or "",
                    process=row["process"],
                    number=row["transaction"],
                    outcome=row["outcome"],
                )
            )
    return spans


def gaps(evidence: Evidence) -> list[Gap]:
    """Return the times in which no write to a partition was acknowledged though some were tried."""
    return [
        Gap(
            partition=f"{row['topic']}-{row['partition']}",
            acks=row["acks"],
            attempts=row["attempts"],
            from_s=evidence.seconds_since_start(row["from_ns"]) or 0.0,
            to_s=evidence.seconds_since_start(row["to_ns"]) or 0.0,
        )
        for row in evidence.rows("availability", "from_ns")
    ]


def _lasting(evidence: Evidence, name: str) -> Iterator[tuple[str, Row, float, float]]:
    """Yield each state of each visible partition, with its start and end."""
    rows = [row for row in evidence.rows(name, "zxid") if row["time_ns"] is not None and _visible(row["topic"])]
    ordered = sorted(rows, key=lambda row: (row["topic"], row["partition"], row["zxid"] or 0))
    for (topic, partition), group in groupby(ordered, key=lambda row: (row["topic"], row["partition"])):
        states = list(group)
        starts = [max(evidence.seconds_since_start(row["time_ns"]) or 0.0, 0.0) for row in states]
        for row, start, until in zip(states, starts, [*starts[1:], evidence.end_s()], strict=True):
            if until > start:
                yield f"{topic}-{partition}", row, start, until


def _visible(topic: str) -> bool:
    return not topic.startswith("__")
