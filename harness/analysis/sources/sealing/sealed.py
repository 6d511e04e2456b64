"""Which typed tables does a run's evidence have, and do they hold?

A kind of evidence has tables if it is in perfect order: everything that `facts/evidence.py` asks of lines is asked when
they are made, and whatever is odd is left to it, so that there is one way to name what is wrong. They hold for the
digests of the lines, for the run's name and for a layout.
"""

import hashlib
import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from pydantic import ValidationError

from harness.analysis.sources.sealing.kinds import MAKE, NOT_IN_ORDER
from harness.analysis.sources.sealing.rows import Files
from harness.analysis.sources.sealing.writer import Writer, as_files, path_of
from harness.analysis.sources.typed import TYPED, layout_of
from harness.store.folder import RunFolder
from harness.store.result import StoredModel
from harness.store.seal import DIGEST_BYTES, SealedFile, sealed_files

logger = logging.getLogger(__name__)

STATED = "tables.json"
LONGEST_REASON = 300


class Tables(StoredModel):
    """The content of `tables.json` of one kind of evidence."""

    run_id: str
    layout: str
    lines: list[str]
    """Digests of the files of lines that they are made of."""
    odd: str
    """Why there are none; empty if there are."""
    present: list[str]
    """What their lines say that they are, as `LINE_KINDS` has it."""
    digests: dict[str, str]
    """Of the tables, by name."""
    digest: str = ""
    """Of all else here."""

    def signed(self) -> Self:
        """Return the same with its digest."""
        text = self.model_copy(update={"digest": ""}).model_dump_json()
        return self.model_copy(update={"digest": _digest(text.encode())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The tables of one kind of evidence of a run."""

    paths: dict[str, Path]
    """By name."""
    present: frozenset[str]
    """What their lines say that they are."""


def sealed_tables(folder: RunFolder, *, make: bool = True) -> dict[str, Sealed]:
    """Return the tables of a run's evidence by kind, without the kinds that are to be read from their lines.

    Those that are missing, damaged, of another run or of other lines are made of the lines, if something may be written
    to `make` them.
    """
    kinds = {kind: _tables_of(folder, kind, files, make=make) for kind, files in sealed_files(folder).items()}
    return {
        kind: Sealed(
            paths={name: path_of(folder.tables / kind, name) for name in tables.digests},
            present=frozenset(tables.present),
        )
        for kind, tables in kinds.items()
        if tables is not None and not tables.odd
    }


def odd_kinds(folder: RunFolder) -> set[str]:
    """Return the kinds of evidence of which it is written down that they have no tables."""
    return {path.parent.name for path in folder.tables.glob(f"*/{STATED}") if _is_odd(path)}


def _is_odd(path: Path) -> bool:
    try:
        return bool(Tables.model_validate_json(path.read_bytes()).odd)
    except (OSError, ValidationError):
        return False


def _tables_of(folder: RunFolder, kind: str, files: Sequence[SealedFile], *, make: bool) -> Tables | None:
    root = folder.tables / kind
    wanted = {"run_id": folder.run_id, "layout": layout_of(kind), "lines": [file.digest for file in files]}
    try:
        stated = Tables.model_validate_json((root / STATED).read_bytes())
        holds = stated == stated.signed() and wanted.items() <= stated.model_dump().items()
        if holds and stated.digests == _digests(root, stated.digests):
            return stated
    except (OSError, ValidationError):
        pass  # they are made again
    if not make:
        return None
    try:
        return _made(root, wanted, kind, [(folder.root / file.place, file.lines) for file in files])
    except OSError as error:
        logger.warning("tables.failed kind=%s error=%s", kind, error.strerror)
        return None


def _made(root: Path, wanted: dict[str, Any], kind: str, files: Files) -> Tables:
    """Make the tables, or record why there are none; earlier tables are removed at the end."""
    root.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix=f".{kind}-", dir=root.parent, ignore_cleanup_errors=True) as temporary:
        new = Path(temporary, kind)
        new.mkdir()
        odd, present = "", set()
        try:
            with Writer(wanted["run_id"], kind, as_files(new)) as write:
                present = MAKE[kind](write, files)
        except NOT_IN_ORDER as error:
            odd = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        digests = _digests(new, () if odd else TYPED[kind])
        made = Tables(**wanted, odd=odd, present=sorted(present), digests=digests).signed()
        (new / STATED).write_text(made.model_dump_json(indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(root, ignore_errors=True)
        new.replace(root)
    return made


def _digests(root: Path, names: Iterable[str]) -> dict[str, str]:
    digests = {}
    for name in names:
        with path_of(root, name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).hexdigest()
    return digests


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
