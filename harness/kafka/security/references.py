"""Where do client settings get their secrets from? Each names a file or an environment variable, read when it is used.

The syntax is that of Kafka's configuration providers (KIP-297, KIP-887): `${env:NAME}`, `${file:PATH:KEY}` for a key of
a properties file, and `${file:PATH}` for a whole file. What is stored and handed on are the settings with references;
only the process that connects reads what they refer to.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from harness.errors import ClusterError
from harness.properties_file import ENCODING, properties_in

FILE = "file"
"""The one setting that is not Kafka's: a properties file, such as `client.properties`, whose settings come first."""
PATHS = (FILE, "location")
"""How the names of settings end whose values are paths."""
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
_SECRET = re.compile(r"(password|secret|\.key|^sasl\.jaas\.config)$")
_JAAS_SECRET = re.compile(r'(\w*(?:password|secret))\s*=\s*"?([^"\s;]*)', re.IGNORECASE)


def secret_in(settings: Mapping[str, str]) -> str:
    """Return which setting holds a secret itself, instead of a reference to it; empty if none does."""
    for name, value in settings.items():
        if not _SECRET.search(name):
            continue
        secrets = [each for _, each in _JAAS_SECRET.findall(value)] if name.endswith("jaas.config") else [value]
        if not all(_REFERENCE.fullmatch(secret) for secret in secrets):
            return name
    return ""


def relative_in(settings: Mapping[str, str]) -> str:
    """Return which setting is a relative path, or refers to one; empty if none does."""
    elsewhere = absolute(settings, Path("/"))
    return next((name for name, value in settings.items() if elsewhere[name] != value), "")


def absolute(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return settings whose relative paths, also those in references, begin in a folder."""

    def referred(match: re.Match[str]) -> str:
        kind, where = match.groups()
        return match[0] if kind == "env" else f"${{file:{folder / where}}}"

    return {
        name: str(folder / value)
        if name.endswith(PATHS) and not _REFERENCE.search(value)
        else _REFERENCE.sub(referred, value)
        for name, value in settings.items()
    }


def whole(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with those of the properties file that they name; raises ClusterError if it cannot be read."""
    stated = {name: value for name, value in settings.items() if name != FILE}
    if FILE in settings:
        path = Path(settings[FILE])
        stated = absolute(_properties(path), path.parent) | stated
    return stated


def resolved(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with what they refer to in its place.

    Raises:
        ClusterError: a file cannot be read, or a variable is not set; the message has no value of any setting.
    """
    return {name: _REFERENCE.sub(lambda match: _referred(*match.groups()), value) for name, value in settings.items()}


def _referred(kind: str, where: str) -> str:
    if kind == "env":
        try:
            return os.environ[where]
        except KeyError:
            raise ClusterError(
                f"the environment variable {where}, which the client settings name, is not set"
            ) from None
    if Path(where).is_file():
        return _text(Path(where)).strip()
    path, _, key = where.rpartition(":")
    properties = _properties(Path(path or where))
    if key not in properties:
        raise ClusterError(f"the client settings name the key {key} of {path}, which has none of that name")
    return properties[key]


def _properties(path: Path) -> dict[str, str]:
    try:
        return properties_in(_text(path))
    except ValueError as error:
        raise ClusterError(f"{path}: line {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding=ENCODING)
    except OSError as error:
        raise ClusterError(f"{path}, which the client settings name, cannot be read: {error.strerror}") from None
