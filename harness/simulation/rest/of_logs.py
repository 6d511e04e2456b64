"""What brokers know of their logs, beside what a start would read from their disks."""

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
    """Yield what differs after a start on copies of the disks: as they are, and as a loss of power leaves them."""
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
        loaded = {(each.topic, each.partition): each for each in manager.load()}
    except StorageError as error:
        yield f"its logs cannot be opened: {error}"
        return
    for key, log in logs.items():
        anew, when = manager.get(*key), "a loss of power" if power_lost else "a start"
        if anew is None:
            differences = [] if power_lost else ["is not there"]
        elif power_lost:
            differences = list(_after_power_loss(log, anew, loaded[key]))
        else:
            differences = list(_of_log(log, anew))
        for what in differences:
            yield f"log {key[0]}-{key[1]} after {when}: {what}"
    manager.close()


def _of_log(log: Log, anew: Log) -> Iterator[str]:
    cleaned = log.cleaned_to is not None
    if anew.log_end_offset > log.log_end_offset or (anew.log_end_offset < log.log_end_offset and not cleaned):
        yield "end"
        return
    if anew.log_start_offset > log.log_start_offset:
        yield "start"
        return
    if [each.base_offset for each in anew.segments] != [each.base_offset for each in log.segments]:
        yield "segments"
    if _epochs(anew, log) != _epochs(log, log):
        yield "leader epochs"
    if (anew.cleaned_to is None) != (log.cleaned_to is None):
        yield "whether offsets may be missing"
    if cleaned:
        return  # a cleaner removes what indexes and producers are read from
    anew.advance_log_start(log.log_start_offset)  # its checkpoint is written from time to time
    if _found(anew, log) != _found(log, log):
        yield "what its indexes find"
    if dict(anew.producers.open_transactions) != dict(log.producers.open_transactions):
        yield "open transactions"
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


def _after_power_loss(log: Log, anew: Log, loaded: LoadedLog) -> Iterator[str]:
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
