"""Lists, pulls, imports, builds, runs and removes an engine's images; only images with our label are removed."""

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
RUN_TIMEOUT_S = 60
STEP_ID = re.compile(r" ---> (?:Running in )?([0-9a-f]{12})$")
"""A line of the builder's output with the id of the layer or the container of a step."""
BOOKKEEPING = (" --->", "Removing intermediate container")
"""Prefixes of output lines that do not help to see why a step failed."""

LogLine = Callable[[str], None]
"""Takes one line of output for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    """One image of ours on the engine."""

    id: str
    name: str
    """Empty for what an interrupted build left."""
    base: str
    """Name of the image that it was built on; empty for a base itself."""
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
        """Return the base of an image, or None when there is no such image."""
        return next((image.base for image in self.ours() if image.name == name), None)

    def ours(self) -> list[StoredImage]:
        """Return every image with our label, the newest first."""
        with self._engine.request("listing images"):
            images = self._api.images(filters={"label": [LABEL]})
        return [_stored(image, name) for image in images for name in image["RepoTags"] or ["<none>:<none>"]]

    def check_registry(self, name: str) -> None:
        """Check, without a download, that the engine can reach a registry with the image.

        Raises:
            ClusterError: it cannot.
        """
        with self._engine.request(f"asking the registry for {name}"):
            self._api.inspect_distribution(name)  # type: ignore[no-untyped-call]

    def pull(self, name: str, log: LogLine) -> None:
        """Download an image.

        Raises:
            ClusterError: it cannot be pulled.
        """
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        with self._engine.request(f"pulling {name}"):
            for event in self._api.pull(repository, tag=tag or "latest", stream=True, decode=True):
                _raise_on_error(event, f"pulling {name}", ())
                log(f"{event.get('status', '')} {event.get('id', '')}".strip())

    def import_tar(self, archive: str, name: str) -> None:
        """Create an image with our label from a tar archive of a root file system.

        Raises:
            ClusterError: the engine could not store it.
        """
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        with self._replacing(name), self._engine.request(f"importing {name}"):
            answer = self._api.import_image(archive, repository=repository, tag=tag, changes=[f"LABEL {LABEL}=1"])
            for line in answer.splitlines():
                _raise_on_error(json.loads(line), f"importing {name}", ())

    def build(self, context: IO[bytes], name: str, *, base: str, cached: bool, log: LogLine) -> None:
        """Build an image from a context, a tar archive; a failed or interrupted build leaves no layers or containers.

        Raises:
            ClusterError: a step failed; the message ends with the last lines of its output.
        """
        step_ids: set[str] = set()
        tail: deque[str] = deque(maxlen=LOG_TAIL)
        with self._replacing(name), self._engine.request(f"building {name}"):
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
                    step_ids.update(STEP_ID.findall(line))
                    log(line)
            except BaseException:
                events.close()  # the engine ends a build whose client is gone
                self._remove_unfinished(step_ids)
                raise

    def run(self, image: str, command: list[str]) -> str:
        """Return the output of a program in a new container without network.

        Raises:
            ClusterError: it cannot be started, or fails.
        """
        with self._engine.request(f"running {command[0]} in {image}"):
            container = self._engine.client.containers.create(
                image, command[1:], entrypoint=command[:1], labels={LABEL: "1"}, network_mode="none"
            )
            try:
                container.start()
                status = container.wait(timeout=RUN_TIMEOUT_S)["StatusCode"]
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
        with self._engine.request(f"removing the image {name}"):
            self._api.remove_image(name)

    @contextlib.contextmanager
    def _replacing(self, name: str) -> Iterator[None]:
        """Remove the image that had the name before, when another one has it afterwards."""
        before = self._ids(name)
        yield
        self._remove_unused(before - self._ids(name))

    def _remove_unfinished(self, step_ids: set[str]) -> None:
        """Remove the containers and unnamed layers of a build that did not finish."""
        from docker.errors import NotFound

        for id_ in step_ids:
            with contextlib.suppress(NotFound):
                self._api.remove_container(id_, force=True)
        unnamed = self._ids(None, label=[LABEL], dangling=True)
        self._remove_unused({id_ for id_ in unnamed if id_.removeprefix("sha256:")[:12] in step_ids})

    def _remove_unused(self, ids: set[str]) -> None:
        from docker.errors import APIError

        for id_ in ids:
            with contextlib.suppress(APIError):  # a container or another image uses it
                self._api.remove_image(id_)

    def _ids(self, name: str | None, **filters: Any) -> set[str]:
        with self._engine.request("listing images"):
            return set(self._api.images(name=name, quiet=True, filters=filters))


def _lines(events: Iterator[dict[str, Any]], what: str, tail: deque[str]) -> Iterator[str]:
    """Yield the build's output line by line.

    Raises:
        ClusterError: the engine says that the build failed.
    """
    for event in events:
        _raise_on_error(event, what, tail)
        for line in event.get("stream", "").splitlines():
            if line.strip():
                if not line.startswith(BOOKKEEPING):
                    tail.append(line)
                yield line


def _raise_on_error(event: Mapping[str, Any], what: str, tail: "deque[str] | tuple[str, ...]") -> None:
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
