"""One broker as a process: `python -m harness.broker --config FILE --state-log FILE [--planted-bug NAME]…`.

The shell around `Broker`: files, signals, clocks and randomness of a real machine. SIGTERM or SIGINT asks for a clean
stop, a second one ends the process at once. Exit status: 0 after a clean stop, 1 when it could not start or go on.
"""

import argparse
import asyncio
import gc
import logging
import os
import random
import signal
import sys
import time
import uuid
from functools import partial
from pathlib import Path

from harness.broker.configs.config import BrokerConfig, parse_config
from harness.broker.configs.config_types import ConfigError
from harness.broker.log.file_storage import FileStorage, Synced
from harness.broker.log.storage import StorageError
from harness.broker.log.sync_log import sync_line
from harness.broker.metrics.metrics import Exporter
from harness.broker.rules import rules_with
from harness.broker.server import Broker, Surroundings
from harness.broker.state_log import LineStateLog
from harness.broker.unexpected import report, report_to
from harness.broker.wire.limits import server_limits
from harness.broker.wire.server import SocketServer
from harness.broker.wire.tcp import TcpTransport
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.kazoo_client import KazooZooKeeper
from harness.broker.zookeeper.registration import BrokerIdTaken
from harness.properties_file import ENCODING, properties_in

_log = logging.getLogger("harness.broker.process")

START_ERRORS = (ConfigError, ZooKeeperError, StorageError, BrokerIdTaken, OSError)
"""Errors that keep a broker from starting; each message is complete."""


def main() -> int:
    """Run one broker until a signal stops it, and return the exit status of the process."""
    options = _options()
    _set_up_logging(options.log)
    try:
        config = parse_config(_properties(options.config))
        rules_with(options.planted_bug)
    except (OSError, ValueError) as error:
        _log.error("startup.failed %s", error)
        return 1
    return asyncio.run(_serve(config, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m harness.broker", description="Run one broker.")
    parser.add_argument("--config", type=Path, required=True, help="a Kafka properties file")
    parser.add_argument("--state-log", type=Path, required=True, help="the state-change log, appended to")
    parser.add_argument("--log", type=Path, help="the log for people, instead of standard error")
    parser.add_argument("--sync-log", type=Path, help="where to note what a power loss would leave, appended to")
    parser.add_argument("--planted-bug", action="append", default=[], metavar="NAME", help="break one protocol rule")
    return parser.parse_args()


class _Component(logging.Filter):
    """Adds a line's component: the module within the broker."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.component = record.name.removeprefix("harness.broker.")
        return True


class _OneLine(logging.Formatter):
    """Keeps text from clients, topic names for example, from starting new lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in super().formatMessage(record))


def _set_up_logging(path: Path | None) -> None:
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if path is not None:
        handlers[0].setLevel(logging.ERROR)
        handlers.append(logging.FileHandler(path))
    formatter = _OneLine("%(asctime)s.%(msecs)03d %(levelname)s %(component)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    for handler in handlers:
        handler.addFilter(_Component())
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    logging.getLogger("kazoo").setLevel(logging.ERROR)


def _properties(path: Path) -> dict[str, str]:
    """Return the properties of a file in Java's format."""
    try:
        return properties_in(path.read_text(encoding=ENCODING))
    except ValueError as error:
        raise ConfigError(f"{path}:{error}") from error


async def _serve(config: BrokerConfig, options: argparse.Namespace) -> int:
    try:
        options.state_log.parent.mkdir(parents=True, exist_ok=True)
        state_file = os.open(options.state_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        synced = () if options.sync_log is None else (_noting(options.sync_log),)
        outside = _surroundings(config, state_file, *synced)
        report_to(outside.state_log)
        broker = Broker(config, outside, planted_bugs=options.planted_bug)
    except OSError as error:
        _log.error("startup.failed %s", error)
        return 1
    stopping = _stop_signals()
    starting = asyncio.create_task(broker.start(), name="start")
    stop_signal = asyncio.create_task(stopping.wait(), name="stop-signal")
    try:
        await asyncio.wait({starting, stop_signal}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await broker.abandon()
            return 0
        starting.result()
    except START_ERRORS as error:
        _log.error("startup.failed %s", error)
        await broker.abandon()
        return 1
    except Exception as error:
        report(error, "start")
        raise
    # What is alive now lives until the end: never look through it again, a full collection would stop the broker.
    gc.collect()
    gc.freeze()
    failed = asyncio.create_task(broker.failed.wait(), name="failure")
    await asyncio.wait({stop_signal, failed}, return_when=asyncio.FIRST_COMPLETED)
    await broker.stop()
    return 1 if failed.done() else 0


def _noting(path: Path) -> Synced:
    """Return a listener that writes how much of each file is certainly on the disk, a line each."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    return lambda number, size, more: _write(file, sync_line(number, size, more=more))


def _surroundings(config: BrokerConfig, state_file: int, *synced: Synced) -> Surroundings:
    return Surroundings(
        storages={name: FileStorage(name, *synced) for name in config.log_dirs},
        open_session=partial(
            KazooZooKeeper,
            config["zookeeper.connect"],
            session_timeout_s=config["zookeeper.session.timeout.ms"] / 1000,
            connection_timeout_s=config["zookeeper.connection.timeout.ms"] / 1000,
        ),
        transport=TcpTransport(),
        make_server=lambda dispatcher: SocketServer(dispatcher, server_limits(config)),
        state_log=LineStateLog(
            broker_id=config.broker_id,
            incarnation=uuid.uuid4().hex,
            write_line=lambda line: _write(state_file, line),
            wall_ns=time.time_ns,
            monotonic_ns=time.monotonic_ns,
        ),
        wall_ms=lambda: time.time_ns() // 1_000_000,
        rng=random.Random(),  # noqa: S311 - placement and ids, no secrets
        exporter=_exporter(config),
    )


def _exporter(config: BrokerConfig) -> Exporter | None:
    """Return the metrics server; its library is imported only on request."""
    if config["prometheus.port"] is None:
        return None
    from harness.broker.metrics.prometheus import PrometheusExporter

    return PrometheusExporter(config["prometheus.host"], config["prometheus.port"])


def _write(file: int, line: bytes) -> None:
    """Write one line with one call, so that a kill cannot leave more than the last one torn.

    When that fails the process ends at once: its next actions would be missing from its evidence.
    """
    try:
        written = os.write(file, line)
    except OSError as error:
        _log.critical("state_log.failed this broker ends: %s", error)
        os._exit(1)
    if written != len(line):
        _log.critical("state_log.failed this broker ends: only %d of %d bytes could be written", written, len(line))
        os._exit(1)


def _stop_signals() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets; the second one ends the process."""
    stopping = asyncio.Event()

    def on_signal(number: int) -> None:
        if stopping.is_set():
            _log.error("shutdown.forced signal=%s", signal.Signals(number).name)
            os._exit(1)
        _log.info("shutdown.asked signal=%s", signal.Signals(number).name)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return stopping


if __name__ == "__main__":
    sys.exit(main())
