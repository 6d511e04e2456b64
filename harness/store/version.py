"""The version of a run's evidence; this program reads only the version that it writes.

Version 5 is the lines of `harness/store/history.py` and `harness/events.py`, chained (`harness/system/chain.py`) in a
folder that is sealed (`harness/store/seal.py`). Commit f058d1f9 is the last that reads versions 1 to 4.

A field whose meaning changes needs a new version. A new kind of state change, or a new field of one, does not: each run
states which ones its brokers log, so that no check takes an event that was not yet logged for one that did not happen.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import EvidenceError
from harness.events import FIELDS
from harness.store.folder import RunFolder
from harness.store.result import reason_of

VERSION = 5
Logged = Mapping[str, Sequence[str]]
"""Names of fields by kind of state change."""


class Format(BaseModel):
    """The content of `format.json`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    evidence: int
    logged: dict[str, tuple[str, ...]] | None = None
    """The fields of each kind of state change that brokers log; None if the recording harness did not state them."""


_BEFORE_STATED = {"ctl_send": {"live_brokers", "queued_ms"}} | {
    kind: set(FIELDS[kind])
    for kind in (
        "leave_request",
        "list_offsets",
        "log_start",
        "logs_close",
        "lso",
        "registrations_read",
        "segment_delete",
        "txn_load",
        "txn_marker",
        "txn_marker_refused",
        "txn_marker_resp",
        "txn_marker_send",
        "txn_offset_commit",
        "txn_response",
        "txn_state",
        "txn_unload",
        "txn_verification",
    )
}
"""Fields that runs of version 5 do not certainly have unless they state it: the first ones do not have them."""


def write_version(folder: RunFolder, logged: Logged) -> None:
    """Write the version into a new run folder, and the fields of each kind of state change that its brokers log."""
    stated = Format(evidence=VERSION, logged={kind: tuple(fields) for kind, fields in logged.items()})
    folder.format.write_text(stated.model_dump_json() + "\n", encoding="utf-8")


def logged_in(folder: RunFolder) -> Logged:
    """Return the fields of each kind of state change that the brokers of a run can have logged.

    Raises:
        EvidenceError: the folder does not state its version.
    """
    return stated_or_first(_format(folder).logged)


def stated_or_first(logged: Logged | None) -> Logged:
    """Return the fields that a harness states; without a statement those that the first runs of this version have."""
    if logged is not None:
        return logged
    before = {kind: [name for name in FIELDS[kind] if name not in _BEFORE_STATED.get(kind, ())] for kind in FIELDS}
    return {kind: fields for kind, fields in before.items() if fields or kind not in _BEFORE_STATED}


def require_version(folder: RunFolder) -> None:
    """Check that this program reads a run's evidence.

    Raises:
        EvidenceError: its version is another, or the folder does not state one.
    """
    require_readable(_format(folder).evidence, str(folder.root))


def _format(folder: RunFolder) -> Format:
    try:
        return Format.model_validate_json(folder.format.read_bytes())
    except FileNotFoundError as error:
        raise EvidenceError(f"{folder.format} is missing: no version of evidence is stated") from error
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{folder.format}: not a version of evidence: {reason_of(error)}") from error


def require_readable(version: int, subject: str) -> None:
    """Check that this program reads a version.

    Raises:
        EvidenceError: it does not; the message begins with `subject`.
    """
    if version != VERSION:
        raise EvidenceError(f"{subject}: its evidence has version {version}; this program reads version {VERSION}")
