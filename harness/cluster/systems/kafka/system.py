"""Apache Kafka of one release as the system under test: with ZooKeeper, or with a quorum of its own (KRaft)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

from harness.cluster import broker_properties
from harness.cluster.clocks import read_clocks
from harness.cluster.disks import sync_trace
from harness.cluster.layout import broker_process
from harness.cluster.releases import Writer
from harness.cluster.systems.contained import BROKER_CONFIG, BROKER_DATA, BROKER_LOGS, Contained
from harness.cluster.systems.kafka import jars, javas, kraft, log4j, log_reader, releases
from harness.cluster.systems.kafka.process_state import ProcessState
from harness.cluster.systems.kafka.recovery_points import beyond_recovery_points, never_synced
from harness.cluster.systems.kafka.releases import RELEASES, Release, release_of
from harness.cluster.systems.kafka.state_changes import not_understood, version_in, write_state_changes
from harness.cluster.systems.system import OF_A_JVM, System, system_named
from harness.errors import ClusterError

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.driver import BrokerStatus
    from harness.cluster.layout import ClusterLayout

LOGGING_NAME = "log4j.properties"
JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # a broker lives for minutes: quick compilation beats good code
    "-XX:-UsePerfData",  # else a killed JVM leaves /tmp/hsperfdata_<user>/<pid>
    "-Duser.timezone=UTC",  # of the instants in its log
    "-Djava.net.preferIPv4Stack=true",
)
"""For three brokers on a small machine."""
MAIN = "kafka.Kafka"
JARS = "/opt/kafka/lib"
"""Where a container has those of its release."""
UNPACKED = f"-Djava.io.tmpdir={BROKER_DATA}"
"""Where it unpacks native compression libraries; nothing else reads them. A container's /tmp executes nothing."""
PATIENCE = {"controlled.shutdown.max.retries": "30", "zookeeper.connection.timeout.ms": "60000"}
"""Over the defaults of chaos runs, in whose short steps a broker is as patient as Kafka's are: 15 s. One that is
started with ZooKeeper waits until that is up, and not for the time of a session only."""


