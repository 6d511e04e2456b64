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
    quorum: bool = False
    """Whether it is started without ZooKeeper although it could have one."""

    @property
    def zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper; since 4.0 its controllers have a log of their own (KRaft)."""
        return self.number < (WITHOUT_ZOOKEEPER,) and not self.quorum

    @property
    def tells_answers(self) -> bool:
        """Whether its log is understood as to what it answers producers."""
        return self.number >= SINCE_ANSWERS

    @property
    def advertises_controllers(self) -> bool:
        """Whether controllers may advertise where they are reached (KIP-853)."""
        return self.number >= _CONTROLLERS_ADVERTISED

    @property
    def protocol(self) -> str:
        """What it calls the protocol between brokers that it speaks unless another is set."""
        return ".".join(map(str, self.number[: 2 if self.number[0] else 3]))

    @property
    def later_defaults(self) -> dict[str, str]:
        """Defaults of later releases that it does not have (KIP-106); it is started with them."""
        return {} if self.number >= _ELECTS_CLEANLY else {"unclean.leader.election.enable": "false"}

    @property
    def number(self) -> tuple[int, ...]:
        """The parts of its version, in order."""
        return tuple(map(int, self.version.split(".")))


WITHOUT_ZOOKEEPER = 4
PROTOCOL, FORMAT = "inter.broker.protocol.version", "log.message.format.version"
_ELECTS_CLEANLY = (0, 11)
"""First release that elects no replica from outside the ISR unless it is told to."""
_RESOLVES_ADDRESSES = 11
"""With a later Java 2.0 to 2.3 resolve no address that ZooKeeper gave them."""
SINCE_ANSWERS = (3, 9)
"""Patterns have been tried on what these word."""
SINCE_LOGGER_LEVELS = (2, 4)
"""Brokers say at which levels they log (KIP-412)."""
_CONTROLLERS_ADVERTISED = (3, 9)
_FORMAT_STATED = (2, 4)
"""First release in which the format of records needs no setting."""
_JAXB = ("javax.xml.bind", "jaxb-api", "2.3.1")
"""Until Java 10."""
RELEASES = {
    release.version: release
    for release in (
        Release(version="0.10.2.2", scala="2.12", besides=(_JAXB,)),
        Release(version="0.11.0.0", scala="2.12", besides=(_JAXB,)),
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
        Release(version="3.6.2", scala="2.13", quorum=True),
        Release(version="3.7.1", scala="2.13"),
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


def upgrades_of(release: Release) -> list[str]:
    """Return the later releases that a broker can be upgraded to: those that keep their metadata where it does."""
    others = (each for each in RELEASES.values() if each.zookeeper == release.zookeeper)
    return [other.version for other in others if other.number > release.number]


def upgraded(release: Release, version: str) -> Release:
    """Return the release of a version that a broker can be upgraded to.

    Raises:
        ScenarioError: it cannot; the message says why.
    """
    later = release_of(version)
    if later.number <= release.number:
        raise ScenarioError(f"{version} is no later release than {release.version}, and no broker is downgraded")
    if later.zookeeper != release.zookeeper:
        raise ScenarioError(
            f"{version} has no ZooKeeper, where brokers of {release.version} keep their metadata; releases to upgrade"
            f" to: {', '.join(upgrades_of(release)) or 'none'}"
        )
    return later


def kept_back(cluster: Release) -> dict[str, str]:
    """Return what is set for a later release in a cluster that was started as an earlier one, as Kafka's guide has it.

    While a cluster is upgraded its brokers speak as the earlier release does, and write its format: so each understands
    the others, and can go back. Without ZooKeeper the quorum sees to it, whose `metadata.version` stays.
    """
    if not cluster.zookeeper:
        return {}
    spoken = {PROTOCOL: cluster.protocol}
    return spoken | ({FORMAT: cluster.protocol} if cluster.number < _FORMAT_STATED else {})
