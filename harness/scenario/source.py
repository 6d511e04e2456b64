"""Where does each value of a scenario come from? YAML with the line of each value, or the option that overrides it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness.errors import ScenarioError
from harness.store.result import reason_of

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the top of the file to one value."""

MAX_BYTES = 256 * 1024
MAX_VALUES = 10_000
INDEX_DIGITS = 6
CLUSTER = "cluster"
"""The key whose value may be the path of a cluster file."""
SHOWN_CHARS = 40

_CORE = "tag:yaml.org,2002:"
_CONVERTED = frozenset({f"{_CORE}bool", f"{_CORE}int", f"{_CORE}float", f"{_CORE}null"})
_TEXT = frozenset({f"{_CORE}str", f"{_CORE}timestamp", f"{_CORE}merge", f"{_CORE}value"})


def text_of(path: Path, name: str) -> str:
    """Return the text of a file that the user names, up to the limit of all such files.

    Raises:
        ScenarioError: it is no file, or not text.
    """
    try:
        if not path.is_file():
            raise ScenarioError(f"{name}: {'not a file' if path.exists() else 'no such file'}")
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{name}: cannot be read: {reason_of(error)}") from error


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and the value that it concerns."""

    path: KeyPath
    message: str
    origin: str = ""
    """`file:line` or option; empty for that of the value at `path`."""


@dataclass(slots=True)
class Source:
    """The values of a file, overrides included, with the origin of each."""

    name: str
    """File name as the user gave it."""
    data: Any = None
    origins: dict[KeyPath, str] = field(default_factory=dict)
    """`file:line` or option, by the path of the value."""
    problems: list[Problem] = field(default_factory=list)

    def describe(self, problem: Problem) -> str:
        """Return the problem as one line: origin, key, message."""
        origin = self.origin_of(problem)
        key = ".".join(map(str, problem.path))
        return f"{origin}: {key}: {problem.message}" if key else f"{origin}: {problem.message}"

    def origin_of(self, problem: Problem) -> str:
        """Return the `file:line` or option of a problem's value, or of the nearest one around it."""
        path = problem.path
        while path not in self.origins and path:
            path = path[:-1]
        return problem.origin or self.origins.get(path, f"{self.name}:1")

    def override(self, override: "Override") -> None:
        """Set one value; an error in it is added to `problems`."""
        value = parse_yaml(override.text, override.option)
        path = _key_path(override.key)
        message = value.problems[0].message if value.problems else ""
        data = value.data
        if override.appends and not message:
            before = self.data.get(override.key)
            before = before if isinstance(before, list) else []
            data = before if data in before else [*before, data]
        if not override.key:
            message = "must be key.path=value"
        message = message or _put(self.data, path, data)
        if message:
            self.problems.append(Problem(path, message, origin=override.option))
            return
        for old in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[old]
        self.origins[path] = override.option


@dataclass(frozen=True, slots=True)
class Override:
    """One value of a scenario as an option of the command line gives it."""

    option: str
    """The option as the user wrote it, for messages."""
    key: str
    """Keys and list indexes from the top, joined by dots; what follows `properties`, `config` or `parameters` is one
    key, dots included."""
    text: str
    """The value, as YAML."""
    appends: bool = False
    """Whether the value is added to the list under `key` instead of replacing it."""


def set_option(text: str) -> Override:
    """Return the override of `--set key.path=value`."""
    key, separator, value = text.partition("=")
    return Override(f"--set {text}", key.strip() if separator else "", value)


def options(
    driver: str | None,
    planted_bugs: Sequence[str],
    sets: Sequence[str],
    system: str | None = None,
    cluster: str | None = None,
) -> list[Override]:
    """Return the overrides of the options of these names, in the order in which they apply: the cluster's first."""
    overrides = [] if cluster is None else [Override(f"--cluster {cluster}", CLUSTER, json.dumps(cluster))]
    overrides += [set_option(text) for text in sets]
    named = {"driver": driver, "system": system}
    overrides += [Override(f"--{key} {name}", key, name) for key, name in named.items() if name is not None]
    return overrides + [Override(f"--planted-bug {bug}", "planted_bugs", bug, appends=True) for bug in planted_bugs]


