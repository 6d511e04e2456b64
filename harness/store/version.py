"""The version of a run's evidence; this program reads only the version that it writes.

Version 5 is the lines of `harness/store/history.py` and `harness/events.py`, chained (`harness/system/chain.py`) in a
folder that is sealed (`harness/store/seal.py`). Commit f058d1f9 is the last that reads versions 1 to 4.

A field whose meaning changes needs a new version. A new kind of state change, or a new field of one, does not: each run
states which ones its brokers log, so that no check takes an event that was not yet logged for one that did not happen.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import EvidenceError
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
    """The fields of each kind of state change that brokers log; None in refused development versions."""


def write_version(folder: RunFolder, logged: Logged) -> None:
    """Write the version into a new run folder, and the fields of each kind of state change that its brokers log."""
    stated = Format(evidence=VERSION, logged={kind: tuple(fields) for kind, fields in logged.items()})
    folder.format.write_text(stated.model_dump_json() + "\n", encoding="utf-8")


def require_logged(logged: Logged | None, subject: str) -> Logged:
    """Return the fields that a harness states.

    Raises:
        EvidenceError: it states none; the message begins with `subject`.
    """
    if logged is None:
        raise EvidenceError(f"{subject}: it does not state which events its brokers log; record it again")
    return logged


def require_version(folder: RunFolder) -> Logged:
    """Return the fields of each kind of state change that a run's brokers can have logged, if this program reads it.

    Raises:
        EvidenceError: its version is another, or the folder states none, or not what its brokers log.
    """
    stated = _format(folder)
    require_readable(stated.evidence, str(folder.root))
    return require_logged(stated.logged, str(folder.root))


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
