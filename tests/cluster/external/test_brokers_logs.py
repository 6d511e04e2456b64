"""What is made of an existing broker's logs, and which logs are refused, so that no check rests on them."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.cluster.external.brokers_logs import LogOf, described, gather
from harness.cluster.systems.kafka.log4j import LEVELS
from harness.errors import ClusterError

BEGAN_S = 1_800_000_000
PREFIX = "chaos-0123456789-"
OWN = f"{PREFIX}orders"
START = (-900, "kafka.server.SharedServer", "[SharedServer id=1] Starting SharedServer")
OLD_START = (-9000, "kafka.server.SharedServer", "[SharedServer id=1] Starting SharedServer")
ELECTED = (
    -890,
    "org.apache.kafka.controller.QuorumController",
    "[QuorumController id=1] Becoming the active controller at epoch 3, next write offset 7.",
)
OLD_ELECTED = (-8990, *ELECTED[1:])
VERSION = (-880, "org.apache.kafka.common.utils.AppInfoParser", "Kafka version: 4.4.0")
LOGS = "org.apache.kafka.storage.internals.log.UnifiedLog"

Line = tuple[int, str, str]


def leads(topic: str) -> Line:
    return (
        5,
        "state.change.logger",
        f"[Broker id=1] Leader {topic}-0 with topic id Some(A) starts at leader epoch 0"
        " from offset 0 with partition epoch 0, high watermark 0, ISR [1,2,3], adding replicas [] and removing"
        " replicas [] .",
    )


def appends(topic: str) -> Line:
    return (
        6,
        LOGS,
        f"[UnifiedLog partition={topic}-0, dir=/data] Appended message set with last offset: 4, first"
        " offset: 0, next offset: 5, and messages: MemoryRecords",
    )


def log(*lines: Line, usual: bool = False) -> str:
    """Return lines in the layout that the documentation has, or in that of Kafka's own configuration."""
    texts = []
    for at_s, logger, text in lines:
        instant = datetime.fromtimestamp(BEGAN_S + at_s, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
        texts.append(f"[{instant}] INFO {text} ({logger})\n" if usual else f"{instant} INFO {logger}: {text}\n")
    return "".join(texts)


def of(release: str = "4.4.0", levels: dict[str, str] | None = None) -> LogOf:
    return LogOf(
        broker_id=1,
        release=release,
        levels={"root": "INFO"} | LEVELS if levels is None else levels,
        prefix=PREFIX,
        began_ns=BEGAN_S * 10**9,
        now_ns=(BEGAN_S + 60) * 10**9,
    )


def events(folder: Path) -> list[str]:
    out = folder.with_name("state-change.log")
    assert gather(folder, of(), out) == []
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return [f"{line['ev']} {line.get('topic', '')}".strip() for line in lines]


WHOLE = ["broker_start", "controller_elected", f"become_leader {OWN}", f"append {OWN}"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"server.log": log(START, ELECTED, leads(OWN), appends(OWN))}, WHOLE, id="the run's own topics"),
        pytest.param({"server.log": log(START, ELECTED, leads(OWN), appends(OWN), usual=True)}, WHOLE,
                     id="the layout of Kafka's own configuration"),
        pytest.param({"server.log": log(START, ELECTED, leads("secret"), appends("secret"), leads(OWN), appends(OWN))},
                     WHOLE, id="others' topics are no evidence"),
        pytest.param({"server.log": log(leads(OWN), appends(OWN)), "server.log.1": log(START, ELECTED)}, WHOLE,
                     id="a file that was rotated comes first"),
        pytest.param({"server.log": log(OLD_START, OLD_ELECTED, START, ELECTED, leads(OWN), appends(OWN))}, WHOLE,
                     id="a process that ended before the run is no evidence"),
        pytest.param({"server.log": log(ELECTED, leads(OWN), appends(OWN)), "gc.log": "[1.2s][info] Pause\n",
                      "x.bin": "\xff\x00"}, WHOLE[1:], id="its start was rotated away, and other files are beside"),
    ],
)  # fmt: skip
def test_events_are_those_of_the_run(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="latin-1")
    assert events(folder) == expected


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "server.1.log.gz").write_bytes(gzip.compress(log(START, ELECTED).encode()))
    (folder / "server.log").write_text(log(leads(OWN), appends(OWN)), encoding="utf-8")
    assert events(folder) == WHOLE


QUIET = {"root": "INFO"} | LEVELS | {LOGS: "INFO"}


@pytest.mark.parametrize(
    ("files", "whose", "message"),
    [
        pytest.param({}, of(), "has no line that is known", id="nothing was copied"),
        pytest.param({"server.log": "12:00 started\n"}, of(), "has no line that is known", id="another layout"),
        pytest.param({"a.log": log(START, leads(OWN)), "b.log": log(ELECTED, appends(OWN))}, of(),
                     "is in a.log and b.log at the same time", id="two files at the same time"),
        pytest.param({"server.log": log(START, VERSION, leads(OWN))}, of("3.9.1"), "is of 4.4.0, and the cluster file"
                     " names the release 3.9.1", id="another release"),
        pytest.param({"server.log": log(START, (7200, *leads(OWN)[1:]))}, of(), "ends 7,140 s after now",
                     id="a time zone to the east"),
        pytest.param({"server.log": log(START, (-7200, *leads(OWN)[1:]))}, of(), "ends 960 s before now",
                     id="a time zone to the west"),
        pytest.param({"server.log": log(leads(OWN), appends(OWN))}, of(), "begins after the run", id="rotated away"),
        pytest.param({"server.log": log(START, leads(OWN))}, of(levels=QUIET), f"is too quiet: {LOGS} logs INFO, not"
                     " TRACE", id="a logger that says too little"),
        pytest.param({"server.log": log(START, leads(OWN))}, of(levels={"root": "WARN"} | LEVELS),
                     "kafka.server.BrokerServer logs WARN, not INFO", id="a root logger that says too little"),
        pytest.param({"server.log.gz": "no archive"}, of(), "server.log.gz cannot be read", id="a damaged archive"),
    ],
)  # fmt: skip
def test_logs_that_do_not_show_all_are_refused(
    tmp_path: Path, files: dict[str, str], whose: LogOf, message: str
) -> None:
    folder, out = tmp_path / "logs", tmp_path / "state-change.log"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for reading in (lambda: gather(folder, whose, out), lambda: described(folder, whose)):
        with pytest.raises(ClusterError) as caught:
            reading()
        assert message in str(caught.value)
    assert not out.exists(), "a state-change log that is empty would look like an idle broker"


def test_lines_that_should_be_understood_and_are_not_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    another = (
        6,
        "kafka.request.logger",
        'Completed request:{"requestHeader":{"requestApiKeyName":"INIT_PRODUCER_ID"}}',
    )
    odd = (7, LOGS, f"[UnifiedLog partition={OWN}-0, dir=/data] Appended message set with something new")
    (folder / "server.log").write_text(log(START, leads(OWN), another, odd), encoding="utf-8")
    assert gather(folder, of(), tmp_path / "out") == [f"the log of broker 1: 1 lines of {LOGS} could not be understood"]
