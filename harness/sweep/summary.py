"""What a sweep comes to: how many schedules held, and what was found in them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.contracts import registry
from harness.contracts.registry import check_key, check_title
from harness.errors import EvidenceError, ScenarioError
from harness.judging.why import Kind, of
from harness.store.coverage import Coverage
from harness.store.folder import RunFolder
from harness.store.result import StoredModel, reason_of
from harness.sweep.sweep import SUMMARY, ScheduleVerdict, Sweep, request_file
from harness.verdict import ExitCode, FaultVerdict, SystemVerdict

UNKNOWN = " unknown"
"""The end of a finding whose check is UNKNOWN."""
NO_HISTORY = "no history"
DAMAGED = "evidence"
FAULT = "fault "
OF_NO_CHECK = (NO_HISTORY, DAMAGED, *(FAULT + verdict.name.lower() for verdict in FaultVerdict))
"""Findings that say why a schedule proves nothing."""
FIRST = 5
"""Schedules that a summary names of each finding."""


def finding_title(what: str) -> str:
    """Return what was found as people are shown it: a check with number and name."""
    check, *rest = what.split(" ")
    return " ".join([check_title(check), *rest])


def finding_key(text: str) -> str:
    """Return what is meant by a finding whose check is given by number, name or both, or which is of no check.

    Raises:
        ScenarioError: nothing that is meant is ever found.
    """
    check = text.removesuffix(UNKNOWN)
    key = check_key(check)
    if not registry.known(registry.Kind.CHECK, key) and text not in OF_NO_CHECK:
        names = [*map(check_title, registry.names(registry.Kind.CHECK)), *OF_NO_CHECK]
        raise ScenarioError(registry.unknown_message("finding", text, names))
    return key + text[len(check) :]


class SweepFinding(StoredModel):
    """One thing that was found in some schedules."""

    what: str
    """Key of the check, maybe with ` unknown`, or why schedules prove nothing; see `finding_title`."""
    schedules: int
    seeds: list[int]
    """Of the first few."""
    first: str
    """The first of them in a sentence."""
    replay: str
    """The command that does the first of them again, with a full report."""
    small: str = ""
    """The command that does again what the first of them shrank to; empty when it was not shrunk."""

    @property
    def title(self) -> str:
        """What was found as people are shown it."""
        return finding_title(self.what)


class Summary(StoredModel):
    """What a sweep came to: `summary.json`."""

    scenario: str
    seed: int
    planted_bugs: list[str]
    schedules: int
    distinct: int
    """Different histories, by their hashes."""
    held: int
    violated: int
    inconclusive: int
    """Schedules that prove nothing; those without a history included."""
    errors: int
    violations: list[SweepFinding]
    doubts: list[SweepFinding]
    simulated_s: float
    judged_s: float
    exit_code: ExitCode
    """That of `chaos run`, over all of them."""
    coverage: Coverage | None = None
    """What those schedules tried and saw together of which that was counted; None where it was of none."""


def summaries_in(folder: Path, depth: int = 3) -> Iterator[Path]:
    """Yield where the summaries are of a sweep's folder, or of all sweeps in a folder, as deep as Airflow has them.

    What lies in a run is not looked at.
    """
    if request_file(folder).exists():
        yield from folder.glob(SUMMARY)
    elif depth:
        with suppress(PermissionError):
            within = (each for each in sorted(folder.iterdir()) if each.is_dir() and not RunFolder(each).plan.exists())
            for each in within:
                yield from summaries_in(each, depth - 1)


def load_summary(path: Path) -> Summary:
    """Return what a sweep came to.

    Raises:
        EvidenceError: that cannot be read.
    """
    try:
        return Summary.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{path}: not the summary of a sweep: {reason_of(error)}") from error


def summarize(
    sweep: Sweep,
    verdicts: Sequence[ScheduleVerdict],
    *,
    simulated_s: float,
    judged_s: float,
    coverage: Coverage | None = None,
) -> Summary:
    """Return what the schedules came to together; no schedule at all is inconclusive.

    Args:
        sweep: What was asked.
        verdicts: One a schedule, in the order of their numbers.
        simulated_s: Seconds that simulating took.
        judged_s: Seconds that judging took.
        coverage: What they tried and saw together.
    """
    codes = [verdict.exit_code for verdict in verdicts]
    violated, held = codes.count(ExitCode.VIOLATED), codes.count(ExitCode.HELD)
    worst = ExitCode.VIOLATED if violated else ExitCode.INCONCLUSIVE
    return Summary(
        scenario=sweep.scenario.name,
        seed=sweep.seed,
        planted_bugs=sweep.scenario.planted_bugs,
        schedules=len(verdicts),
        distinct=len({verdict.digest for verdict in verdicts} - {""}),
        held=held,
        violated=violated,
        inconclusive=len(verdicts) - held - violated,
        errors=sum(bool(verdict.error) for verdict in verdicts),
        violations=_grouped(_violations(verdicts), sweep.replay),
        doubts=_grouped(_doubts(verdicts), sweep.replay),
        simulated_s=round(simulated_s, 3),
        judged_s=round(judged_s, 3),
        exit_code=ExitCode.HELD if verdicts and held == len(verdicts) else worst,
        coverage=coverage,
    )


def findings_of(verdict: ScheduleVerdict) -> dict[str, str]:
    """Return what was found in one schedule, violations first: what, as `SweepFinding` says it, and a sentence."""
    return {what: sentence for what, _, sentence in (*_violations([verdict]), *_doubts([verdict]))}


Seen = tuple[str, int, str]
"""What, the schedule's seed, and a sentence."""


