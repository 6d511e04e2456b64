"""Spark's classes as a JVM has them in memory, kept in a file beside Spark, so that the next JVM is quick to start.

A JVM that starts cold reads, checks and links some fifteen thousand classes; with such a file (class data sharing,
JEP 350) it maps them. A JVM for which the file is not made goes on without it.
"""

import hashlib
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

NAME = "spark-classes-"
OFF_VARIABLE = "CHAOS_CLASS_ARCHIVE"
"""Set to `off`, no file is made or used."""
MAKING_S = 120.0
"""A JVM that leaves its classes behind may take so long to end."""
FREE_BYTES = 1_000_000_000
"""A file has a fifth of it; where less is free, none is made."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """What one JVM does about the file: use it, make it, or neither."""

    file: Path | None = None
    """Where it belongs; none where there is no place for it."""
    made: Path | None = None
    """Where the JVM leaves its classes when it ends; none if it uses a file or is not to make one."""

    @property
    def options(self) -> list[str]:
        """What the JVM is told."""
        if self.made is not None:
            return [f"-XX:ArchiveClassesAtExit={self.made}"]
        return [] if self.file is None else [f"-XX:SharedArchiveFile={self.file}"]

    def keep(self) -> None:
        """Keep what the JVM has left, instead of what an older one had; nothing happens if it has left nothing."""
        if self.file is None or self.made is None or not self.made.is_file():
            return
        arriving = self.file.with_suffix(f".{os.getpid()}")
        try:
            shutil.move(self.made, arriving)
            arriving.replace(self.file)
        except OSError:  # the disk is full, say; the next session tries again
            arriving.unlink(missing_ok=True)
            return
        for other in self.file.parent.glob(f"{NAME}*"):
            if other != self.file:
                with suppress(OSError):
                    other.unlink()


def class_archive(scratch: Path, *, make: bool, parent: Path | None = None) -> ClassArchive:
    """Return what a JVM that starts now does about the file.

    Args:
        scratch: Folder for what the JVM leaves when it ends.
        make: Whether it is going to do what later ones will do, and so makes the file if there is none.
        parent: Folder of the file; by default within the virtual environment, and none outside of one.
    """
    if parent is None:
        if sys.prefix == sys.base_prefix:
            return ClassArchive()
        parent = Path(sys.prefix, "share", "kafka-chaos")
    if os.environ.get(OFF_VARIABLE) == "off":
        return ClassArchive()
    java = _java()
    if java is None:
        return ClassArchive()
    file = parent / f"{NAME}{_digest(java)}.jsa"
    if file.is_file():
        return ClassArchive(file)
    return ClassArchive(file, scratch / file.name) if make and _has_place(parent, scratch) else ClassArchive()


def _has_place(*folders: Path) -> bool:
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).free < FREE_BYTES:
                return False
    except OSError:
        return False
    return True


def _java() -> Path | None:
    """Return the Java that Spark's own script starts, if there is one."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    return None if found is None else Path(found).resolve()


def _digest(java: Path) -> str:
    """Return what tells apart what a file is made for: this Java, and Spark's jars as they are."""
    jars = sorted(Path(pyspark.__file__).with_name("jars").glob("*.jar"))
    told = [f"{path} {status.st_size} {status.st_mtime_ns}" for path in (java, *jars) for status in (path.stat(),)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
