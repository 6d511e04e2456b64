"""Seals the evidence of a run: each file's size and digest when its cluster had ended.

Later damage is found by the digest, and described by the chain of its lines (`harness/system/chain.py`).
Earlier damage is found by the chain alone.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from harness.store.folder import RunFolder
from harness.store.reserve import write_whole
from harness.store.result import StoredModel, reason_of
from harness.system.chain import Reading, read_chain

MUST_END = ("operations", "journal", "zookeeper", "liveness")
"""Kinds of evidence whose writers mark their end; a broker writes each line before it acts."""
UNCHAINED = ("replicas",)
"""Kinds whose files the harness writes at once, just before they are sealed."""
DIGEST_BYTES = 16
NO_END = "it lacks the line that ends it: its writer was killed, and lines may be missing"


class SealedFile(StoredModel):
    """One file as it was when the cluster had ended."""

    place: str
    """Within the run folder."""
    kind: str
    """As in `RunFolder.evidence`; empty for files about the request and the course of the run."""
    size_bytes: int
    lines: int
    digest: str
    """BLAKE2b of all bytes, in hexadecimal."""
    breaks: int
    """Lines that do not continue the chain."""
    first_breaks: list[str]
    has_end: bool


class Seal(StoredModel):
    """The content of `seal.json`."""

    files: list[SealedFile]
    digest: str
    """BLAKE2b of the files' entries as compact JSON, in hexadecimal."""

    @classmethod
    def of(cls, files: list[SealedFile]) -> Self:
        """Return the seal of these files."""
        text = "".join(file.model_dump_json() for file in files)
        return cls(files=files, digest=hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A defect of one file of a run."""

    place: str
    """Of the file within the run folder."""
    kind: str
    """Kind of evidence; empty if nothing of the run is reliable."""
    text: str
    is_open_end: bool = False
    """Whether only the last lines of a killed writer are missing."""


def seal(folder: RunFolder) -> None:
    """Record each file's size and digest; a run that is sealed already keeps its seal."""
    if folder.seal.exists():
        return
    files = [_sealed(folder, path, kind) for kind, paths in _files(folder).items() for path in paths]
    write_whole(folder, folder.seal, Seal.of(files).model_dump_json(indent=2) + "\n")


def sealed_lines(folder: RunFolder) -> int:
    """Return the number of lines of evidence when the cluster had ended; 0 without a seal."""
    return sum(file.lines for file in stated_files(folder))


def stated_files(folder: RunFolder) -> list[SealedFile]:
    """Return the files of evidence when the cluster had ended; empty without a seal."""
    try:
        stated = Seal.model_validate_json(folder.seal.read_bytes())
    except (OSError, ValidationError):
        return []
    return [file for file in stated.files if file.kind]


def damage(folder: RunFolder) -> list[Hole]:
    """Return the defects of the evidence of a run whose completeness can be proved."""
    try:
        stated = Seal.model_validate_json(folder.seal.read_bytes())
    except FileNotFoundError:
        return [Hole(place=folder.seal.name, kind="", text="it is missing: nothing proves that the evidence is whole")]
    except (OSError, ValidationError) as error:
        return [Hole(place=folder.seal.name, kind="", text=f"it is damaged: {reason_of(error)}")]
    if stated != Seal.of(stated.files):
        return [Hole(place=folder.seal.name, kind="", text="it is damaged: its digest differs")]
    known = {file.place for file in stated.files}
    wrong = [hole for file in stated.files for hole in _holes_of(folder, file)]
    for kind, paths in _files(folder).items():
        more = [place for path in paths if (place := _place(folder, path)) not in known]
        wrong += [Hole(place=place, kind=kind, text="it did not exist when the cluster had stopped") for place in more]
    return wrong


def _files(folder: RunFolder) -> dict[str, list[Path]]:
    """Return the existing files by kind; those that all kinds need have no kind."""
    declared = (folder.scenario, folder.plan, folder.format, folder.plugins, folder.phases)
    return {"": [path for path in declared if path.is_file()], **folder.evidence()}


def _place(folder: RunFolder, path: Path) -> str:
    return path.relative_to(folder.root).as_posix()


def _sealed(folder: RunFolder, path: Path, kind: str) -> SealedFile:
    size_bytes = path.stat().st_size
    reading = _read(path, kind)
    return SealedFile(
        place=_place(folder, path),
        kind=kind,
        size_bytes=size_bytes,
        lines=reading.lines,
        digest=_digest(path, size_bytes),
        breaks=reading.breaks,
        first_breaks=reading.first_breaks,
        has_end=reading.ended or not size_bytes,
    )


def _read(path: Path, kind: str) -> Reading:
    with path.open("rb") as lines:
        if kind and kind not in UNCHAINED:
            return read_chain(lines)
        return Reading(lines=sum(1 for _ in lines))


def _digest(path: Path, size_bytes: int) -> str:
    """Return the digest of the first bytes; the log of phases grows after the run is sealed."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with path.open("rb") as file:
        while size_bytes > 0 and (block := file.read(min(size_bytes, 1 << 20))):
            digest.update(block)
            size_bytes -= len(block)
    return digest.hexdigest()


def _holes_of(folder: RunFolder, file: SealedFile) -> Iterator[Hole]:
    path = folder.root / file.place
    try:
        for text in _wrong(path, file, grows=path == folder.phases):
            yield Hole(place=file.place, kind=file.kind, text=text)
    except OSError as error:
        yield Hole(place=file.place, kind=file.kind, text=f"it cannot be read: {error.strerror}")
    if file.kind in MUST_END and not file.has_end:
        yield Hole(place=file.place, kind=file.kind, text=NO_END, is_open_end=True)


def _wrong(path: Path, file: SealedFile, *, grows: bool) -> Iterator[str]:
    """Yield the defects of the lines of a file, a sentence each."""
    if not path.is_file():
        yield "it is missing"
        return
    size_bytes = path.stat().st_size
    if _digest(path, file.size_bytes) == file.digest and (grows or size_bytes == file.size_bytes):
        if file.breaks:
            yield broken(file.breaks, file.first_breaks)
        return
    reading = _read(path, file.kind)
    yield f"it was changed after the cluster had ended: {_difference(file, size_bytes, reading)}"
    if reading.breaks:
        yield broken(reading.breaks, reading.first_breaks)


def _difference(file: SealedFile, size_bytes: int, reading: Reading) -> str:
    if reading.lines != file.lines:
        return f"it has {reading.lines} lines, and had {file.lines}"
    if size_bytes != file.size_bytes:
        return f"it has {size_bytes} bytes, and had {file.size_bytes}"
    return "its bytes are not the same"


def broken(breaks: int, first: list[str]) -> str:
    """Return a sentence on this many broken lines, of which the first are described."""
    more = f" (and {breaks - len(first)} more)" if breaks > len(first) else ""
    return "; ".join(first) + more


def sealed_files(folder: RunFolder) -> dict[str, list[SealedFile]]:
    """Return the files by kind of evidence, of the kinds that are complete and unchanged."""
    if not folder.seal.exists():
        return {}
    holes = damage(folder)
    whole = [kind for kind in folder.evidence() if of_kind(holes, kind) is None]
    files = Seal.model_validate_json(folder.seal.read_bytes()).files if whole else []
    return {kind: [file for file in files if file.kind == kind] for kind in whole}


def of_kind(holes: Sequence[Hole], kind: str) -> Hole | None:
    """Return the first hole that makes evidence of a kind unreliable."""
    return next((hole for hole in holes if hole.kind in ("", kind) and not hole.is_open_end), None)
