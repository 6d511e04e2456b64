"""The instant of each finding on the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts.registry import check_title
from harness.report.evidence import Evidence
from harness.report.findings import FindingGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A finding in the timeline."""

    id: str
    """Of the finding's element on the page."""
    at_s: float
    check: str
    """Its title."""
    text: str


def marks_of(evidence: Evidence, groups: Sequence[FindingGroup]) -> dict[str, Mark]:
    """Return the marks of the shown findings, by the id of each; some findings have no instant."""
    named = [(group.id_of(index), row) for group in groups for index, row in enumerate(group.listed)]
    instants = evidence.instants([row for _, row in named])
    return {
        id_: Mark(id=id_, at_s=at_s, check=check_title(row["check"]), text=row["message"])
        for (id_, row), instant in zip(named, instants, strict=True)
        if (at_s := evidence.seconds_since_start(instant)) is not None
    }
