"""The content of `verdict.json`: everything that a run came to, small enough for a task's return value."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.errors import EvidenceError
from harness.verdict import EnvironmentVerdict, FaultVerdict, SystemVerdict, Verdicts, worst_fault, worst_system

DERIVED = ("verdicts", "exit_code")
"""Written for readers that know no Python, and made anew from the parts by those that do."""


class Part(BaseModel):
    """Refuses unknown keys and numbers that are none, and repeats in no log what stood there; never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class FaultResult(Part):
    """What became of one injection of the plan."""

    injection: int
    fault: str
    targets: list[str]
    verdict: str
    """Name of a `FaultVerdict`."""
    detail: str


class CheckResult(Part):
    """What one check found."""

    check: str
    promise: str
    verdict: str
    """Name of a `SystemVerdict`."""
    violations: int = 0
    expected: int = 0
    notes: int = 0
    reason: str = ""
    """Why the verdict is UNKNOWN, or the first violation in a sentence."""

    @property
    def found(self) -> str:
        """How much was found of each severity, in words; empty if nothing was."""
        numbers = [
            (self.violations, "violation" if self.violations == 1 else "violations"),
            (self.expected, "expected"),
            (self.notes, "note" if self.notes == 1 else "notes"),
        ]
        return ", ".join(f"{number} {what}" for number, what in numbers if number)


class SuiteResult(Part):
    """What one Great Expectations suite found."""

    suite: str
    verdict: str
    """Name of a `SystemVerdict`; UNKNOWN when its table was empty."""
    evaluated: int
    unsuccessful: int
    failures: list[str] = []
    """The failed expectations as sentences."""
    expected: list[str] = []
    """Those that were not met, and need not be where the settings allow a loss; as sentences."""
    reason: str = ""
    """Why nothing was evaluated."""


class RunResult(Part):
    """The result of one run; re-judging replaces checks and suites and keeps the rest."""

    run_id: str
    scenario: str
    driver: str
    seed: int
    planted_bugs: list[str] = []
    started_at: str
    """UTC, ISO 8601."""
    duration_s: float
    phase_durations_s: dict[str, float] = {}
    faults: list[FaultResult] = []
    checks: list[CheckResult] = []
    suites: list[SuiteResult] = []
    residue: list[str] = []
    """What was left behind, in a sentence each; empty is CLEAN."""
    evidence: list[str] = []
    """Remarks on the quality of the evidence: torn lines, missing files, an interrupted run."""
    evidence_damaged: bool = False
    """Whether a remark forbids PASS: the run was interrupted, or the steady state never came back."""
    counts: dict[str, int] = {}
    """Rows a fact, operations, anomalies."""

    @property
    def verdicts(self) -> Verdicts:
        """The three verdicts that the parts add up to."""
        system = worst_system(
            [SystemVerdict[part.verdict] for part in self.checks]
            + [SystemVerdict[part.verdict] for part in self.suites]
            + ([SystemVerdict.UNKNOWN] if self.evidence_damaged else [])
        )
        return Verdicts(
            fault=worst_fault(FaultVerdict[part.verdict] for part in self.faults),
            system=system,
            environment=EnvironmentVerdict.RESIDUE if self.residue else EnvironmentVerdict.CLEAN,
        )

    def save(self, path: Path) -> None:
        """Write `verdict.json`, verdicts and exit code included for readers that know no Python."""
        verdicts = self.verdicts
        data: dict[str, Any] = {
            "verdicts": {
                "fault": verdicts.fault.name,
                "system": verdicts.system.name,
                "environment": verdicts.environment.name,
            },
            "exit_code": int(verdicts.exit_code),
        }
        model = self.model_dump(mode="json")
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps({**data, **model}, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> "RunResult":
        """Read `verdict.json`.

        Raises:
            EvidenceError: the file is missing or not a result.
        """
        try:
            return cls.from_json(path.read_bytes(), str(path))
        except OSError as error:
            raise EvidenceError(f"{path}: not a run's result: {error}") from error

    @classmethod
    def from_json(cls, text: bytes, where: str) -> "RunResult":
        """Return what `save` wrote, wherever it lies now.

        Raises:
            EvidenceError: it is not a result.
        """
        try:
            data = json.loads(text)
            return cls.model_validate({key: value for key, value in data.items() if key not in DERIVED})
        except (ValueError, AttributeError, RecursionError) as error:
            raise EvidenceError(f"{where}: not a run's result: {error}") from error
