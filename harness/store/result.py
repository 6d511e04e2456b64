"""The content of `verdict.json`: all results of a run, small enough for a task's return value."""

import json
import re
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from harness.errors import EvidenceError
from harness.progress import number_of
from harness.store.folder import RunFolder
from harness.store.reserve import write_whole
from harness.verdict import (
    EXIT_CODES,
    EnvironmentVerdict,
    ExitCode,
    FaultVerdict,
    ObjectiveVerdict,
    SystemVerdict,
    Verdicts,
    worst_fault,
    worst_objective,
    worst_system,
)

DERIVED = ("verdicts", "outcome", "exit_code")
"""Written for readers other than this program, which derives them again from the parts."""


class StoredModel(BaseModel):
    """Refuses unknown keys and non-finite numbers, keeps input values out of error messages, and is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


_WORDS = (
    ("^Field required$", "missing"),
    ("^Extra inputs are not permitted$", "unknown key"),
    ("Input should be", "must be"),
    ("String should match pattern", "must match the pattern"),
    (r" or instance of \w+$", ""),
    ("^Value error, ", ""),
)
"""Pydantic's messages, as patterns, and ours."""


def in_our_words(message: str) -> str:
    """Return pydantic's message about a value as part of a sentence."""
    for theirs, ours in _WORDS:
        message = re.sub(theirs, ours, message)
    return message[0].lower() + message[1:]


def reason_of(error: Exception) -> str:
    """Return in one line why a file is invalid: the first problem of a model, and its place."""
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if not isinstance(error, ValidationError):
        return str(error)
    first, *others = error.errors(include_url=False)
    more = f", and {len(others)} more" if others else ""
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), in_our_words(first["msg"])))) + more


class ByName:
    """Annotates an enumeration of verdicts, which JSON has by name."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept a member or its name, and write the name."""
        members: dict[str, IntEnum] = {each.name: each for kind in get_args(source) or [source] for each in kind}
        by_name = core_schema.no_info_after_validator_function(
            members.__getitem__, core_schema.literal_schema(list(members))
        )
        return core_schema.union_schema(
            [core_schema.is_instance_schema(source), by_name],
            serialization=core_schema.plain_serializer_function_ser_schema(lambda each: each.name),
        )


NamedFaultVerdict = Annotated[FaultVerdict, ByName]
NamedSystemVerdict = Annotated[SystemVerdict, ByName]
NamedObjectiveVerdict = Annotated[ObjectiveVerdict, ByName]
LARGE = 1000
"""From here on values of objectives are shown without decimals."""


