"""What is compared of an answer? Its fields, with symbols for ids, and without what chance or the machine decides.

The whole normalisation: ids of members and producers become symbols; names lose the prefix of the play; times near now
are `now`; the fields of `MASKED` become whether they have a value; groups and transactions of other scripts are left
out; lists are in one order; records are shown batch by batch, decompressed, without an incomplete last one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.broker.log.batch import CorruptBatch, iter_batches, parse_records
from harness.broker.log.compression import CODEC_NAMES
from harness.broker.log.records import MalformedRecords
from harness.client_rules.scripts.script import Step, Symbols
from harness.contracts.requests import BEGAN_MS, as_values

MASKED = frozenset(
    {"host", "port", "client_host", "cluster_id", "log_dir", "topic_id", "session_id", "total_bytes", "usable_bytes"}
    | {"error_message", "message", "batch_index_error_message", "documentation"}
)
"""Addresses, random ids, sizes of the disk, and texts for people."""
DAY_MS = 86_400_000
OF_ALL_SCRIPTS = {"groups": "group_id", "transaction_states": "transactional_id"}
"""Lists that name what belongs to other scripts, and the field that names it."""
IDENTITY = ("name", "topic", "group_id", "transactional_id", "partition_index", "partition", "index", "partition_id")
FIRST_WITH_SESSIONS = 7
"""Version of Fetch."""
LISTS = frozenset({"ListGroups", "ListTransactions"})


def shown(step: Step, answer: Any, symbols: Symbols) -> Any:
    """Return what is compared of a response; new ids get symbols."""
    return _Shower(symbols, step.api in LISTS).value(as_values(answer, step.version))


class _Shower:
    def __init__(self, symbols: Symbols, of_all: bool) -> None:
        self._symbols = symbols
        self._of_all = of_all
        self._now_ms = symbols.wall_ms()

    def value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {field: self.value(each, field) for field, each in value.items()}
        if isinstance(value, set | frozenset):
            return sorted(value)
        if isinstance(value, list | tuple):
            if self._of_all and name in OF_ALL_SCRIPTS:
                value = [each for each in value if each[OF_ALL_SCRIPTS[name]].startswith(self._symbols.prefix)]
            return sorted((self.value(each, name) for each in value), key=_order)
        if name in MASKED:
            return bool(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return batches(bytes(value), self._symbols) if name == "records" else bytes(value).decode("latin-1")
        if isinstance(value, str):
            known = name in ("member_id", "leader")
            return self._symbols.member(value) if known else value.replace(self._symbols.prefix, "")
        if name == "producer_id":
            return self._symbols.producer(value)
        return self.number(value)

    def number(self, value: Any) -> Any:
        """Return a number; one that is a time near now is no more than that."""
        near = type(value) is int and abs(value - self._now_ms) < DAY_MS
        return "now" if near else value


def _order(value: Any) -> str:
    """Return what elements of a list are sorted by: what names them first, so that the same ones stand side by side."""
    names = [value.get(name) for name in IDENTITY] if isinstance(value, dict) else []
    return json.dumps([names, value], sort_keys=True)


def batches(records: bytes, symbols: Symbols) -> Sequence[Any]:
    """Return the whole batches of a fetch, each with its header and its records."""
    shower = _Shower(symbols, of_all=False)
    found: list[Any] = []
    try:
        for header, batch in iter_batches(records):
            entry = {
                "offsets": [header.base_offset, header.last_offset],
                "epoch": header.leader_epoch,
                "codec": CODEC_NAMES.get(header.codec, header.codec),
                "attributes": header.attributes & ~7,
                "times": [_time(shower, header.base_timestamp), _time(shower, header.max_timestamp)],
                "producer": [symbols.producer(header.producer_id), header.producer_epoch, header.base_sequence],
                "count": header.records_count,
            }
            found.append(entry)
            if header.is_control:
                continue
            entry["records"] = [
                [each.offset, _text(each.key), _text(each.value), _time(shower, each.timestamp_ms)]
                for each in parse_records(batch)
            ]
    except (CorruptBatch, MalformedRecords) as error:
        found.append(type(error).__name__)
    return found


def _time(shower: _Shower, timestamp_ms: int) -> Any:
    return timestamp_ms - BEGAN_MS if abs(timestamp_ms - BEGAN_MS) < DAY_MS else shower.number(timestamp_ms)


def _text(data: bytes | None) -> str | int | None:
    if data is None:
        return None
    return data.decode("latin-1") if len(data) <= 16 else len(data)


def learn(step: Step, answer: Any, symbols: Symbols) -> None:
    """Keep the ids of an answer for later steps."""
    if step.api == "JoinGroup" and answer.member_id:
        symbols.member(answer.member_id)
        if not answer.error_code:
            symbols.generations[symbols.meaning(step.fields.get("group_id", ""))] = answer.generation_id
    if step.api == "Fetch" and step.version >= FIRST_WITH_SESSIONS and answer.session_id not in (0, *symbols.sessions):
        symbols.sessions.append(answer.session_id)
    if step.api == "InitProducerId" and not answer.error_code:
        symbols.producer(answer.producer_id)
        symbols.epochs[answer.producer_id] = answer.producer_epoch
