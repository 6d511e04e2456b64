"""Builds the images: a base, the wheels, then the image of each kind of server, unless it is up to date."""

import contextlib
import fcntl
import io
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from harness.cluster.containers import base, images
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.image_store import ImageStore
from harness.cluster.containers.images import Image
from harness.cluster.containers.wheelhouse import wheels


class BuildProgress(Protocol):
    """Receives the progress of a build."""

    def started(self, step: str, detail: str) -> None:
        """A step begins."""
        ...

    def line(self, text: str) -> None:
        """A line of a step's output."""
        ...

    def finished(self, step: str, result: str) -> None:
        """A step has ended, or was not needed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One image after a build; `rebuilt` is False when it was up to date."""

    part: str
    name: str
    base: str
    rebuilt: bool


def build(
    engine: Engine, progress: BuildProgress, *, base_image: str | None = None, rebuild: bool = False
) -> list[Built]:
    """Build the images that the engine lacks, or all with `rebuild` or another base than they have; return all.

    Raises:
        ClusterError: a base cannot be pulled or made, a package cannot be downloaded, or a step of a build fails.
    """
    store = ImageStore(engine)
    required = images.needed()
    with _build_lock(images.CHECKOUT / "build", progress):
        stale = [image for image in required if rebuild or not _up_to_date(store, image, base_image)]
        base_name = _base(store, progress, base_image, fresh=rebuild) if stale else ""
        for image in required:
            if image in stale:
                _build_one(store, progress, image, base_name, cached=not rebuild)
            else:
                progress.finished(image.part, f"unchanged: {image.name}")
    return [
        Built(
            part=image.part,
            name=image.name,
            base=base_name if image in stale else store.base_of(image.name) or "",
            rebuilt=image in stale,
        )
        for image in required
    ]


def _up_to_date(store: ImageStore, image: Image, base_image: str | None) -> bool:
    present_base = store.base_of(image.name)
    return present_base is not None and base_image in (None, present_base)


def _base(store: ImageStore, progress: BuildProgress, base_image: str | None, *, fresh: bool) -> str:
    progress.started("base", base_image or f"{base.DEFAULT_BASE_IMAGE}, or one made here")
    started_s = time.monotonic()
    name, how = base.prepare(store, base_image, fresh=fresh, log=progress.line)
    progress.finished("base", f"{name}: {how} ({time.monotonic() - started_s:.1f} s)")
    return name


def _build_one(store: ImageStore, progress: BuildProgress, image: Image, base_name: str, *, cached: bool) -> None:
    requirements = image.sources.get(images.REQUIREMENTS)
    wheel_files: list[Path] = []
    if requirements is not None:
        progress.started("wheelhouse", "the packages that the image needs")
        started_s = time.monotonic()
        platform = base.platform_of(store, base_name)
        wheel_files = wheels(images.CHECKOUT / "build" / "wheelhouse", requirements.decode(), platform)
        progress.finished("wheelhouse", f"{len(wheel_files)} wheels ({time.monotonic() - started_s:.1f} s)")
    progress.started(image.part, f"building {image.name}")
    started_s = time.monotonic()
    with tempfile.TemporaryFile() as archive:
        write_context(archive, image, wheel_files)
        store.build(archive, image.name, base=base_name, cached=cached, log=progress.line)
    progress.finished(image.part, f"built {image.name} ({time.monotonic() - started_s:.1f} s)")


def write_context(archive: IO[bytes], image: Image, wheel_files: list[Path]) -> None:
    """Write a build's context as a tar archive: the image's files, the wheels, and nothing else.

    Owners, permissions and times are always the same, so that the engine's layer cache hits.
    """
    contents = dict(image.sources)
    contents |= {name: jar.read_bytes() for name, jar in image.jars.items()}
    contents |= {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in wheel_files}
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    archive.seek(0)


@contextlib.contextmanager
def _build_lock(folder: Path, progress: BuildProgress) -> Iterator[None]:
    """Hold the checkout's build lock; wait while another build holds it."""
    folder.mkdir(exist_ok=True)
    with (folder / "images.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.started("lock", "waiting for another build of this checkout")
            fcntl.flock(lock, fcntl.LOCK_EX)
            progress.finished("lock", "the other build is over")
        yield
