"""The images of a cluster in containers, the files of each, and its tag.

A tag is a digest of all inputs (Dockerfile, base recipe, sources, locked requirements, jars), so an image whose tag
exists is up to date. The base is a label instead, because it depends on what can be pulled where the image is built.
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
"""On every image of ours and on each of its layers, so that only ours are removed."""
BASE_LABEL = "kafka-chaos.base"

CHECKOUT = Path(__file__).resolve().parents[3]
BROKER_PACKAGES = ("cramjam", "crc32c", "kafka-python", "kazoo", "msgspec", "prometheus-client")
"""The packages that `harness.broker` imports."""
REQUIREMENTS = "requirements.txt"
SOURCE_SUFFIXES = frozenset({".py", ".json"})
DIGEST_LENGTH = 12


class ImageLookup(Protocol):
    """Anything that knows which images exist."""

    def has_image(self, name: str) -> bool:
        """Return whether the engine has an image of this name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image to build: its name, and its context without the wheels."""

    part: str
    sources: Mapping[str, bytes]
    """Content of each file of the context; read once, so that the image is what its digest says."""
    jars: Mapping[str, Path]
    """Path on this machine of each big file of the context, which never changes."""
    digest: str

    @property
    def name(self) -> str:
        """Return repository and tag."""
        return f"kafka-chaos-{self.part}:{self.digest}"


def needed() -> list["Image"]:
    """Return every image that a cluster takes."""
    return [broker(), java(), relay()]


def missing(engine: ImageLookup) -> list[str]:
    """Return the names of needed images that the engine does not have."""
    return [image.name for image in needed() if not engine.has_image(image.name)]


SHARED = (
    "__init__.py",
    "cluster/__init__.py",
    "cluster/disks/__init__.py",
    "cluster/disks/ballast.py",
    "cluster/limits/__init__.py",
    "cluster/limits/descriptors.py",
    "cluster/limits/pressure.py",
    "events.py",
    "properties_file.py",
    "system/__init__.py",
    "system/chain.py",
    "values.py",
)
"""Modules of the harness that the broker imports, and what is run beside it."""
RELAY = (
    "__init__.py",
    "cluster/__init__.py",
    "cluster/capabilities.py",
    "cluster/links/__init__.py",
    "cluster/links/conversation.py",
    "cluster/links/interception.py",
    "cluster/links/interference.py",
    "cluster/links/links.py",
    "cluster/links/lost_replies.py",
    "cluster/links/rules.py",
    "cluster/ports.py",
    "cluster/relay/__init__.py",
    "cluster/relay/__main__.py",
    "cluster/relay/connection.py",
    "cluster/relay/election.py",
    "cluster/relay/frames.py",
    "cluster/relay/listeners.py",
    "cluster/relay/messages.py",
    "cluster/relay/relay.py",
    "cluster/relay/senders.py",
    "cluster/relay/zookeeper.py",
    "cluster/supervision/__init__.py",
    "cluster/supervision/command_socket.py",
    "kafka/__init__.py",
    "kafka/codec.py",
    "kafka/requests.py",
    "system/__init__.py",
    "system/pids.py",
    "system/process_state.py",
    "system/whole_file.py",
)
"""Modules of the harness that the relay consists of."""


def broker(checkout: Path = CHECKOUT) -> Image:
    """Return the brokers' image for the present sources; needs no engine.

    Raises:
        ClusterError: one of its files is missing; so does `java`.
    """
    harness = checkout / "harness"
    shared = [harness / name for name in SHARED]
    paths = [*shared, *_sources(harness / "broker")]
    sources = {path.relative_to(checkout).as_posix(): _read(path) for path in paths}
    sources[REQUIREMENTS] = locked(_read(checkout / REQUIREMENTS).decode(), BROKER_PACKAGES).encode()
    return _image(checkout, "broker", sources, {})


def java(checkout: Path = CHECKOUT) -> Image:
    """Return the image of servers on Java, with ZooKeeper's present jars; needs no engine."""
    return _image(checkout, "java", {}, {f"jars/{jar.name}": jar for jar in embedded_zookeeper.jars()})


def relay(checkout: Path = CHECKOUT) -> Image:
    """Return the relay's image for the present sources; needs no engine."""
    paths = [checkout / "harness" / name for name in RELAY]
    return _image(checkout, "relay", {path.relative_to(checkout).as_posix(): _read(path) for path in paths}, {})


def base_name(checkout: Path = CHECKOUT) -> str:
    """Return the name of the base that `base_script` makes."""
    return f"kafka-chaos-base:{_digest(_read(base_script(checkout)))}"


def base_script(checkout: Path = CHECKOUT) -> Path:
    """Return the script that makes a base where none can be pulled."""
    return checkout / "docker" / "base.sh"


def _image(checkout: Path, part: str, sources: Mapping[str, bytes], jars: Mapping[str, Path]) -> Image:
    context = {**sources, "Dockerfile": _read(checkout / "docker" / f"{part}.Dockerfile")}
    sizes = {name: path.stat().st_size for name, path in jars.items()}  # enough: the name has the version
    inputs = [*sorted(context.items()), *sorted(sizes.items()), base_name(checkout)]
    return Image(part=part, sources=context, jars=jars, digest=_digest(repr(inputs).encode()))


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ClusterError(f"{path} is missing: images are built from a checkout of the project") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]
