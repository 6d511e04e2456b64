"""Which releases of Apache Kafka can be started, and what does each need?"""

from dataclasses import dataclass

from harness.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release."""

    version: str
    scala: str
    """Of the artefact that is started."""


RELEASES = {release.version: release for release in (Release(version="3.9.1", scala="2.13"),)}
"""By version, those of which whole runs were judged."""


def release_of(version: str) -> Release:
    """Return a release.

    Raises:
        ScenarioError: it is none that can be started; the message names those that can.
    """
    if version not in RELEASES:
        raise ScenarioError(f"no Apache Kafka {version!r}; known releases: {', '.join(RELEASES)}")
    return RELEASES[version]
