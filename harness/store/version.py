"""The version of a run's evidence; this program reads only the version that it writes.

Version 5 is the lines of `harness/store/history.py` and `harness/events.py`, chained (`harness/system/chain.py`) in a
folder that is sealed (`harness/store/seal.py`). Commit f058d1f9 is the last that reads versions 1 to 4.

A field whose meaning changes needs a new version.
"""

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import EvidenceError
from harness.store.folder import RunFolder
from harness.store.result import reason_of

VERSION = 5


class Format(BaseModel):
    """The content of `format.json`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    evidence: int


def write_version(folder: RunFolder) -> None:
    """Write the version into a new run folder."""
    folder.format.write_text(Format(evidence=VERSION).model_dump_json() + "\n", encoding="utf-8")


def require_version(folder: RunFolder) -> None:
    """Check that this program reads a run's evidence.

    Raises:
        EvidenceError: its version is another, or the folder does not state one.
    """
    try:
        version = Format.model_validate_json(folder.format.read_bytes()).evidence
    except FileNotFoundError as error:
        raise EvidenceError(f"{folder.format} is missing: no version of evidence is stated") from error
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{folder.format}: not a version of evidence: {reason_of(error)}") from error
    require_readable(version, str(folder.root))


def require_readable(version: int, subject: str) -> None:
    """Check that this program reads a version.

    Raises:
        EvidenceError: it does not; the message begins with `subject`.
    """
    if version != VERSION:
        raise EvidenceError(f"{subject}: its evidence has version {version}; this program reads version {VERSION}")
