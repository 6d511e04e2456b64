"""Which images a cluster in containers needs: what goes into each, and the tag that follows from it.

A tag is a digest of everything that decides what is inside (Dockerfile, base recipe, sources, locked requirements,
jars), so an image whose tag exists is up to date. Which base it stands on is a label, because the base depends on what
can be pulled where it is built.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.cluster import embedded_zookeeper
from harness.cluster.containers.wheelhouse import locked
from harness.errors import ClusterError

LABEL = "kafka-chaos.image"
"""On every image of ours and on each of its layers, so that removing touches nothing else."""
BASE_LABEL = "kafka-chaos.base"

CHECKOUT = Path(__file__).resolve().parents[3]
BROKER_PACKAGES = ("crc32c", "kafka-python", "kazoo")
"""What `harness.broker` imports beside the standard library and `harness.events`."""
SOURCE_SUFFIXES = frozenset({".py", ".json"})
DIGEST_LENGTH = 12


class KnowsImages(Protocol):
    """What can say whether an image is there."""

    def has_image(self, name: str) -> bool:
        """Return whether the engine has an image of this name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image to build: its context without the wheels, and its name."""

    part: str
    dockerfile: Path
    files: Mapping[str, Path]
    """Where each file lies in the context, and where on this machine."""
    requirements: str = ""
    """Locked requirements, whose wheels go into the context."""
    digest: str

    @property
    def repository(self) -> str:
        """Return the name without the tag."""
        return f"kafka-chaos-{self.part}"

    @property
    def name(self) -> str:
        """Return repository and tag."""
        return f"{self.repository}:{self.digest}"


def broker_image(checkout: Path = CHECKOUT) -> str:
    """Return the name of the brokers' image as the sources are now; no engine is asked.

    Raises:
        ClusterError: something that goes into it is missing.
    """
    return broker(checkout).name


def zookeeper_image(checkout: Path = CHECKOUT) -> str:
    """Return the name of ZooKeeper's image as its parts are now; no engine is asked.

    Raises:
        ClusterError: something that goes into it is missing.
    """
    return zookeeper(checkout).name


def missing(engine: KnowsImages) -> list[str]:
    """Return the names of needed images that the engine does not have."""
    return [name for name in (broker_image(), zookeeper_image()) if not engine.has_image(name)]


def broker(checkout: Path = CHECKOUT) -> Image:
    """Return what the brokers' image is made of."""
    harness = checkout / "harness"
    sources = [harness / "__init__.py", harness / "events.py", *_sources(harness / "broker")]
    files = {path.relative_to(checkout).as_posix(): path for path in sources}
    requirements = locked(checkout / "requirements.txt", BROKER_PACKAGES)
    contents = {name: _digest(path) for name, path in files.items()} | {"requirements.txt": requirements}
    return _image(checkout, "broker", files, contents, requirements)


def zookeeper(checkout: Path = CHECKOUT) -> Image:
    """Return what ZooKeeper's image is made of; a jar's name carries its version, so its size is proof enough."""
    files = {f"jars/{jar.name}": jar for jar in embedded_zookeeper.jars()}
    return _image(checkout, "zookeeper", files, {name: str(path.stat().st_size) for name, path in files.items()})


def base_name(checkout: Path = CHECKOUT) -> str:
    """Return the name of the base that the script makes."""
    return f"kafka-chaos-base:{_digest(base_script(checkout))[:DIGEST_LENGTH]}"


def base_script(checkout: Path = CHECKOUT) -> Path:
    """Return the script that makes a base where none can be pulled."""
    return checkout / "docker" / "base.sh"


def _image(
    checkout: Path, part: str, files: Mapping[str, Path], contents: Mapping[str, str], requirements: str = ""
) -> Image:
    dockerfile = checkout / "docker" / f"{part}.Dockerfile"
    everything = {**contents, "Dockerfile": _digest(dockerfile), "base": _digest(base_script(checkout))}
    digest = hashlib.sha256(repr(sorted(everything.items())).encode()).hexdigest()[:DIGEST_LENGTH]
    return Image(part=part, dockerfile=dockerfile, files=files, requirements=requirements, digest=digest)


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise ClusterError(f"{error.filename} is missing: images are built from a checkout of the project") from error
