"""Is the evidence of a run what it was when its cluster had ended? Each file's size and digest, written down then.

What is damaged afterwards is found by its digest, and described by the chain of its lines (`harness/system/chain.py`).
What was damaged before is found by the chain alone.
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
"""Kinds of evidence whose writers say when they have ended; a broker writes each line before it does what it says."""
UNCHAINED = ("replicas",)
"""Kinds whose files the harness writes at once, just before they are sealed."""
DIGEST_BYTES = 16
NO_END = "its writer was killed, or it would have said that it ends here: what it had still to write is not known"


class SealedFile(StoredModel):
    """One file as it was when the cluster had ended."""

    place: str
    """Within the run folder."""
    kind: str
    """As in `RunFolder.evidence`; empty for what says how the run was asked for and how it went."""
    size_bytes: int
    lines: int
    digest: str
    """BLAKE2b of all bytes, in hexadecimal."""
    breaks: int
    """Lines that did not follow the ones before them."""
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
    """Something that is wrong with one file of a run."""

    place: str
    """Of the file within the run folder."""
    kind: str
    """Of evidence; empty where nothing of the run can be relied on."""
    text: str
    is_open_end: bool = False
    """Whether no more is unknown than what its writer had still to say when it was killed."""


def seal(folder: RunFolder) -> None:
    """Write down what each file of a run is; a run that is sealed already stays as it was sealed."""
    if folder.seal.exists():
        return
    files = [_sealed(folder, path, kind) for kind, paths in _files(folder).items() for path in paths]
    write_whole(folder, folder.seal, Seal.of(files).model_dump_json(indent=2) + "\n")


def sealed_lines(folder: RunFolder) -> int:
    """Return how many lines of evidence a run left when its cluster had ended; 0 where no seal says it."""
    return sum(file.lines for file in stated_files(folder))


def stated_files(folder: RunFolder) -> list[SealedFile]:
    """Return the files of evidence that a run left when its cluster had ended; none where no seal says it."""
    try:
        stated = Seal.model_validate_json(folder.seal.read_bytes())
    except (OSError, ValidationError):
        return []
    return [file for file in stated.files if file.kind]


def damage(folder: RunFolder) -> list[Hole]:
    """Return what is wrong with the evidence of a run whose completeness can be proved."""
    try:
        stated = Seal.model_validate_json(folder.seal.read_bytes())
    except FileNotFoundError:
        return [Hole(place=folder.seal.name, kind="", text="it is missing: nothing proves that the evidence is whole")]
    except (OSError, ValidationError) as error:
        return [Hole(place=folder.seal.name, kind="", text=f"it is damaged: {reason_of(error)}")]
    if stated != Seal.of(stated.files):
        return [Hole(place=folder.seal.name, kind="", text="it is damaged: its digest is another")]
    known = {file.place for file in stated.files}
    wrong = [hole for file in stated.files for hole in _holes_of(folder, file)]
    for kind, paths in _files(folder).items():
        more = [place for path in paths if (place := _place(folder, path)) not in known]
        wrong += [Hole(place=place, kind=kind, text="it was not there when the cluster had ended") for place in more]
    return wrong


def _files(folder: RunFolder) -> dict[str, list[Path]]:
    """Return the existing files by kind, and under no kind those without which none can be understood."""
    declared = (folder.scenario, folder.plan, folder.format, folder.phases)
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
    """Return the digest of so many bytes; the log of phases goes on after the run is sealed."""
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
    """Yield what is wrong with the lines of a file, a sentence each."""
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
    """Return what is wrong with so many lines, of which the first are described."""
    more = f" (and {breaks - len(first)} more)" if breaks > len(first) else ""
    return "; ".join(first) + more


def sealed_files(folder: RunFolder) -> dict[str, list[SealedFile]]:
    """Return the files by kind of evidence, of the kinds that are whole and as they were sealed."""
    if not folder.seal.exists():
        return {}
    holes = damage(folder)
    whole = [kind for kind in folder.evidence() if of_kind(holes, kind) is None]
    files = Seal.model_validate_json(folder.seal.read_bytes()).files if whole else []
    return {kind: [file for file in files if file.kind == kind] for kind in whole}


def of_kind(holes: Sequence[Hole], kind: str) -> Hole | None:
    """Return the first hole that leaves evidence of a kind unreliable."""
    return next((hole for hole in holes if hole.kind in ("", kind) and not hole.is_open_end), None)
