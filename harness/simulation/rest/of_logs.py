"""What brokers know of their logs, beside what a start would read from their disks."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from harness.broker.log.batch import iter_batches, parse_header
from harness.broker.log.log import Log
from harness.broker.log.manager import LogManager
from harness.broker.log.recovery import LoadedLog
from harness.broker.replicas.housekeeping import producers_expired_ms
from harness.broker.server import Broker
from harness.simulation.disk import MemoryStorage
from harness.values import TopicPartition

_ALL = 1 << 30
_LOOKUPS = 8


def of_logs(broker: Broker, disks: Mapping[str, MemoryStorage]) -> Iterator[str]:
    """Yield what differs after a start on copies of the disks: as they are, and as a loss of power leaves them."""
    replicas = broker.replicas.replicas
    for name, disk in disks.items():
        if disk.failing is not None or replicas.logs.has_failed(name):
            continue
        here = replicas.logs.keys_in(name)
        logs = {each.key: each.log for each in replicas.all() if each.key in here}
        manager, _ = _started(broker, disk.copy())
        for (topic, number), log in logs.items():
            anew = manager.get(topic, number)
            for what in ["is not there"] if anew is None else _of_log(log, anew):
                yield f"log {topic}-{number} after a start: {what}"
        dark = disk.copy()
        dark.lose_power()
        manager, loaded = _started(broker, dark)
        for key, log in logs.items():
            anew = manager.get(*key)
            for what in [] if anew is None else _of_rest(log, anew, loaded[key]):
                yield f"log {key[0]}-{key[1]} after a loss of power: {what}"


def _started(broker: Broker, disk: MemoryStorage) -> tuple[LogManager, dict[TopicPartition, LoadedLog]]:
    replicas = broker.replicas
    expired_ms = partial(producers_expired_ms, broker.config, replicas.wall_ms)
    manager = LogManager(disk, rules=replicas.rules, expired_ms=expired_ms)
    return manager, {(each.topic, each.partition): each for each in manager.load()}


def _of_log(log: Log, anew: Log) -> Iterator[str]:
    if anew.log_end_offset != log.log_end_offset:
        yield "end"
        return
    if anew.log_start_offset > log.log_start_offset:
        yield "start"
    if [each.base_offset for each in anew.segments] != [each.base_offset for each in log.segments]:
        yield "segments"
    if _epochs(anew, log) != _epochs(log, log):
        yield "leader epochs"
    if dict(anew.producers.open_transactions) != dict(log.producers.open_transactions):
        yield "open transactions"
    if (anew.cleaned_to is None) != (log.cleaned_to is None):
        yield "whether offsets may be missing"
    if _found(anew, log) != _found(log, log):
        yield "what its indexes find"
    span = log.log_start_offset, log.log_end_offset
    if anew.aborted_transactions(*span) != log.aborted_transactions(*span):
        yield "aborted transactions"
    known, read = _sequences(log), _sequences(anew)
    if differing := sorted(key for key in known.keys() & read.keys() if known[key] != read[key]):
        yield f"producers {differing}"


def _found(log: Log, of: Log) -> list[Any]:
    """Return which batches and records are found by some offsets and their timestamps."""
    start, end = of.log_start_offset, of.log_end_offset
    found: list[Any] = [log.youngest_record()]
    for offset in range(start, end, max(1, (end - start) // _LOOKUPS)):
        if data := log.read(offset, max_bytes=1, up_to=end, at_least_one=True):
            header = parse_header(data)
            found += [(header.base_offset, header.last_offset), log.offset_for_timestamp(header.max_timestamp)]
    return found


def _epochs(log: Log, of: Log) -> list[tuple[int, int]]:
    """Return the epochs of records that are there, with their first offsets."""
    start, end = of.log_start_offset, of.log_end_offset
    return [(each.epoch, each.start_offset) for each in log.epochs.entries if start < each.start_offset < end]


def _sequences(log: Log) -> dict[int, tuple[int, int | None]]:
    """Return epoch and last sequence of each producer."""
    return {
        key: (each.epoch, each.batches[-1].last_sequence if each.batches else None)
        for key, each in log.producers.items()
    }


def _of_rest(log: Log, anew: Log, loaded: LoadedLog) -> Iterator[str]:
    """Yield what is wrong with what is left of a log: what was synced is there, and no other records are."""
    if anew.log_end_offset < min(loaded.recovery_point, log.log_end_offset):
        yield "end before the recovery point"
    if log.cleaned_to is not None or anew.cleaned_to is not None:
        return
    start = max(log.log_start_offset, anew.log_start_offset)
    end = min(log.log_end_offset, anew.log_end_offset)
    if start < end and _batches(anew, start, end) != _batches(log, start, end):
        yield "records"


def _batches(log: Log, start: int, end: int) -> list[bytes]:
    return [bytes(batch) for _, batch in iter_batches(log.read(start, max_bytes=_ALL, up_to=end, at_least_one=False))]