_FREE_KEYS = frozenset({"properties", "config", "parameters"})


def _key_path(keys: str) -> KeyPath:
    path: list[str | int] = []
    parts = keys.split(".")
    for position, part in enumerate(parts):
        path.append(int(part) if part.isdecimal() and len(part) <= INDEX_DIGITS else part)
        if part in _FREE_KEYS and position + 1 < len(parts):
            path.append(".".join(parts[position + 1 :]))
            break
    return tuple(path)


def _put(data: Any, path: KeyPath, value: Any) -> str:
    """Set one value, adding mappings on the way; return the error, or an empty string."""
    for depth, key in enumerate(path):
        last = depth + 1 == len(path)
        if isinstance(data, list):
            if not isinstance(key, int) or not 0 <= key < len(data):
                return f"{'.'.join(map(str, path[:depth]))} is a list of {len(data)}; allowed: 0 to {len(data) - 1}"
        elif isinstance(data, dict):
            key = str(key)
            if not last and data.get(key) is None:
                data[key] = {}
        else:
            return f"{'.'.join(map(str, path[:depth])) or 'the file'} holds a single value, nothing can be set in it"
        if last:
            data[key] = value
        else:
            data = data[key]
    return ""


def parse_yaml(text: str, name: str) -> Source:
    """Return the values of a YAML text with the line of each; syntax errors and duplicate keys are in `problems`."""
    source = Source(name)
    if message := _unreadable(text):
        source.problems.append(Problem((), message))
        return source
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        if node is not None:
            source.data = _Reader(yaml, source).value(node, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        source.origins[()] = f"{name}:{mark.line + 1}" if mark else name
        source.problems.append(Problem((), f"not YAML: {error.problem or error.context}"))
    except (YAMLError, RecursionError) as error:
        source.problems.append(Problem((), f"not YAML that can be read: {error or type(error).__name__}"))
    return source


def _unreadable(text: str) -> str:
    """Return why a text cannot be parsed at all, or an empty string."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return f"not text: half of a character in {text[error.start : error.start + SHOWN_CHARS]!a}"
    return f"larger than {MAX_BYTES} bytes" if size > MAX_BYTES else ""


@dataclass(slots=True)
class _Reader:
    """Walks the nodes of one document."""

    yaml: YAML
    source: Source
    values: int = 0

    def value(self, node: Node, path: KeyPath) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise YAMLError(f"more than {MAX_VALUES} values")
        self.source.origins.setdefault(path, self._origin(node))
        match node:
            case MappingNode():
                return self._mapping(node, path)
            case SequenceNode():
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.source.problems.append(Problem(path, "a key must be a plain word"))
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in mapping:
                message = f"key given twice, first at {self.source.origins[here]}"
                self.source.problems.append(Problem(here, message, origin=self._origin(key_node)))
                continue
            self.source.origins[here] = self._origin(key_node)
            mapping[key] = self.value(value_node, here)
        return mapping

    def _scalar(self, node: Node, path: KeyPath) -> Any:
        tag = str(node.tag)
        if tag not in _CONVERTED and tag not in _TEXT:
            self.source.problems.append(Problem(path, f"tag {tag} is not allowed; write plain values"))
        if tag not in _CONVERTED:
            return self._text(str(node.value), path)
        try:
            return self.yaml.constructor.construct_object(node)
        except (ValueError, KeyError):  # a tag that does not fit its value, or more digits than Python takes
            kind = tag.removeprefix(_CORE)
            self.source.problems.append(Problem(path, f"cannot be read as {kind}: {str(node.value)[:SHOWN_CHARS]!a}"))
            return None

    def _text(self, value: str, path: KeyPath) -> str:
        """Return a text with surrogate pairs joined, which YAML, as JSON, may escape; half a pair is a problem."""
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.source.problems.append(Problem(path, f"not text: half of a character in {value[:SHOWN_CHARS]!a}"))
            return ""

    def _origin(self, node: Node) -> str:
        return f"{self.source.name}:{node.start_mark.line + 1}"
