"""Logs in memory, compared with the logs that a restart would load from the disks."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from harness.broker.log.batch import iter_batches, parse_header
from harness.broker.log.log import Log
from harness.broker.log.manager import LogManager
from harness.broker.log.recovery import LoadedLog
from harness.broker.log.storage import StorageError
from harness.broker.replicas.housekeeping import producers_expired_ms
from harness.broker.server import Broker
from harness.simulation.disk import MemoryStorage
from harness.values import TopicPartition

_ALL = 1 << 30
_LOOKUPS = 8


def of_logs(broker: Broker, disks: Mapping[str, MemoryStorage]) -> Iterator[str]:
    """Yield what differs after a restart on copies of the disks: as they are, and as a loss of power leaves them."""
    replicas = broker.replicas.replicas
    for name, disk in disks.items():
        if disk.failing is not None or replicas.logs.has_failed(name):
            continue
        here = replicas.logs.keys_in(name)
        logs = {each.key: each.log for each in replicas.all() if each.key in here}
        for power_lost in (False, True):
            copy = disk.copy()
            if power_lost:
                copy.lose_power()
            try:
                yield from _after_start(broker, logs, copy, power_lost=power_lost)
            finally:
                copy.clear()


def _after_start(
    broker: Broker, logs: Mapping[TopicPartition, Log], disk: MemoryStorage, *, power_lost: bool
) -> Iterator[str]:
    expired_ms = partial(producers_expired_ms, broker.config, broker.replicas.wall_ms)
    manager = LogManager(disk, rules=broker.replicas.rules, expired_ms=expired_ms)
    try:
        recoveries = {(each.topic, each.partition): each for each in manager.load()}
    except StorageError as error:
        yield f"its logs cannot be opened: {error}"
        return
    for key, log in logs.items():
        loaded, when = manager.get(*key), "a loss of power" if power_lost else "a restart"
        if loaded is None:
            differences = [] if power_lost else ["is not there"]
        elif power_lost:
            differences = list(_after_power_loss(log, loaded, recoveries[key]))
        else:
            differences = list(_of_log(log, loaded))
        for what in differences:
            yield f"log {key[0]}-{key[1]} after {when}: {what}"
    manager.close()


def _of_log(log: Log, loaded: Log) -> Iterator[str]:
    cleaned, end = log.cleaned_to is not None, log.log_end_offset
    if loaded.log_end_offset > end or (loaded.log_end_offset < end and not cleaned):
        yield "end"
        return
    if loaded.log_start_offset > log.log_start_offset:
        yield "start"
        return
    if [each.base_offset for each in loaded.segments] != [each.base_offset for each in log.segments]:
        yield "segments"
    if _epochs(loaded, log) != _epochs(log, log):
        yield "leader epochs"
    if (loaded.cleaned_to is None) != (log.cleaned_to is None):
        yield "mark for missing offsets"
    if cleaned:
        return  # a cleaner removes what indexes and producers are read from
    loaded.advance_log_start(log.log_start_offset)  # its checkpoint is written from time to time
    if _found(loaded, log) != _found(log, log):
        yield "lookups"
    if dict(loaded.producers.open_transactions) != dict(log.producers.open_transactions):
        yield "open transactions"
    span = log.log_start_offset, log.log_end_offset
    if loaded.aborted_transactions(*span) != log.aborted_transactions(*span):
        yield "aborted transactions"
    known, read = _sequences(log), _sequences(loaded)
    if differing := sorted(key for key in known.keys() & read.keys() if known[key] != read[key]):
        yield f"producers {differing}"


def _found(log: Log, of: Log) -> list[Any]:
    """Return the batches and records that lookups by some offsets and timestamps find."""
    start, end = of.log_start_offset, of.log_end_offset
    found: list[Any] = [log.youngest_record()]
    for offset in range(start, end, max(1, (end - start) // _LOOKUPS)):
        if data := log.read(offset, max_bytes=1, up_to=end, at_least_one=True):
            header = parse_header(data)
            found += [(header.base_offset, header.last_offset), log.offset_for_timestamp(header.max_timestamp)]
    return found


def _epochs(log: Log, of: Log) -> list[tuple[int, int]]:
    """Return the leader epochs of the records of a log, with their first offsets."""
    start, end = of.log_start_offset, of.log_end_offset
    return [(each.epoch, each.start_offset) for each in log.epochs.entries if start < each.start_offset < end]


def _sequences(log: Log) -> dict[int, tuple[int, int | None]]:
    """Return epoch and last sequence of each producer."""
    return {
        key: (each.epoch, each.batches[-1].last_sequence if each.batches else None)
        for key, each in log.producers.items()
    }


def _after_power_loss(log: Log, loaded: Log, recovery: LoadedLog) -> Iterator[str]:
    """Yield what is wrong in the log that is left: it must have what was synced, and no other records."""
    if loaded.log_end_offset < min(recovery.recovery_point, log.log_end_offset):
        yield "end before the recovery point"
    if log.cleaned_to is not None or loaded.cleaned_to is not None:
        return
    start = max(log.log_start_offset, loaded.log_start_offset)
    end = min(log.log_end_offset, loaded.log_end_offset)
    if start < end and _batches(loaded, start, end) != _batches(log, start, end):
        yield "records"


def _batches(log: Log, start: int, end: int) -> list[bytes]:
    return [bytes(batch) for _, batch in iter_batches(log.read(start, max_bytes=_ALL, up_to=end, at_least_one=False))]
