"""The result of a recorded history: judged promises, unjudged ones, and the evidence that those need."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.analysis.judge import Judgement
from harness.analysis.sources.lineage import LINEAGE, events_of
from harness.contracts import registry
from harness.contracts.checks import Check, Subject, read_by
from harness.errors import EvidenceError
from harness.ingest.formats import formats
from harness.ingest.settings import EVERY_EVENT, AllowedSettings
from harness.progress import number_of
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, Remark, StoredModel, forbidding, reason_of
from harness.verdict import ExitCode, SystemVerdict


class Setting(StoredModel):
    """One setting that checks used."""

    name: str
    value: str
    assumed: bool
    """Whether it is not stated, and so taken at its strictest."""
    about: str


class Unjudged(StoredModel):
    """A promise without evidence."""

    check: str
    promise: str
    facts: list[str]
    """Its facts without rows."""
    needed: list[str]
    """The evidence that would fill them, as text."""


class HistoryResult(StoredModel):
    """The content of `verdict.json` of such a history."""

    name: str
    evidence: dict[str, list[str]]
    """The given evidence, by kind."""
    settings: list[Setting]
    checks: list[CheckResult]
    """Checks that had evidence."""
    unjudged: list[Unjudged]
    """The others."""
    remarks: list[Remark]
    """On the quality of the evidence."""
    counts: dict[str, int]
    """Rows a fact."""

    @property
    def verdict(self) -> SystemVerdict:
        """The worst answer of the checks that had evidence; without an answer, or with damaged evidence, never PASS."""
        if not self.checks:
            return SystemVerdict.UNKNOWN
        worst = max(check.verdict for check in self.checks)
        return max(worst, SystemVerdict.UNKNOWN) if forbidding(self.remarks) else worst

    @property
    def exit_code(self) -> ExitCode:
        """Promises without evidence do not count: they are listed instead."""
        codes = {SystemVerdict.PASS: ExitCode.HELD, SystemVerdict.FAIL: ExitCode.VIOLATED}
        return codes.get(self.verdict, ExitCode.INCONCLUSIVE)

    @classmethod
    def load(cls, path: Path) -> "HistoryResult":
        """Read `verdict.json`; raises EvidenceError if it is not the answer on a history."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise EvidenceError(f"{path}: not the answer of `chaos judge`: {reason_of(error)}") from error

    def as_json(self) -> dict[str, Any]:
        """Return everything, with the verdict for readers other than this program."""
        return {"verdict": self.verdict.name, "exit_code": int(self.exit_code), **self.model_dump(mode="json")}


def is_judged_history(path: Path) -> bool:
    """Return whether a folder is one of `chaos judge`, which has a verdict without a plan."""
    folder = RunFolder(path)
    return folder.verdict.is_file() and not folder.plan.exists()


def described_settings(settings: AllowedSettings) -> list[Setting]:
    """Return every setting, and whether it was stated or taken at its strictest."""
    return [
        Setting(
            name=name,
            value=settings.text(name),
            assumed=not settings.is_stated(name),
            about=field.description or "",
        )
        for name, field in AllowedSettings.model_fields.items()
    ]


def divided(
    checks: Iterable[Check], judgement: Judgement, evidence: Mapping[str, list[str]]
) -> tuple[list[CheckResult], list[Unjudged]]:
    """Return the answers of the checks that had evidence, and the promises that had none.

    If evidence of a kind was given without the subject of a check, the check answers UNKNOWN.
    """
    judged, unjudged = [], []
    for check, result in zip(checks, judgement.checks, strict=True):
        lacking = [fact for fact in check.needs if not judgement.counts[fact]]
        not_given = [fact for fact in lacking if not any(evidence.get(kind) for kind in LINEAGE[fact])]
        unseen = judgement.unseen.get(check.name)
        if lacking and unseen and not not_given:
            judged.append(result.model_copy(update={"reason": unseen}))
        elif lacking:
            needed = needed_for(lacking, evidence)
            unjudged.append(Unjudged(check=check.name, promise=check.promise, facts=lacking, needed=needed))
        elif check.about and (needed := _lacking_subject(check, check.about, judgement, evidence)):
            unjudged.append(
                Unjudged(check=check.name, promise=check.promise, facts=[*check.about.facts], needed=needed)
            )
        else:
            judged.append(result)
    return judged, unjudged


