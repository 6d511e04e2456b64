"""Apache Kafka of one release as the system under test: with ZooKeeper, or since 4.0 with a quorum of its own."""

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

from harness.broker.state_log import LineStateLog
from harness.cluster import broker_properties
from harness.cluster.clocks import Clock, Rectified, read_clocks
from harness.cluster.layout import broker_process
from harness.cluster.systems.contained import BROKER_CONFIG, BROKER_DATA, BROKER_LOGS, Contained
from harness.cluster.systems.kafka import jars, javas, kraft, log4j, log_reader
from harness.cluster.systems.kafka.process_state import ProcessState
from harness.cluster.systems.kafka.recovery_points import beyond_recovery_points
from harness.cluster.systems.kafka.releases import RELEASES, Release, release_of
from harness.cluster.systems.system import OF_A_JVM
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
"""Where it unpacks native compression, as files that nobody looks at: a container's /tmp executes nothing."""
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
    def tells(self) -> frozenset[str]:
        """The kinds of lines that its log is turned into."""
        return log_reader.wording(self.release.version).tells

    @property
    def omits(self) -> frozenset[str]:
        """The fields that those lines never have."""
        return log_reader.wording(self.release.version).omits

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
        effective = broker_properties.effective(brokers, {**PATIENCE, **requested})
        return effective if self.zookeeper else effective | kraft.session_timeout(requested, effective)

    def configure(
        self, layout: "ClusterLayout", broker_id: int, requested: Mapping[str, str], driver: "DriverProperties"
    ) -> Path:
        """Write a broker's properties and its logging configuration; return the path of the former."""
        change = dict if self.zookeeper else kraft.changed(broker_id, driver, broker=broker_id in layout.brokers)
        path = broker_properties.write(layout, broker_id, {**PATIENCE, **requested}, driver, change)
        (path.parent / LOGGING_NAME).write_text(log4j.logging(self.release), encoding="utf-8")
        return path

    def command(self, layout: "ClusterLayout", broker_id: int) -> list[str]:
        """Return the command that starts a broker."""
        config = layout.config_file(broker_id).resolve()
        java = _java(javas.launcher(self.release), jars.class_path(self.release), config)
        start = [*java, MAIN, str(config)]
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
        """Return what lines of a broker's log tell of these kinds of state changes."""
        text = iter(lines.decode(errors="replace").splitlines())
        reader = log_reader.LogReader(log_reader.wording(self.release.version), ProcessState(begun_before=True))
        events = (event for _, _, event in reader.events(text))
        return [{"ev": event.ev, **asdict(event)} for event in events if event.ev in kinds]

    def dated(self, lines: bytes) -> int | None:
        """Return the instant of the last line that has one, to the millisecond."""
        return next((line.time_ns for line in map(log_reader.line_of, _backwards(lines)) if line), None)

    def unsynced(self, folder: Path, sync_log: Path) -> dict[Path, int | None]:
        """Return the segments with what is not before the recovery points that it last wrote down."""
        return beyond_recovery_points(folder)

    def gather(self, broker: "BrokerStatus") -> list[str]:
        """Write a broker's state-change log; return how many lines were not understood, if any."""
        broker.state_change_log.parent.mkdir(parents=True, exist_ok=True)
        with (
            self.event_log(broker).open(encoding="utf-8", errors="replace") as lines,
            broker.state_change_log.open("wb") as out,
        ):
            clocks = read_clocks(broker.clock_log, broker_process(broker.broker_id)) if broker.clock_log else []
            stripped = (line.rstrip("\n") for line in lines)
            unknown = _write(broker.broker_id, self.release.version, stripped, clocks, out)
        return [f"{count} lines of {logger} could not be understood" for logger, count in sorted(unknown.items())]


def _java(java: str, class_path: str, config: PurePath, *besides: str) -> list[str]:
    """Return what any of its programs is started with, the logging configuration beside the properties."""
    logging = f"-Dlog4j.configuration=file:{config.with_name(LOGGING_NAME)}"
    return [java, *JVM_OPTIONS, *besides, logging, "-cp", class_path]


def _backwards(lines: bytes) -> Iterator[str]:
    return reversed(lines.decode(errors="replace").splitlines())


def _write(
    broker_id: int, version: str, lines: Iterator[str], clocks: Sequence[Clock], out: BinaryIO
) -> Mapping[str, int]:
    """Write the state changes that a log tells of, those of each process by themselves; return what was not known.

    A log has the broker's wall clock; its instants are put on the monotonic clock by how far apart the machine's two
    are now, and by what was done to the broker's.
    """
    rectified = Rectified(clocks, time.time_ns() - time.monotonic_ns())

    def write(line: bytes) -> None:
        out.write(line)

    def wall_ns() -> int:
        return now_ns

    def monotonic_ns() -> int:
        return instant_ns

    log: LineStateLog | None = None
    of: ProcessState | None = None
    now_ns = instant_ns = 0
    reader = log_reader.LogReader(log_reader.wording(version))
    for process, line, event in reader.events(lines):
        now_ns, instant_ns = line.time_ns, rectified.instant_ns(line.time_ns)
        if log is None or process is not of:
            of = process
            log = LineStateLog(broker_id, secrets.token_hex(8), write, wall_ns, monotonic_ns)
        log.session_changed(process.session)
        log.registered(process.broker_epoch)
        log.emit(event)
    return reader.unknown