class Remark(StoredModel):
    """One remark on the evidence."""

    text: str
    phase: str = ""
    """Phase in which it was noticed; empty if unknown."""
    subject: str = ""
    """A file, a client, a broker; empty for the phase as a whole."""
    evidence: str | None = None
    """The kind of evidence that it makes unreliable; empty for every kind."""
    forbids_pass: bool = False
    environment: bool = False
    """Whether a phase failed for a reason other than the cluster's promises: a start, a full disk, no steady state."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


def forbidding(remarks: Iterable[Remark]) -> list[Remark]:
    """Return those that forbid a PASS."""
    return [remark for remark in remarks if remark.forbids_pass]


class FaultResult(StoredModel):
    """The result of one injection of the plan."""

    injection: int
    fault: str
    targets: list[str]
    verdict: NamedFaultVerdict
    detail: str
    compensated: bool = False
    """Drawn, and not seen to happen; a confirmed spare replaces it, so the verdict does not rest on it."""


class CheckResult(StoredModel):
    """The result of one check."""

    check: str
    promise: str
    verdict: NamedSystemVerdict
    violations: int = 0
    expected: int = 0
    notes: int = 0
    reason: str = ""
    """Why the verdict is UNKNOWN or NOT_JUDGED, or the first violation in a sentence."""
    lacks_plugin: bool = False
    """Whether it could not be asked, because a plugin is not on this machine or cannot be imported."""

    @property
    def counted(self) -> str:
        """The number of findings of each severity, as text; empty if there are none."""
        numbers = [
            (self.violations, number_of(self.violations, "violation")),
            (self.expected, f"{self.expected:,} allowed by the settings"),
            (self.notes, number_of(self.notes, "note")),
        ]
        return ", ".join(text for number, text in numbers if number)


class SuiteResult(StoredModel):
    """The result of one Great Expectations suite."""

    suite: str
    verdict: NamedSystemVerdict
    """UNKNOWN when its table was empty."""
    evaluated: int
    unsuccessful: int
    failures: list[str] = []
    """The failed expectations as sentences."""
    expected: list[str] = []
    """Unmet expectations that the settings excuse, as sentences."""
    reason: str = ""
    """Why nothing was evaluated."""


class ObjectiveResult(StoredModel):
    """The result of one objective that the scenario states."""

    objective: str
    limit: float
    unit: str
    at_least: bool = False
    """Whether the limit is a least value, and not a largest one."""
    measured: float | None = None
    """None when it could not be measured."""
    verdict: NamedObjectiveVerdict
    reason: str = ""
    """Where and when it was measured, or why it could not be."""

    @property
    def stated(self) -> str:
        """The limit as text."""
        return f"at {'least' if self.at_least else 'most'} {_figure(self.limit)} {self.unit}"

    @property
    def value(self) -> str:
        """What was measured as text."""
        return "not measured" if self.measured is None else f"{_figure(self.measured)} {self.unit}"

    @property
    def seen(self) -> str:
        """What was measured, and where, as text."""
        return f"{self.value} ({self.stated})" + (f": {self.reason}" if self.reason else "")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= LARGE else f"{value:.4g}"


class RunResult(StoredModel):
    """The result of one run; re-judging replaces checks and suites and keeps the rest."""

    run_id: str
    scenario: str
    driver: str
    system: str = "python"
    """The system under test; runs of earlier versions had no other."""
    seed: int
    planted_bugs: list[str] = []
    started_at: str
    """UTC, ISO 8601."""
    duration_s: float
    phase_durations_s: dict[str, float] = {}
    faults: list[FaultResult] = []
    left_out: list[str] = []
    """Faults of the scenario that the system cannot have, as kind and target."""
    checks: list[CheckResult] = []
    suites: list[SuiteResult] = []
    objectives: list[ObjectiveResult] = []
    residue: list[str] = []
    """Leftovers, a sentence each; empty is CLEAN."""
    remarks: list[Remark] = []
    """On the quality of the evidence: torn lines, missing files, an interrupted run, no steady state afterwards."""
    counts: dict[str, int] = {}
    """Rows a fact, operations, anomalies."""

    @property
    def verdicts(self) -> Verdicts:
        """The combined verdicts."""
        system = worst_system(
            [part.verdict for part in self.checks]
            + [part.verdict for part in self.suites]
            + [SystemVerdict.UNKNOWN for _ in forbidding(self.remarks)]
        )
        return Verdicts(
            fault=worst_fault(part.verdict for part in self.faults if not part.compensated),
            system=system,
            environment=EnvironmentVerdict.RESIDUE if self.residue else EnvironmentVerdict.CLEAN,
            objectives=worst_objective(part.verdict for part in self.objectives),
        )

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of `chaos`, that of the outcome."""
        return EXIT_CODES[self.outcome]

    @property
    def outcome(self) -> str:
        """What the run came to, in a word."""
        return self.verdicts.outcome(broken=any(remark.environment for remark in self.remarks))

    def save(self, path: Path) -> None:
        """Write `verdict.json`, verdicts and exit code included for readers that know no Python."""
        data: dict[str, Any] = {
            "verdicts": self.verdicts.names,
            "outcome": self.outcome,
            "exit_code": int(self.exit_code),
        }
        model = self.model_dump(mode="json")
        text = json.dumps({**data, **model}, indent=2) + "\n"
        write_whole(RunFolder(path.parent), path, text)

    @classmethod
    def load(cls, path: Path) -> "RunResult":
        """Read `verdict.json`.

        Raises:
            EvidenceError: the file is missing or not a result.
        """
        try:
            return cls.from_json(path.read_bytes(), str(path))
        except FileNotFoundError as error:
            raise EvidenceError(f"{path} does not exist: the run was not judged") from error
        except OSError as error:
            raise EvidenceError(f"{path}: not a run's result: {reason_of(error)}") from error

    @classmethod
    def from_json(cls, text: bytes, where: str) -> "RunResult":
        """Return what `save` wrote, from any place.

        Raises:
            EvidenceError: it is not a result.
        """
        try:
            data = json.loads(text)
            if "evidence" in data:  # before remarks had a type, one flag stood for all of them
                damaged = data.pop("evidence_damaged")
                data["remarks"] = [{"text": sentence, "forbids_pass": damaged} for sentence in data.pop("evidence")]
            return cls.model_validate({key: value for key, value in data.items() if key not in DERIVED})
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
            raise EvidenceError(f"{where}: not a run's result: {reason_of(error)}") from error