def _violations(verdicts: Iterable[ScheduleVerdict]) -> list[Seen]:
    return [
        (reason.subject, verdict.seed, reason.text)
        for verdict in verdicts
        for reason in of(SystemVerdict.FAIL, verdict.reasons)
    ]


def _doubts(verdicts: Iterable[ScheduleVerdict]) -> list[Seen]:
    seen: list[Seen] = []
    for verdict in verdicts:
        unknown = of(SystemVerdict.UNKNOWN, verdict.reasons)
        checks = [reason for reason in unknown if reason.kind is Kind.CHECK]
        seen += [(f"{reason.subject}{UNKNOWN}", verdict.seed, reason.text) for reason in checks]
        if verdict.error:
            seen.append((NO_HISTORY, verdict.seed, verdict.error))
        elif verdict.system is SystemVerdict.UNKNOWN and not checks:
            seen.append((DAMAGED, verdict.seed, "; ".join(map(str, unknown))))
        elif verdict.exit_code is not ExitCode.VIOLATED and verdict.fault is not FaultVerdict.CONFIRMED:
            faults = [str(reason) for reason in verdict.reasons if reason.kind is Kind.FAULT]
            seen.append((f"{FAULT}{verdict.fault.name.lower()}", verdict.seed, "; ".join(faults)))
    return seen


def _grouped(seen: Iterable[Seen], replay: str) -> list[SweepFinding]:
    """Return one finding a kind, in the order in which they were first seen."""
    kinds: dict[str, list[Seen]] = {}
    for each in seen:
        kinds.setdefault(each[0], []).append(each)
    return [
        SweepFinding(
            what=what,
            schedules=len(of_kind),
            seeds=[seed for _, seed, _ in of_kind[:FIRST]],
            first=of_kind[0][2],
            replay=f"{replay} --seed {of_kind[0][1]}",
        )
        for what, of_kind in kinds.items()
    ]


def earlier_simulated_s(sweep: Sweep) -> float:
    """Return how long simulating took, as an earlier summary says; 0 where there is none."""
    try:
        return load_summary(sweep.summary).simulated_s
    except EvidenceError:
        return 0.0
