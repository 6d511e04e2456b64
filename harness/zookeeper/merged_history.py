"""The complete history of znodes: what the observer saw live, merged with the servers' transaction logs."""

from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import EvidenceError
from harness.store.history import SNAPSHOT, ChainedWriter, TornLine, ZnodeChange, read_jsonl
from harness.zookeeper import observer
from harness.zookeeper.scope import EVERYTHING, Scope
from harness.zookeeper.transaction_log import read_ensemble_log


def merge_history(history: Path, *data_dirs: Path, scope: Scope = EVERYTHING) -> list[str]:
    """Replace the observer's file by the complete history, in the order of zxids; return remarks on its quality.

    The log decides: a change that the observer saw too has the source `observer`, and its session from the log. A write
    that only the observer has stays, with a remark. A delete that only the observer has stays only when there is no
    log, because its zxid may be too high. Only entries of the log in scope are taken.
    """
    try:
        log = read_ensemble_log(data_dirs)
    except EvidenceError as error:
        why = f"{error}: of quick successive writes to one znode only the last is known"
        return [*merge_changes(history, None).all, why]
    logged = [change for change in log.changes if scope.holds(change.path)]
    return merge_changes(history, logged).all + list(filter(None, [log.damage]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """Defects of a history."""

    gaps: list[str]
    """What the observer did not see or write."""
    contradictions: list[str]
    """Where the observer contradicts the log."""

    @property
    def all(self) -> list[str]:
        """Both lists."""
        return self.gaps + self.contradictions


def merge_changes(history: Path, logged: list[ZnodeChange] | None, *, exact: bool = False, begins: int = 0) -> Remarks:
    """Replace the observer's file by what it saw and what was logged; return remarks on its quality.

    Without a log, which is None, all that the observer saw stays. `exact` as `combine` has it. Where a log `begins`
    with a snapshot, what the observer saw before that stands, and replaces the snapshot.
    """
    torn = TornLine()
    before = [ZnodeChange(**line) for line in read_jsonl(history, torn)] if history.exists() else []
    gaps = [f"{history.name}: torn line at byte {torn.offset}"] if torn.path is not None else []
    contradictions: list[str] = []
    if not history.exists():
        gaps.append("no observer ran: the history comes from the servers' log alone")
    if logged is None:
        merged = sorted(before, key=lambda change: change.zxid)
    else:
        seen = [change for change in before if change.source == observer.SOURCE]  # the rest is from an earlier merge
        early: list[ZnodeChange] = []
        if before and _observed_from(before) <= begins:
            early = [each for each in before if each.zxid < begins and each.source in (observer.SOURCE, SNAPSHOT)]
            seen = [change for change in seen if change.zxid >= begins]
            logged = [change for change in logged if change.source != SNAPSHOT]
        merged, contradictions = combine(seen, logged, exact=exact)
        merged = sorted([*early, *merged], key=lambda change: change.zxid)
    temporary = history.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    with ChainedWriter(temporary) as writer:
        for change in merged:
            writer.write(change)
    temporary.replace(history)
    return Remarks(gaps=gaps, contradictions=contradictions)


def _observed_from(changes: list[ZnodeChange]) -> int:
    """Return the first offset of a quorum's log that an observer read: the one after its snapshot, if it began so."""
    return max((change.zxid for change in changes if change.source == SNAPSHOT), default=-1) + 1


def combine(
    seen: list[ZnodeChange], logged: list[ZnodeChange], *, exact: bool = False
) -> tuple[list[ZnodeChange], list[str]]:
    """Return the changes of both in the order of zxids, and a sentence for each disagreement.

    An observer is `exact` if the zxids of its deletes are right too: one that the log lacks is a disagreement then.
    """
    writes = {(change.zxid, change.path, change.version): change for change in seen if change.type != "delete"}
    deletes = {(change.path, change.zxid): change for change in seen if change.type == "delete"}
    merged = []
    remarks = []
    for change in logged:
        witness = writes.pop((change.zxid, change.path, change.version), None)
        if witness is not None and witness.data != change.data:
            remarks.append(
                f"{change.path} at zxid {change.zxid}: the log has {change.data!r}, the observer saw {witness.data!r}"
            )
        deleted = deletes.pop((change.path, change.zxid), None) if change.type == "delete" else None
        live = witness is not None or deleted is not None
        merged.append(replace(change, source=observer.SOURCE) if live else change)
    for unlogged in writes.values():
        what = f"version {unlogged.version} of {unlogged.path} at zxid {unlogged.zxid}"
        remarks.append(f"{what}: seen by the observer, not in the log")
        merged.append(unlogged)
    for unlogged in deletes.values() if exact else ():
        remarks.append(f"the delete of {unlogged.path} at zxid {unlogged.zxid}: seen by the observer, not in the log")
        merged.append(unlogged)
    merged.sort(key=lambda change: change.zxid)  # stable: the operations of a multi keep their order
    return merged, remarks
