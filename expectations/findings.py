"""Expectations about the findings of checks, for any table with one row a finding."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectNoViolations(RowExpectation):
    """Expect no finding to be a violation; expected findings and notes may be there."""

    key_columns: list[str] = pydantic.Field(default=["check"], description="What names the promise that is at stake")
    severity_column: str = pydantic.Field(default="severity", description="What a finding means")
    message_column: str = pydantic.Field(default="message", description="What was found, in a sentence")
    violation: str = pydantic.Field(default="violation", description="What stands for a violation")

    sentence: ClassVar[str] = "There must be no $violation, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["promise"], "severity_column": "level", "message_column": "text", "violation": "error"},
        holds={"promise": ["P1", "P2"], "level": ["info", "warning"], "text": ["x", "y"]},
        breaks={"promise": ["P1", "P2"], "level": ["info", "error"], "text": ["x", "y"]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it is something else."""
        return rows[self.severity_column] != self.violation


class ExpectFindingsToHaveEvidence(RowExpectation):
    """Expect every finding to name the events that show it."""

    key_columns: list[str] = pydantic.Field(default=["check"], description="What names the promise that is at stake")
    evidence_column: str = pydantic.Field(default="evidence", description="The events, an array")

    sentence: ClassVar[str] = "$evidence_column must name at least one event, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["promise"], "evidence_column": "events"},
        holds={"promise": ["P1", "P2"], "events": [["x"], ["y", "z"]]},
        breaks={"promise": ["P1", "P2"], "events": [["x"], []]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether there is an event."""
        return rows.size(self.evidence_column) > 0