def _lacking_subject(
    check: Check, about: Subject, judgement: Judgement, evidence: Mapping[str, list[str]]
) -> list[str]:
    """Return the part of a check's subject that is not in the evidence: all of it, or what would show it."""
    kind = about.evidence
    if check.name in judgement.absent:
        return [f"{about.what} (there are none)"]
    return [f"{formats()[kind].option}: {about.what}"] if kind and not evidence.get(kind) else []


def undecided(results: Iterable[CheckResult], hanging: Mapping[str, list[str]]) -> list[CheckResult]:
    """Return the answers, UNKNOWN if they depend on settings that are not stated."""
    return [_undecided(result, hanging[result.check]) if result.check in hanging else result for result in results]


def _undecided(result: CheckResult, deciding: Sequence[str]) -> CheckResult:
    if result.verdict is SystemVerdict.UNKNOWN:
        return result
    options = " ".join(f"--set {each}" for each in deciding)
    found = f": {number_of(result.violations, 'time')}, first: {result.reason}" if result.violations else ""
    reason = f"the answer depends on settings that are not stated (if they apply: {options}){found}"
    return result.model_copy(update={"verdict": SystemVerdict.UNKNOWN, "violations": 0, "reason": reason})


def needed_for(facts: Sequence[str], evidence: Mapping[str, list[str]]) -> list[str]:
    """Return the evidence that would fill all these facts, as text, one sentence each."""
    origins = [LINEAGE[fact] for fact in facts]
    needed: dict[str, list[str]] = {kind: [] for origin in origins if len(origin) == 1 for kind in origin}
    for origin in origins:
        for kind, lines in origin.items():
            if kind in needed and lines not in needed[kind]:
                needed[kind].append(lines)
    sentences = [_option(kind, lines, evidence) for kind, lines in needed.items()]
    sentences += [
        ", or ".join(_option(kind, [lines], evidence) for kind, lines in origin.items())
        for origin in origins
        if not needed.keys() & origin.keys()
    ]
    return list(dict.fromkeys(sentences))


def _option(kind: str, lines: Sequence[str], evidence: Mapping[str, list[str]]) -> str:
    none = " (has none)" if evidence.get(kind) else ""
    return f"{formats()[kind].option}: {', '.join(lines)}{none}"


def doubted(results: Iterable[CheckResult], settings: AllowedSettings, counts: Mapping[str, int]) -> list[CheckResult]:
    """Return the answers, without violations that an election could excuse if the evidence cannot show elections."""
    if not settings.unclean_leader_election or counts["leader_epochs"]:
        return list(results)
    return [
        result.model_copy(
            update={
                "verdict": SystemVerdict.UNKNOWN,
                "violations": 0,
                "reason": "an allowed unclean election may excuse this, and no leader epochs are known: "
                f"{number_of(result.violations, 'time')}, first: {result.reason}",
            }
        )
        if result.verdict is SystemVerdict.FAIL and _is_excused_by_elections(result.check)
        else result
        for result in results
    ]


def unlogged(results: Iterable[CheckResult], events: Collection[str]) -> list[CheckResult]:
    """Return the answers, without violations that an event would explain of a kind that does not occur in the history.

    Args:
        results: Answers of checks.
        events: The kinds of state changes that occur.
    """
    return [_unlogged(result, events) if result.verdict is SystemVerdict.FAIL else result for result in results]


def _unlogged(result: CheckResult, events: Collection[str]) -> CheckResult:
    check = registry.check(result.check)
    needed = events_of(read_by(check)) | {name.partition(".")[0] for name in check.fields}
    lacking = sorted(needed - set(events) - set(check.judges_without))
    if not lacking:
        return result
    reason = (
        f"brokers may not log {', '.join(lacking)}, which do not occur (if they do: --set {EVERY_EVENT}): "
        f"{number_of(result.violations, 'time')}, first: {result.reason}"
    )
    return result.model_copy(update={"verdict": SystemVerdict.UNKNOWN, "violations": 0, "reason": reason})


def _is_excused_by_elections(check: str) -> bool:
    return any(allowance.unclean_election for allowance in registry.check(check).excused_by)


def all_answers(result: HistoryResult) -> list[CheckResult]:
    """Return an answer on every promise, as the report lists them."""
    lacking = [
        CheckResult(
            check=each.check,
            promise=each.promise,
            verdict=SystemVerdict.UNKNOWN,
            reason=f"no evidence; it needs {'; '.join(each.needed)}",
        )
        for each in result.unjudged
    ]
    return [*result.checks, *lacking]
