"""The broker as a process: what keeps it from starting is said in one line."""

import logging
import re
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from harness.broker import __main__ as process
from harness.broker.configs.config import parse_config
from harness.broker.configs.config_types import ConfigError
from tests.broker.configs.server_properties import ORDINARY_FILE

pytestmark = [pytest.mark.cluster, pytest.mark.real_time("real processes, that are waited for")]

GOOD = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,REPL://127.0.0.1:0",
    "inter.broker.listener.name": "REPL",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
    "zookeeper.connect": "127.0.0.1:1",
    "zookeeper.connection.timeout.ms": "50",
}


def command(folder: Path, properties: dict[str, str], *options: str) -> list[str]:
    config = folder / "broker.properties"
    lines = [f"{name}={value}" for name, value in (GOOD | {"log.dir": str(folder / "data")} | properties).items()]
    config.write_text("# a comment\n\n" + "\n".join(lines))
    state_log = str(folder / "state-change.jsonl")
    return [sys.executable, "-m", "harness.broker", "--config", str(config), "--state-log", state_log, *options]


@pytest.mark.parametrize(
    ("properties", "served"),
    [
        pytest.param({}, False, id="nothing of Prometheus is even imported unless it is asked for"),
        pytest.param({"prometheus.port": "0"}, True, id="a port that is asked for"),
        pytest.param({"prometheus.port": "0", "prometheus.host": "127.0.0.2"}, True, id="at an address of its own"),
    ],
)
def test_metrics_are_served_on_request(tmp_path: Path, properties: dict[str, str], served: bool) -> None:
    script = (
        "import sys\n"
        "from harness.broker import __main__ as process\n"
        f"exporter = process._exporter(process.parse_config({GOOD | {'log.dir': str(tmp_path)} | properties!r}))\n"
        "print(exporter is not None, 'prometheus_client' in sys.modules, *(exporter._address if exporter else ()))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    address = [properties.get("prometheus.host", "127.0.0.1"), "0"] if served else []
    assert ended.stdout.split() == [str(served), str(served), *address]


@pytest.mark.parametrize(
    ("properties", "options", "message"),
    [
        pytest.param({"nonsense": "1"}, (), "unknown property nonsense", id="an unknown property"),
        pytest.param({}, ("--planted-bug", "none"), "unknown planted bug none; known: ", id="an unknown planted bug"),
        pytest.param({"log.dir": "/dev/null/x"}, (), "/dev/null", id="a data directory that cannot be"),
        pytest.param(
            {"zookeeper.connect": "127.0.0.1:2", "zookeeper.connection.timeout.ms": "70"},
            (),
            "ZooKeeper at 127.0.0.1:2: no session within 0.07 s",
            id="no ZooKeeper",
        ),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(
    tmp_path: Path, properties: dict[str, str], options: tuple[str, ...], message: str
) -> None:
    ended = subprocess.run(command(tmp_path, properties, *options), capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    errors = [line for line in ended.stderr.splitlines() if " ERROR " in line]
    assert [message in line for line in errors] == [True]
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_the_log_may_go_to_a_file_and_errors_to_both(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    ended = subprocess.run(command(tmp_path, {}, "--log", str(log)), capture_output=True, text=True, timeout=120)
    assert "INFO server startup.started broker=1" in log.read_text()
    assert ended.stderr.splitlines() == [line for line in log.read_text().splitlines() if " ERROR " in line]


def test_ignored_properties_are_named_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    properties = {"num.io.threads": "3", "background.threads": "4", "num.partitions": "2"}
    subprocess.run(command(tmp_path, properties, "--log", str(log)), capture_output=True, timeout=120)
    lines = [line.partition("startup.ignored_properties ")[2] for line in log.read_text().splitlines()]
    assert [line for line in lines if line] == ["names=background.threads,num.io.threads"]


def test_nothing_is_said_of_properties_that_all_have_an_effect(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    subprocess.run(command(tmp_path, {}, "--log", str(log)), capture_output=True, timeout=120)
    assert "ignored_properties" not in log.read_text()


def test_it_can_be_stopped_while_it_waits_for_zookeeper(tmp_path: Path) -> None:
    waiting = command(tmp_path, {"zookeeper.connection.timeout.ms": "60000"})
    with subprocess.Popen(waiting, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "startup.started" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
        assert "shutdown.asked signal=SIGTERM" in process.stderr.read()


def test_it_starts_from_the_ordinary_file_of_the_release(tmp_path: Path) -> None:
    config, changed = (
        tmp_path / "server.properties",
        {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://:0"},
    )
    unreachable = {"zookeeper.connect": "127.0.0.1:1"}
    changes = "".join(f"{name} : {text}\n" for name, text in (changed | unreachable).items())
    config.write_text(ORDINARY_FILE.read_text() + changes)
    started = [sys.executable, "-m", "harness.broker", "--config", str(config), "--state-log", str(tmp_path / "log")]
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "startup.started broker=0" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    assert (tmp_path / "data").is_dir()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("num.partitions=\\u00", ":1: \\u is followed by four hexadecimal digits", id="half an escape"),
        pytest.param("num partitions=3", "unknown property num", id="a name with a blank in it"),
    ],
)
def test_a_wrong_line_of_its_file_is_named(tmp_path: Path, line: str, message: str) -> None:
    config = tmp_path / "server.properties"
    config.write_text(line)
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_config(process._properties(config))


def test_zookeeper_is_asked_for_the_session_that_the_properties_want(tmp_path: Path) -> None:
    config = parse_config(GOOD | {"log.dir": str(tmp_path / "d"), "zookeeper.session.timeout.ms": "7000"})
    opened = process._surroundings(config, state_file=0).open_session
    assert isinstance(opened, partial)
    assert (opened.args, opened.keywords) == (
        ("127.0.0.1:1",),
        {"session_timeout_s": 7.0, "connection_timeout_s": 0.05},
    )


def test_what_a_client_sent_cannot_write_a_line_of_its_own() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "name=%s", ("a\nb\x00ü",), None)
    assert process._OneLine("%(levelname)s %(message)s").format(record) == "INFO name=a\\nb\\x00ü"


def test_it_ends_at_once_when_it_cannot_say_what_it_does(tmp_path: Path) -> None:
    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    (tmp_path / "data").mkdir()
    waiting = command(tmp_path, {"zookeeper.connection.timeout.ms": "60000"})
    ended = subprocess.run(waiting, capture_output=True, text=True, timeout=120, preexec_fn=no_room)
    assert ended.returncode == 1
    assert "CRITICAL process state_log.failed this broker ends" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "state-change.jsonl").stat().st_size == 10
