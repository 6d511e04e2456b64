"""Which releases of Apache Kafka can be started, and what does each need?"""

from dataclasses import dataclass

from harness.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release."""

    version: str
    scala: str
    """Of the artefact that is started."""
    besides: tuple[tuple[str, str, str], ...] = ()
    """Artefacts (group, name, version) that it takes from the Java of its time, and ours has no more."""
    last_java: int | None = None
    """The last Java that it runs on, where ZooKeeper's is later than that."""

    @property
    def zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper; since 4.0 its controllers have a log of their own (KRaft)."""
        return self.number < (WITHOUT_ZOOKEEPER,)

    @property
    def tells_answers(self) -> bool:
        """Whether its log is understood as to what it answers producers."""
        return self.number >= SINCE_ANSWERS

    @property
    def number(self) -> tuple[int, ...]:
        """The parts of its version, in order."""
        return tuple(map(int, self.version.split(".")))


WITHOUT_ZOOKEEPER = 4
_RESOLVES_ADDRESSES = 11
"""With a later Java 2.0 to 2.3 resolve no address that ZooKeeper gave them."""
SINCE_ANSWERS = (3, 9)
"""Patterns have been tried on what these word."""
_JAXB = ("javax.xml.bind", "jaxb-api", "2.3.1")
"""Until Java 10."""
RELEASES = {
    release.version: release
    for release in (
        Release(version="0.10.2.2", scala="2.12", besides=(_JAXB,)),
        Release(version="0.11.0.3", scala="2.12", besides=(_JAXB,)),
        Release(version="1.0.2", scala="2.12"),
        Release(version="1.1.1", scala="2.12"),
        Release(version="2.0.1", scala="2.12", last_java=_RESOLVES_ADDRESSES),
        Release(version="2.1.1", scala="2.12", last_java=_RESOLVES_ADDRESSES),
        Release(version="2.2.2", scala="2.12", last_java=_RESOLVES_ADDRESSES),
        Release(version="2.3.1", scala="2.12", last_java=_RESOLVES_ADDRESSES),
        Release(version="2.4.1", scala="2.13"),
        Release(version="2.5.1", scala="2.13"),
        Release(version="2.8.0", scala="2.13"),
        Release(version="2.8.2", scala="2.13"),
        Release(version="3.0.2", scala="2.13"),
        Release(version="3.3.2", scala="2.13"),
        Release(version="3.9.1", scala="2.13"),
        Release(version="4.4.0", scala="2.13"),
    )
}
"""By version. Whole runs of each were judged, but for those with a `last_java`."""


def release_of(version: str) -> Release:
    """Return a release.

    Raises:
        ScenarioError: it is none that can be started; the message names those that can.
    """
    if not version:
        raise ScenarioError(
            f"which release of Apache Kafka? As in kafka:{[*RELEASES][-1]}; known: {', '.join(RELEASES)}"
        )
    if version not in RELEASES:
        raise ScenarioError(f"no Apache Kafka {version!r}; known releases: {', '.join(RELEASES)}")
    return RELEASES[version]