@dataclass(frozen=True, slots=True)
class ApacheKafka:
    """Implements System; a broker's state-change log is made of its own log afterwards."""

    release: Release

    start_timeout_s: ClassVar[float] = 240.0
    """A JVM on a machine under heavy load."""
    steady_timeout_s: ClassVar[float] = 120.0
    recovery_timeout_s: ClassVar[float] = 60.0
    load_timeouts_ms: ClassVar[Mapping[str, int]] = OF_A_JVM
    first_deletion_s: ClassVar[float] = 30.0
    """`LogManager`'s `InitialTaskDelayMs`."""
    gone_timeout_s: ClassVar[float] = 30.0
    can_have_planted_bugs: ClassVar[bool] = False
    properties_are_ours: ClassVar[bool] = False
    writes_logs_apart: ClassVar[bool] = False
    syncs_are_traced: ClassVar[bool] = True

    @classmethod
    def releases(cls) -> list[str]:
        """Return all that can be started."""
        return list(RELEASES)

    @classmethod
    def of_release(cls, release: str) -> Self:
        """Return that release; raises ScenarioError if there is none."""
        return cls(release_of(release))

    @property
    def name(self) -> str:
        """`kafka:` and the release."""
        return f"kafka:{self.release.version}"

    @property
    def zookeeper(self) -> bool:
        """Whether the release keeps its metadata there."""
        return self.release.zookeeper

    @property
    def emits(self) -> frozenset[str]:
        """The kinds of lines that its log is turned into."""
        return log_reader.wording(self.release.version).emits

    @property
    def missing_fields(self) -> frozenset[str]:
        """The fields that those lines never have."""
        return log_reader.wording(self.release.version).missing_fields

    @property
    def in_containers(self) -> bool:
        """Whether the image with Java has all that it takes: ZooKeeper beside it, and no older Java."""
        return self.zookeeper and self.release.last_java is None

    def lacks(self) -> str:
        """Return why it cannot be started: no Java, no jars, or jars that were changed."""
        try:
            javas.launcher(self.release)
        except ClusterError as error:
            return str(error)
        if lacking := jars.lacking(self.release):
            return lacking
        changed = jars.changed(self.release)
        return f"jars are not those that were fetched: {', '.join(changed)}" if changed else ""

    def effective(self, brokers: int, requested: Mapping[str, str]) -> dict[str, str]:
        """Return every property of a broker as text, as far as our broker knows it too: the defaults are the same."""
        effective = broker_properties.effective(brokers, self._with_defaults(requested))
        return effective if self.zookeeper else effective | kraft.session_timeout(requested, effective)

    def configure(
        self, layout: "ClusterLayout", broker_id: int, requested: Mapping[str, str], driver: "DriverProperties"
    ) -> Path:
        """Write a broker's properties and its logging configuration; return the path of the former."""
        change = dict if self.zookeeper else self._without_zookeeper(layout, broker_id, driver)
        path = broker_properties.write(layout, broker_id, self._with_defaults(requested), driver, change)
        self._configure_logging(path)
        return path

    def _with_defaults(self, requested: Mapping[str, str]) -> dict[str, str]:
        return {**PATIENCE, **self.release.later_defaults, **requested}

    def _without_zookeeper(
        self, layout: "ClusterLayout", broker_id: int, driver: "DriverProperties"
    ) -> Callable[[dict[str, str]], dict[str, str]]:
        advertises = self.release.advertises_controllers
        return kraft.changed(broker_id, driver, broker=broker_id in layout.brokers, advertises=advertises)

    def upgrades(self) -> list[str]:
        """Return the later releases that keep their metadata where this one does."""
        return releases.upgrades_of(self.release)

    def upgraded(self, release: str) -> Self:
        """Return one of those; raises ScenarioError for any other."""
        return type(self)(releases.upgraded(self.release, release))

    def configure_again(self, layout: "ClusterLayout", broker_id: int) -> None:
        """Have a broker speak as its cluster does, unless the scenario says otherwise, and log as it can itself."""
        cluster = system_named(layout.system)
        assert isinstance(cluster, ApacheKafka)
        path = layout.config_file(broker_id)
        if cluster.release != self.release:
            broker_properties.add(path, releases.kept_back(cluster.release))
        self._configure_logging(path)

    def _configure_logging(self, config: Path) -> None:
        (config.parent / LOGGING_NAME).write_text(log4j.logging(self.release), encoding="utf-8")

    def command(self, layout: "ClusterLayout", broker_id: int) -> list[str]:
        """Return the command that starts a broker."""
        config = layout.config_file(broker_id).resolve()
        java = _java(javas.launcher(self.release), jars.class_path(self.release), config)
        start = [*java, MAIN, str(config)]
        if layout.sync_traces:
            start = sync_trace.traced(start, layout.sync_log(broker_id).resolve())
        return start if self.zookeeper else kraft.formatted_once(java, layout, broker_id, start)

    def contained(self, layout: "ClusterLayout", broker_id: int) -> Contained:
        """Return how a broker of a release with ZooKeeper runs in a container: its log is what it prints there too."""
        logging = layout.config_file(broker_id).resolve().with_name(LOGGING_NAME)
        logging.chmod(0o644)
        config = PurePosixPath(BROKER_CONFIG)
        printing = f"{BROKER_LOGS}/{layout.human_log(broker_id).name}"
        start = [*_java("java", f"{JARS}/*", config, UNPACKED), MAIN, str(config)]
        return Contained(
            image="java",
            command=["sh", "-c", 'exec "$@" >>"$0" 2>&1', printing, *start],
            files={logging: str(config.with_name(LOGGING_NAME)), jars.folder_of(self.release).resolve(): JARS},
        )

    def event_log(self, broker: "BrokerStatus") -> Path:
        """Return what it prints."""
        assert broker.human_log is not None
        return broker.human_log

    def state_changes(self, lines: bytes, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return the state changes of these kinds in lines of a broker's log."""
        text = iter(lines.decode(errors="replace").splitlines())
        reader = log_reader.LogReader(log_reader.wording(self.release.version), ProcessState(begun_before=True))
        events = (event for _, _, event in reader.events(text))
        return [{"ev": event.ev, **asdict(event)} for event in events if event.ev in kinds]

    def dated(self, lines: bytes) -> int | None:
        """Return the instant of the last line that has one, to the millisecond."""
        return next((line.time_ns for line in map(log_reader.line_of, _backwards(lines)) if line), None)

    def release_in(self, lines: bytes) -> str:
        """Return the version that the last process logged which did, as all do in the end of their start."""
        versions = (version for line in map(log_reader.line_of, _backwards(lines)) if (version := version_in(line)))
        return next(versions, "")

    def unsynced(self, folder: Path, sync_log: Path) -> dict[Path, int | None]:
        """Return the segments with what is not before the recovery points that it last wrote down.

        Where a tracer recorded its syncs, also segments and checkpoints that it has never synced.
        """
        beyond = beyond_recovery_points(folder)
        never = never_synced(folder, sync_trace.synced_files(sync_log)) if sync_log.exists() else []
        return beyond | {path: 0 for path in never if beyond.get(path, 0) is not None}

    def gather(self, broker: "BrokerStatus") -> list[str]:
        """Write a broker's state-change log; return how many lines were not understood, if any."""
        broker.state_change_log.parent.mkdir(parents=True, exist_ok=True)
        clocks = read_clocks(broker.clock_log, broker_process(broker.broker_id)) if broker.clock_log else []
        unknown: Counter[str] = Counter()
        with self.event_log(broker).open("rb") as log, broker.state_change_log.open("wb") as out:
            for version, lines in _written(log, broker.writers or (Writer(0, self.name),)):
                wording = log_reader.wording(version, self.release.version)
                unknown += write_state_changes(broker.broker_id, wording, lines, clocks, out)
        return not_understood(unknown)


def _java(java: str, class_path: str, config: PurePath, *besides: str) -> list[str]:
    """Return what any of its programs is started with, the logging configuration beside the properties."""
    logging = f"-Dlog4j.configuration=file:{config.with_name(LOGGING_NAME)}"
    return [java, *JVM_OPTIONS, *besides, logging, "-cp", class_path]


def _backwards(lines: bytes) -> Iterator[str]:
    return reversed(lines.decode(errors="replace").splitlines())


def _written(log: BinaryIO, writers: Sequence[Writer]) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each release that wrote something into a log, by its version, with the lines that it wrote."""
    ends = [*(writer.position for writer in writers[1:]), None]
    for writer, end in zip(writers, ends, strict=True):
        yield writer.system.partition(":")[2], _lines(log, writer.position, end)


def _lines(log: BinaryIO, begin: int, end: int | None) -> Iterator[str]:
    """Yield the lines between two positions of a log."""
    log.seek(begin)
    while line := log.readline(-1 if end is None else end - log.tell()):
        yield line.decode(errors="replace").rstrip("\r\n")


PLUGIN: type[System] = ApacheKafka
