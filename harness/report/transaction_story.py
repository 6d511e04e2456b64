"""What became of the transaction that a finding names: client, coordinator, markers and readers, from facts."""

from collections.abc import Iterator, Sequence

from harness.report.evidence import RunEvidence
from harness.report.findings import Row
from harness.report.moments import CLIENTS, COORDINATOR, Moment, as_json, brief, broker

SHOWN_RECORDS = 5
"""Of a transaction: so many are followed to their readers."""
AFTER_NS = 5_000_000_000
"""So long after its client was done, what coordinator and leaders do belongs to a transaction."""


def of_transaction(evidence: RunEvidence, finding: Row) -> Iterator[Moment]:
    """Yield the moments of the transaction in a finding's evidence; none if it names none."""
    shown = [each for text in finding.get("evidence") or () if isinstance(each := as_json(text), dict)]
    named = next((each for each in shown if {"process", "transaction"} <= each.keys()), None)
    transactional_id = next((each["transactional_id"] for each in shown if each.get("transactional_id")), None)
    since_ns, until_ns = 0, evidence.last_ns
    if named is not None:
        own = {name: named[name] for name in ("process", "transaction")}
        for row in evidence.matching("client_transactions", **own):
            transactional_id = row["transactional_id"]
            since_ns = row["begun_ns"] or 0
            until_ns = (row["ended_ns"] or evidence.last_ns) + AFTER_NS
            yield from _of_client(row)
        yield from _of_records(evidence, evidence.matching("sends", **own)[:SHOWN_RECORDS])
    if transactional_id is not None:
        steps = evidence.matching("transactions", transactional_id=transactional_id)
        told = [row for row in steps if row["told_ns"] is not None and since_ns <= row["told_ns"] <= until_ns]
        yield from _of_coordinator(told)
        for producer_id in sorted({row["producer_id"] for row in told}):
            writes = evidence.matching("marker_writes", producer_id=producer_id)
            yield from _of_markers([row for row in writes if since_ns <= row["time_ns"] <= until_ns])


def _of_client(row: Row) -> Iterator[Moment]:
    whose = f"transaction {row['transaction']} of {row['process']} ({row['transactional_id']})"
    told = {"committed": "is told that it is committed", "aborted": "never gets a commit through"}
    steps = (
        ("begun_ns", f"{whose} begins"),
        ("commit_ns", f"{row['process']} asks to commit it"),
        ("abort_ns", f"{row['process']} asks to abort it"),
        ("ended_ns", f"{row['process']} {told.get(row['outcome'], 'does not learn how it ends')}"),
    )
    for column, text in steps:
        if row[column] is not None:
            yield Moment(at_ns=row[column], lane=CLIENTS, text=text, matters=True)


def _of_records(evidence: RunEvidence, sends: Sequence[Row]) -> Iterator[Moment]:
    for sent in sends:
        place = f"{sent['topic']}-{sent['partition']}"
        if sent["complete_ns"] is not None and sent["offset"] is not None:
            text = f"{brief(sent['value'])} of it is acknowledged at {place} offset {sent['offset']}"
            yield Moment(at_ns=sent["complete_ns"], lane=CLIENTS, text=text)
        first: dict[str, Row] = {}
        for row in sorted(evidence.matching("polls", value=sent["value"]), key=lambda row: row["time_ns"]):
            first.setdefault(row["isolation"] or "an unknown isolation level", row)
        for level, row in first.items():
            text = f"{row['process']} reads {brief(sent['value'])} at {place} with {level}"
            yield Moment(at_ns=row["time_ns"], lane=CLIENTS, text=text, matters=level == "read_committed")


def _of_coordinator(steps: Sequence[Row]) -> Iterator[Moment]:
    for row in steps:
        partitions = f" with {', '.join(row['partitions'])}" if row["partitions"] else ""
        text = (
            f"{row['transactional_id']} becomes {row['state']}{partitions} "
            f"(producer {row['producer_id']}, epoch {row['producer_epoch']})"
        )
        yield Moment(at_ns=row["told_ns"], lane=COORDINATOR, text=text, matters=row["state"] != "Ongoing")


def _of_markers(writes: Sequence[Row]) -> Iterator[Moment]:
    for row in writes:
        text = (
            f"{broker(row['broker'])} writes the {row['result']} marker of producer {row['producer_id']} at "
            f"{row['topic']}-{row['partition']} offset {row['offset']} (coordinator epoch {row['coordinator_epoch']})"
        )
        yield Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text, matters=True)
