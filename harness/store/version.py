"""Which version does a run's evidence have? Runs of earlier versions are read, those of later ones refused.

1: runs without a number. State-change logs may lack `ends` and `epoch_start_offset` of a proposal, the local epochs of
   a truncation, the `profile` of an election, and the ISR of a raised high watermark.
2: the present lines of `harness/store/history.py` and `harness/events.py`, neither chained nor sealed: what was lost
   without a trace is not known.
3: lines are chained (`harness/system/chain.py`), and the folder is sealed (`harness/store/seal.py`). State-change logs
   may lack the acks of an append, what was refused of idempotent producers, who lives by an UpdateMetadata, and the
   epochs by which a leader answers.
4: `liveness.jsonl`, folders of deleted logs, and the lines that version 3 may lack.
5: members of groups say what they were assigned, and with which generation they poll and commit. Coordinators tell of
   groups' states, members and assignments, and when they decided about a commit.

A field that an older version lacks is null, and a check that needs it answers UNKNOWN. A field whose meaning changes
needs a new version, and code that reads the older ones.
"""

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import EvidenceError
from harness.store.folder import RunFolder
from harness.store.result import reason_of

VERSION = 5
SEALED = 3
"""The first version whose runs are sealed."""
WATCHED = 4
"""The first version whose runs say what was alive in the end, and whose brokers what they refused and knew."""
GROUPED = 5
"""The first version whose runs can have members of groups."""
UNNUMBERED = 1
"""The version of runs without `format.json`."""


class Format(BaseModel):
    """The content of `format.json`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    evidence: int


def write_version(folder: RunFolder) -> None:
    """Write the present version into a new run folder."""
    folder.format.write_text(Format(evidence=VERSION).model_dump_json() + "\n", encoding="utf-8")


def read_version(folder: RunFolder) -> int:
    """Return the version of a run's evidence.

    Raises:
        EvidenceError: a later version of this program has written it, or the file holds no version.
    """
    try:
        version = Format.model_validate_json(folder.format.read_bytes()).evidence
    except FileNotFoundError:
        return UNNUMBERED
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{folder.format}: not a version of evidence: {reason_of(error)}") from error
    return known_version(version, str(folder.root))


def known_version(version: int, subject: str) -> int:
    """Return the version if this program reads it.

    Raises:
        EvidenceError: it does not; the message begins with `subject`.
    """
    if not UNNUMBERED <= version <= VERSION:
        raise EvidenceError(
            f"{subject}: its evidence has version {version}; this program reads {UNNUMBERED} to {VERSION}"
        )
    return version
