"""What a run came to, small enough for Airflow's XCom and for a line of a suite."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from harness.verdict import (
    BROKEN,
    HELD,
    INCONCLUSIVE,
    MISSED,
    VIOLATED,
    EnvironmentVerdict,
    ObjectiveVerdict,
    SystemVerdict,
)

if TYPE_CHECKING:
    from harness.store.folder import RunFolder

REFUSED = "refused"
"""The outcome of a run that this machine or driver cannot carry out; all others are `RunResult.outcome`."""


class Conclusion(TypedDict):
    """What one run came to."""

    run: str
    """The run folder."""
    scenario: str
    driver: str
    seed: int
    outcome: str
    fault: str
    system: str
    environment: str
    objectives: str
    """Empty where the scenario states none."""
    reason: str
    """Why it did not hold, in a sentence; empty when it did."""


class SuiteEntry(Conclusion):
    """One run of a suite, after its last try."""

    expect: str
    tries: int


def expected(planted_bugs: Sequence[str]) -> str:
    """Return the outcome that a run must have where no suite states another: a planted bug must be found."""
    return VIOLATED if planted_bugs else HELD


def concluded(folder: "RunFolder") -> Conclusion:
    """Return the outcome of a run, by the files in its folder.

    Raises:
        EvidenceError: it has no verdict.
    """
    from harness.judging.why import of, why
    from harness.store.result import RunResult

    result = RunResult.load(folder.verdict)
    verdicts = result.verdicts
    outcome = result.outcome
    reasons = {
        HELD: [],
        VIOLATED: of(SystemVerdict.FAIL, why(result)),
        MISSED: of(ObjectiveVerdict.MISSED, why(result)),
        BROKEN: of(EnvironmentVerdict.RESIDUE, why(result)) or why(result),
        INCONCLUSIVE: why(result),
    }
    return Conclusion(
        run=str(folder.root),
        scenario=result.scenario,
        driver=result.driver,
        seed=result.seed,
        outcome=outcome,
        fault=verdicts.fault.name,
        system=verdicts.system.name,
        environment=verdicts.environment.name,
        objectives=verdicts.names.get("objectives", ""),
        reason="; ".join(map(str, reasons[outcome])),
    )


def sentence(conclusion: Conclusion) -> str:
    """Return what a run came to, for a log."""
    names = (conclusion["fault"], conclusion["system"], conclusion["environment"], conclusion["objectives"])
    verdicts = " / ".join(filter(None, names))
    because = f": {conclusion['reason']}" if conclusion["reason"] else ""
    return f"{conclusion['scenario']} {conclusion['outcome']}, {verdicts}{because}"
