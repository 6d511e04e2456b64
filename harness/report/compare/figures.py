"""What one run contributes to a comparison: its verdicts, its findings, and what was measured of it."""

import math
from dataclasses import dataclass, field

from harness.analysis.objectives.judge import MEASURES, Facts
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, entries
from harness.store.result import RunResult, forbidding
from harness.values import PYTHON


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What must be the same of runs before their figures may be summed up together."""

    scenario: str
    system: str
    driver: str
    machine: str
    """Name of the host that put it under load; empty if that was not recorded."""
    planted_bugs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """All but the scenario as text."""
        parts = (self.system, self.driver, self.machine, *self.planted_bugs)
        return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """One run."""

    run: str
    kind: Kind
    outcome: str
    verdicts: dict[str, str]
    violations: dict[str, int]
    """By check."""
    expected: dict[str, int]
    """Anomalies that the settings allow, by check."""
    objectives: dict[str, str]
    """Verdict of each."""
    values: dict[str, float] = field(default_factory=dict)
    """What was measured; without a value that the evidence does not show."""


def figures_of(folder: RunFolder) -> RunFigures:
    """Return the figures of a judged run; evidence with holes has no measured values.

    Raises:
        EvidenceError: it has no verdict.
    """
    result = RunResult.load(folder.verdict)
    hosts = [entry.host for entry in entries(folder) if entry.phase is Phase.DRIVE] if folder.phases.exists() else []
    checks = result.checks
    return RunFigures(
        run=folder.run_id,
        kind=Kind(
            scenario=result.scenario,
            system=result.system or PYTHON,
            driver=result.driver,
            machine=hosts[0] if hosts else "",
            planted_bugs=tuple(result.planted_bugs),
        ),
        outcome=result.outcome,
        verdicts=result.verdicts.names,
        violations={check.check: check.violations for check in checks if check.violations},
        expected={check.check: check.expected for check in checks if check.expected},
        objectives={each.objective: each.verdict.name for each in result.objectives},
        values={} if forbidding(result.remarks) else _values(Facts(folder)),
    )


def _values(facts: Facts) -> dict[str, float]:
    """Return what an objective would measure, by its name, whether one is stated or not."""
    if not len(facts.sends):
        return {}
    measured = {name: measure(facts, math.inf) for name, (_, measure) in MEASURES.items()}
    return {name: each.value for name, each in measured.items() if each.value is not None and not each.open}
