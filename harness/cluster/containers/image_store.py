"""The images of an engine: looked at, pulled, imported, built from a context, removed; only those with our label."""

import contextlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from harness.cluster.containers.engine import Engine
from harness.cluster.containers.images import BASE_LABEL, LABEL
from harness.errors import ClusterError

LOG_TAIL = 15
ASK_TIMEOUT_S = 60
WORKED_ON = re.compile(r" ---> (?:Running in )?([0-9a-f]{12})$")
"""How the engine's builder names the layer or the container of a step."""

BOOKKEEPING = (" --->", "Removing intermediate container")
"""How lines begin that say nothing about why a step failed."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    """One image of ours on the engine."""

    id: str
    name: str
    """Empty for what an ended build left."""
    base: str
    """Empty for a base itself."""
    size_bytes: int
    created_s: int
    """Unix time."""


class ImageStore:
    """The images of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._api = engine.client.api

    def has(self, name: str) -> bool:
        """Return whether there is an image of this name."""
        return self._engine.has_image(name)

    def base_of(self, name: str) -> str | None:
        """Return what an image was built on, or None when there is no such image."""
        return next((image.base for image in self.ours() if image.name == name), None)

    def ours(self) -> list[StoredImage]:
        """Return every image with our label, the newest first."""
        with self._engine.asked("listing images"):
            images = self._api.images(filters={"label": [LABEL]})
        return [_stored(image, name) for image in images for name in image["RepoTags"] or ["<none>:<none>"]]

    def ask_registry(self, name: str) -> None:
        """Return when the engine can reach a registry that has the image; this downloads nothing.

        Raises:
            ClusterError: it cannot.
        """
        with self._engine.asked(f"asking the registry for {name}"):
            self._api.inspect_distribution(name)  # type: ignore[no-untyped-call]

    def pull(self, name: str, say: Say) -> None:
        """Download an image.

        Raises:
            ClusterError: it cannot be had.
        """
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        with self._engine.asked(f"pulling {name}"):
            for event in self._api.pull(repository, tag=tag or "latest", stream=True, decode=True):
                _no_error(event, f"pulling {name}", ())
                say(f"{event.get('status', '')} {event.get('id', '')}".strip())

    def import_tar(self, archive: str, name: str) -> None:
        """Make an image of our label out of a root file system.

        Raises:
            ClusterError: the engine could not store it.
        """
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        with self._replacing(name), self._engine.asked(f"importing {name}"):
            answer = self._api.import_image(archive, repository=repository, tag=tag, changes=[f"LABEL {LABEL}=1"])
            for line in answer.splitlines():
                _no_error(json.loads(line), f"importing {name}", ())

    def build(self, context: IO[bytes], name: str, *, base: str, cached: bool, say: Say) -> None:
        """Build an image from a context, a tar archive; what a build that fails or is interrupted made is removed.

        Raises:
            ClusterError: a step failed; the message ends with the last lines of its output.
        """
        made: set[str] = set()
        tail: deque[str] = deque(maxlen=LOG_TAIL)
        with self._replacing(name), self._engine.asked(f"building {name}"):
            events = self._api.build(
                fileobj=context,
                custom_context=True,
                tag=name,
                rm=True,
                forcerm=True,
                nocache=not cached,
                buildargs={"BASE_IMAGE": base},
                labels={BASE_LABEL: base},
                decode=True,
            )
            try:
                for line in _lines(events, f"building {name}", tail):
                    made.update(WORKED_ON.findall(line))
                    say(line)
            except BaseException:
                events.close()  # the engine ends a build that nobody listens to
                self._remove_remains(made)
                raise

    def run(self, image: str, command: list[str]) -> str:
        """Return what a program in a fresh container prints, without network.

        Raises:
            ClusterError: it cannot be started, or fails.
        """
        with self._engine.asked(f"running {command[0]} in {image}"):
            container = self._engine.client.containers.create(
                image, command[1:], entrypoint=command[:1], labels={LABEL: "1"}, network_mode="none"
            )
            try:
                container.start()
                status = container.wait(timeout=ASK_TIMEOUT_S)["StatusCode"]
                output: str = container.logs().decode(errors="replace").strip()
            finally:
                container.remove(force=True)
        if status:
            raise ClusterError(f"running {command[0]} in {image}: exit status {status}: {output}")
        return output

    def remove(self, image: StoredImage) -> None:
        """Remove an image.

        Raises:
            ClusterError: a container still uses it.
        """
        name = image.name or image.id
        with self._engine.asked(f"removing the image {name}"):
            self._api.remove_image(name)

    @contextlib.contextmanager
    def _replacing(self, name: str) -> Iterator[None]:
        """Remove what had the name before, when something else has it afterwards."""
        before = self._ids(name)
        yield
        self._remove_unused(before - self._ids(name))

    def _remove_remains(self, made: set[str]) -> None:
        """Remove the containers and unnamed layers that one build made and did not finish."""
        from docker.errors import NotFound

        for id_ in made:
            with contextlib.suppress(NotFound):
                self._api.remove_container(id_, force=True)
        unnamed = self._ids(None, label=[LABEL], dangling=True)
        self._remove_unused({id_ for id_ in unnamed if id_.removeprefix("sha256:")[:12] in made})

    def _remove_unused(self, ids: set[str]) -> None:
        from docker.errors import APIError

        for id_ in ids:
            with contextlib.suppress(APIError):  # a container or another image stands on it
                self._api.remove_image(id_)

    def _ids(self, name: str | None, **filters: Any) -> set[str]:
        with self._engine.asked("listing images"):
            return set(self._api.images(name=name, quiet=True, filters=filters))


def _lines(events: Iterator[dict[str, Any]], what: str, tail: deque[str]) -> Iterator[str]:
    """Yield the build's output line by line.

    Raises:
        ClusterError: the engine says that the build failed.
    """
    for event in events:
        _no_error(event, what, tail)
        for line in event.get("stream", "").splitlines():
            if line.strip():
                if not line.startswith(BOOKKEEPING):
                    tail.append(line)
                yield line


def _no_error(event: Mapping[str, Any], what: str, tail: "deque[str] | tuple[str, ...]") -> None:
    if "error" in event:
        output = "".join(f"\n  {line}" for line in tail)
        raise ClusterError(f"{what}: {event['error']}{output}")


def _stored(image: Mapping[str, Any], name: str) -> StoredImage:
    return StoredImage(
        id=image["Id"],
        name="" if name == "<none>:<none>" else name,
        base=image["Labels"].get(BASE_LABEL, ""),
        size_bytes=image["Size"],
        created_s=image["Created"],
    )
