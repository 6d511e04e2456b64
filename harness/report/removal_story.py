"""What took a record from logs on purpose: cleaners that keep the last record of each key, and retention."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.report.evidence import RunEvidence
from harness.report.moments import CLIENTS, Moment, brief, broker


def of_removals(evidence: RunEvidence, place: Mapping[str, Any], offset: int) -> Iterator[Moment]:
    """Yield what removed the record at an offset of a partition from each log that lacks it at the end."""
    held = {row["broker"] for row in evidence.matching("replica_records", offset=offset, **place)}
    cleaned: dict[int, Moment] = {}
    for row in evidence.matching("compactions", **place):
        covers = row["from_offset"] <= offset < row["until_offset"]
        if covers and row["time_ns"] is not None and row["broker"] not in held:
            text = f"the cleaner of {broker(row['broker'])} goes over offsets {row['from_offset']} to"
            text += f" {row['until_offset'] - 1}, and removes records that later ones of their keys replace"
            moment = Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text, matters=True)
            cleaned[row["broker"]] = min(cleaned.get(row["broker"], moment), moment, key=lambda each: each.at_ns)
    yield from cleaned.values()
    if cleaned:
        yield from _of_successor(evidence, place, offset)
    for row in evidence.matching("segment_deletions", **place):
        if row["time_ns"] is not None and row["base_offset"] <= offset < row["end_offset"]:
            text = f"{broker(row['broker'])} deletes the segment of offsets {row['base_offset']} to"
            text += f" {row['end_offset'] - 1} (reason: {row['reason']})"
            yield Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text, matters=True)


def _of_successor(evidence: RunEvidence, place: Mapping[str, Any], offset: int) -> Iterator[Moment]:
    """Yield the next acknowledged record with the key of the record at an offset, and how its transaction ended."""
    keys = {row["key"] for row in evidence.matching("sends", offset=offset, **place)} - {None}
    for key in keys:
        of_key = evidence.matching("sends", key=key, **place)
        later = [row for row in of_key if row["complete_ns"] is not None and (row["offset"] or 0) > offset]
        for row in sorted(later, key=lambda row: row["offset"])[:1]:
            text = f"the next record of its key, {brief(row['value'])}, is acknowledged at offset {row['offset']}"
            yield Moment(at_ns=row["complete_ns"], lane=CLIENTS, text=text + in_transaction(row), matters=True)


def in_transaction(send: Mapping[str, Any]) -> str:
    """Return the transaction of a send and its outcome for the client, as the end of a sentence; empty without one."""
    if send["transaction"] is None:
        return ""
    outcome = send["transaction_outcome"] or "without a known outcome"
    return f", in transaction {send['transaction']} of {send['transactional_id']} ({outcome})"
