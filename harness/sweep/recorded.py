"""Recorded histories with their verdicts: what the judges said of them then, they must say of them ever after.

A folder a history: its scenario, its one row of the table that a sweep leaves, and what was found in it.
"""

from pathlib import Path
from typing import Literal

from pyarrow import parquet
from pydantic import ValidationError

from harness.errors import EvidenceError
from harness.scenario.file import read_scenario, scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.store.result import NamedSystemVerdict, StoredModel, reason_of
from harness.sweep.summary import findings_of
from harness.sweep.sweep import TABLES, Candidate, ScheduleVerdict

NUMBER = "number"
COMPRESSION_LEVEL = 19


class RecordedAnswer(StoredModel):
    """What one check made of it."""

    verdict: NamedSystemVerdict
    violations: int
    expected: int


class Recorded(StoredModel):
    """The content of `verdict.json`."""

    about: str
    """What the history shows, and which sweep found it, in a sentence."""
    seed: int
    found: list[str]
    """As `SweepFinding.what`; empty when everything held."""
    today: Literal["found", "held"]
    """What the same seed gives when it is simulated again: `held` as soon as what was found is mended."""
    checks: dict[str, RecordedAnswer]


class History:
    """One folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def name(self) -> str:
        """What it is called."""
        return self.root.name

    @property
    def table(self) -> Path:
        """All evidence, as one row."""
        return self.root / "history.parquet"

    @property
    def verdict(self) -> Path:
        """What was found in it, as JSON."""
        return self.root / "verdict.json"

    @property
    def scenario(self) -> Path:
        """What was asked, as YAML."""
        return self.root / "scenario.yaml"

    def recorded(self) -> Recorded:
        """Return what was found in it.

        Raises:
            EvidenceError: the file is missing or says something else.
        """
        try:
            return Recorded.model_validate_json(self.verdict.read_bytes())
        except (OSError, ValidationError) as error:
            raise EvidenceError(f"{self.verdict}: not the verdict of a recorded history: {reason_of(error)}") from error

    def candidate(self, seed: int | None = None) -> Candidate:
        """Return the schedule, under its own seed or another one."""
        scenario = read_scenario(self.scenario.read_text(encoding="utf-8"), str(self.scenario))
        return Candidate(scenario=scenario, plan=make_plan(scenario, self.recorded().seed if seed is None else seed))

    def write(self, scenario: Scenario, table: Path, verdict: ScheduleVerdict, about: str) -> None:
        """Keep a schedule that was judged by all checks.

        Args:
            scenario: What was asked.
            table: The table that it is a row of: the folder of files that a sweep leaves.
            verdict: What was found in it.
            about: What it shows, and which sweep found it.
        """
        self.root.mkdir(parents=True)
        self.scenario.write_text(scenario_yaml(scenario, brief=True), encoding="utf-8")
        names = parquet.ParquetDataset(table).schema.names
        columns = [name for name in names if name != TABLES]  # lines outlive any layout
        row = parquet.read_table(table, columns=columns, filters=[(NUMBER, "=", verdict.number)])
        parquet.write_table(row, self.table, compression="zstd", compression_level=COMPRESSION_LEVEL)
        findings = list(findings_of(verdict))
        recorded = Recorded(
            about=about,
            seed=verdict.seed,
            found=findings,
            today="found" if findings else "held",
            checks=answers(verdict),
        )
        self.verdict.write_text(recorded.model_dump_json(indent=2) + "\n", encoding="utf-8")


def answers(verdict: ScheduleVerdict) -> dict[str, RecordedAnswer]:
    """Return what every check said of a schedule."""
    return {
        check.check: RecordedAnswer(verdict=check.verdict, violations=check.violations, expected=check.expected)
        for check in verdict.checks
    }


def histories_in(folder: Path) -> list[History]:
    """Return every recorded history in a folder, by name."""
    return [History(path.parent) for path in sorted(folder.glob("*/verdict.json"))]
