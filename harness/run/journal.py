"""The write-ahead fault journal: written before each act, and enough to heal from in another process."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from harness.contracts.faults import Injection
from harness.contracts.members import CLIENT
from harness.errors import EvidenceError
from harness.scenario.plan import Plan, PlannedFault
from harness.store.folder import RunFolder
from harness.store.history import ChainedWriter, InjectionStep, JournalEntry, now_ns, read_jsonl
from harness.store.reserve import with_room
from harness.store.result import FaultResult, reason_of
from harness.verdict import FaultVerdict


class FaultLog(Protocol):
    """Where the nemesis writes each act before it carries it out."""

    def note(
        self, number: int, fault: str, step: InjectionStep, *, injection: Injection | None = None, detail: str = ""
    ) -> None:
        """Write one step of one injection, with all that healing needs."""
        ...


VERDICT_STEPS = {
    InjectionStep.CONFIRMED: FaultVerdict.CONFIRMED,
    InjectionStep.MISMATCH: FaultVerdict.MISMATCH,
    InjectionStep.INCONCLUSIVE: FaultVerdict.INCONCLUSIVE,
    InjectionStep.FAILED: FaultVerdict.INCONCLUSIVE,
}
_ENTRY = TypeAdapter(JournalEntry)
STEP_OF = {verdict: step for step, verdict in VERDICT_STEPS.items() if step is not InjectionStep.FAILED}


class Journal:
    """Appends steps; each is on disk when `note` returns."""

    def __init__(self, path: Path) -> None:
        self._folder = RunFolder(path.parent)
        self._writer = with_room(self._folder, lambda: ChainedWriter(path))

    def note(
        self, number: int, fault: str, step: InjectionStep, *, injection: Injection | None = None, detail: str = ""
    ) -> None:
        """Write one step of one injection, with all that healing needs."""
        entry = entry_of(now_ns(), number, fault, step, injection, detail)
        with_room(self._folder, lambda: self._writer.write(entry))
        with_room(self._folder, self._writer.sync)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def entry_of(
    time_ns: int, number: int, fault: str, step: InjectionStep, injection: Injection | None, detail: str
) -> JournalEntry:
    """Return the line of one step of one injection."""
    return JournalEntry(
        time_ns=time_ns,
        injection=number,
        fault=fault,
        step=step,
        targets=_targets(injection) if injection else (),
        parameters=injection.parameters if injection else {},
        detail=detail,
        state=injection.state if injection else {},
    )


def _targets(injection: Injection) -> tuple[str, ...]:
    """Return the targets: brokers, or the client that its state names."""
    return (injection.state[CLIENT],) if CLIENT in injection.state else tuple(map(str, injection.targets))


def read_journal(path: Path) -> list[JournalEntry]:
    """Return the steps of a journal, without a torn last line; empty if there is no journal.

    Raises:
        EvidenceError: a line does not belong to a journal.
    """
    entries, unreadable = readable_journal(path)
    if unreadable:
        raise EvidenceError(unreadable)
    return entries


def readable_journal(path: Path) -> tuple[list[JournalEntry], str]:
    """Return the steps of a journal up to the first unreadable line, and what is wrong with that line."""
    entries: list[JournalEntry] = []
    try:
        for line in read_jsonl(path) if path.exists() else ():
            entries.append(_ENTRY.validate_python(line))  # noqa: PERF401  those before an error stay
    except EvidenceError as error:
        return entries, str(error)
    except ValidationError as error:
        return entries, f"{path}: not the step of an injection: {reason_of(error)}"
    return entries, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInjection:
    """A fault that may still be in force."""

    number: int
    injection: Injection


def open_injections(entries: Iterable[JournalEntry]) -> list[OpenInjection]:
    """Return the injections that were intended and not healed, the latest first."""
    still_open: dict[int, OpenInjection] = {}
    for entry in entries:
        if entry.step in (InjectionStep.INTENDED, InjectionStep.INJECTED):
            injection = Injection(
                fault=entry.fault,
                targets=() if CLIENT in entry.state else tuple(map(int, entry.targets)),
                parameters=entry.parameters,
                state=entry.state,
            )
            still_open[entry.injection] = OpenInjection(number=entry.injection, injection=injection)
        elif entry.step is InjectionStep.HEALED:
            still_open.pop(entry.injection, None)
    return list(reversed(still_open.values()))


def fault_results(plan: Plan, entries: Iterable[JournalEntry], unreadable: str = "") -> list[FaultResult]:
    """Return the result of every injection of the plan; one without a judgement is INCONCLUSIVE.

    `unreadable` says why later entries are missing.

    A scenario states how many faults its mix has, and not which. A fault that was not seen is replaced by a spare that
    was, unless the fault's own code failed. A spare that was not needed is left out; a fault without a place in the
    plan is INCONCLUSIVE.
    """
    by_number: dict[int, list[JournalEntry]] = {}
    for entry in entries:
        by_number.setdefault(entry.injection, []).append(entry)
    results = _compensated(
        [
            (fault, _result(fault.injection, fault.fault, by_number.get(fault.injection, []), unreadable))
            for fault in plan.faults
            if not fault.spare or fault.injection in by_number
        ],
        {entry.injection for steps in by_number.values() for entry in steps if entry.step is InjectionStep.FAILED},
    )
    if plan.left_out:
        detail = f"the scenario states {plan.left_out} more faults, which did not fit into the load"
        without = {"injection": len(plan.faults), "fault": "mix", "targets": [], "detail": detail}
        results.append(FaultResult.model_validate({**without, "verdict": FaultVerdict.INCONCLUSIVE}))
    return results


def _compensated(pairs: Sequence[tuple[PlannedFault, FaultResult]], failed: Container[int]) -> list[FaultResult]:
    """Return the results, and mark those that a confirmed spare replaces; never one that failed in its own code."""
    spares = [each.injection for fault, each in pairs if fault.spare and each.verdict is FaultVerdict.CONFIRMED]
    results = []
    missing = 0
    for fault, result in pairs:  # spares come last
        update: dict[str, Any] = {}
        if fault.injection in failed:
            pass
        elif result.verdict is FaultVerdict.INCONCLUSIVE and fault.spare:
            update = {"detail": f"a spare: {result.detail}", "compensated": not missing}
        elif result.verdict is FaultVerdict.INCONCLUSIVE and fault.beside is not None:
            if spares:
                instead = f"replaced by injection {spares.pop(0)}, a spare that was confirmed"
                update = {"detail": f"{result.detail}; {instead}", "compensated": True}
            else:
                missing += 1
        results.append(result.model_copy(update=update))
    return results


def _result(number: int, fault: str, entries: list[JournalEntry], unreadable: str) -> FaultResult:
    judged = [entry for entry in entries if entry.step in VERDICT_STEPS]
    targets = next((list(entry.targets) for entry in reversed(entries) if entry.targets), [])
    verdict, detail = FaultVerdict.INCONCLUSIVE, "it was injected, and its effect was not recorded"
    if judged:
        verdict, detail = VERDICT_STEPS[judged[0].step], judged[0].detail
    elif unreadable:
        detail = f"its outcome is not known: {unreadable}"
    elif not entries:
        detail = "it was not carried out: the run ended earlier"
    elif all(entry.step is InjectionStep.POSTPONED for entry in entries):
        detail = f"it was not carried out: the run ended while it was postponed, because {entries[0].detail}"
    healing = [entry for entry in entries if entry.step in (InjectionStep.HEALED, InjectionStep.HEAL_FAILED)]
    if healing and healing[-1].step is InjectionStep.HEAL_FAILED:
        detail += f"; it could not be healed: {healing[-1].detail}"
    return FaultResult(injection=number, fault=fault, targets=targets, verdict=verdict, detail=detail)
