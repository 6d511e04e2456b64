"""Which version of the lines of evidence a run holds, so that runs of earlier versions are still read, later ones not.

1: runs without a number. Brokers' logs may lack what came later: `ends` and `epoch_start_offset` of a proposal, the
   local epochs of a truncation, the `profile` of an election, the ISR of a raised high watermark.
2: all that `harness/store/history.py` and `harness/events.py` say today.

What a line of an older version leaves out reads as null, and a check that needs it answers UNKNOWN. A field that
changes its meaning takes a new number, and code that reads the older ones.
"""

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import EvidenceError
from harness.store.folder import RunFolder

VERSION = 2
UNNUMBERED = 1
"""Of runs that do not say."""


class Format(BaseModel):
    """The content of `format.json`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    evidence: int


def write_version(folder: RunFolder) -> None:
    """Say which version the lines of a new run have."""
    folder.format.write_text(Format(evidence=VERSION).model_dump_json() + "\n", encoding="utf-8")


def read_version(folder: RunFolder) -> int:
    """Return which version the lines of a run have.

    Raises:
        EvidenceError: a later version of this program has written them, or the file says something else.
    """
    try:
        version = Format.model_validate_json(folder.format.read_bytes()).evidence
    except FileNotFoundError:
        return UNNUMBERED
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{folder.format}: not a version of evidence: {error}") from error
    return known_version(version, str(folder.root))


def known_version(version: int, where: str) -> int:
    """Return a version that can be read.

    Raises:
        EvidenceError: it cannot.
    """
    if not UNNUMBERED <= version <= VERSION:
        raise EvidenceError(
            f"{where}: its evidence has version {version}; this program reads {UNNUMBERED} to {VERSION}"
        )
    return version
