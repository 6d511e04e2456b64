"""The findings as the report shows them: by check and severity, a bounded number of each."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Row = dict[str, Any]

SHOWN_FINDINGS = 50
"""Of each check and severity; the page states the number of others in `findings.parquet`."""
SHOWN_AT_ONCE = 5
"""Number of findings that are open on the page; the others unfold."""
SEVERITIES = ("violation", "expected", "note")
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """All findings of one check with one severity."""

    check: str
    severity: str
    count: int
    excuses: list[tuple[str, int]]
    """Allowances that permit expected anomalies, and the number of anomalies of each."""
    places: list[str]
    """Partitions, each with its range of offsets; empty if the findings name none."""
    shown: list[Row]
    folded: list[Row]

    @property
    def listed(self) -> list[Row]:
        """All that are on the page."""
        return [*self.shown, *self.folded]

    def id_of(self, index: int) -> str:
        """Return the page's id of a finding."""
        return f"finding-{self.check}-{self.severity}-{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The offsets of one partition that findings name."""

    partition: str
    count: int
    first: int
    last: int

    @property
    def text(self) -> str:
        """As text."""
        if self.count == 1:
            return f"{self.partition} offset {self.first}"
        return f"{self.partition} offsets {self.first} to {self.last}"


def grouped(findings: list[Row]) -> list[FindingGroup]:
    """Return the findings by severity and check, each with a bounded number of rows to show."""
    groups = []
    for _, rows in groupby(findings, key=lambda row: (row["severity"], row["check"])):
        listed = list(rows)
        groups.append(gathered(listed, Counter(row.get("excuse") or "" for row in listed), _places(listed)))
    return groups


def gathered(first: list[Row], counts: Mapping[str, int], places: Iterable[Span]) -> FindingGroup:
    """Return findings of one check with one severity as a group.

    Args:
        first: At least the findings to show.
        counts: Number of findings by excuse; empty key for those without.
        places: The partitions that they name.
    """
    return FindingGroup(
        check=first[0]["check"],
        severity=first[0]["severity"],
        count=sum(counts.values()),
        excuses=sorted((excuse, count) for excuse, count in counts.items() if excuse),
        places=[span.text for span in places],
        shown=first[:SHOWN_AT_ONCE],
        folded=first[SHOWN_AT_ONCE:SHOWN_FINDINGS],
    )


def _places(findings: list[Row]) -> list[Span]:
    offsets: dict[str, list[int]] = {}
    for row in findings:
        if row["topic"] and row["partition"] is not None and row["offset"] is not None:
            offsets.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["offset"])
    return [
        Span(partition=partition, count=len(numbers), first=min(numbers), last=max(numbers))
        for partition, numbers in offsets.items()
    ]
