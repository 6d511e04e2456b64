"""Requests of Kafka's protocol as texts and numbers: by the name of their API, their version, and fields by name.

Names of fields are Kafka's in snake_case. Bytes may be written as text. Records are written as `records_of` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.broker.handlers.apis import APIS
from harness.broker.log.batch import HEADER_BYTES, Numbering, batch_with, build_batch, parse_header, recompressed
from harness.broker.log.compression import NO_COMPRESSION
from harness.broker.log.records import Record
from harness.broker.wire.later_requests import LATER_REQUESTS
from harness.kafka.records import message_of

BEGAN_MS = 1_600_000_000_000
"""Timestamps of records count from here, whatever the time is."""
_MOST_LENGTH_BYTES = 8
"""By which the lengths of a value and of its record grow at most."""
_SERVED = (api.request for api in APIS.values())
REQUESTS = {each.__name__.removesuffix("Request"): each for each in (*_SERVED, *LATER_REQUESTS)}
"""The class of each request, by Kafka's name of its API."""


def versions_of(api: str) -> tuple[int, int]:
    """Return the first and the last version of a request that can be sent."""
    first, last = REQUESTS[api].valid_versions
    return first, last


def filled(api: str, values: Mapping[str, Any], version: int) -> Any:
    """Return a request with these fields; what the version does not have is left out."""
    message_class: Any = REQUESTS[api]
    return _filled(message_class, message_class._struct.fields, values, version)


def _filled(message_class: Any, fields: Mapping[str, Any], values: Mapping[str, Any], version: int) -> Any:
    message = message_class(version=version)
    for name, value in values.items():
        of_field = fields[name]
        if not of_field.for_version_q(version):
            continue
        if of_field.is_struct_array() and value is not None:
            value = [_filled(of_field.data_class, of_field.fields, each, version) for each in value]
        elif of_field.type_str == "records" and value is not None:
            value = b"".join(records_of(each) for each in value)
        elif of_field.type_str == "bytes" and isinstance(value, str):
            value = value.encode()
        setattr(message, name, value)
    return message


def unknown_fields(api: str, values: Mapping[str, Any], version: int) -> Iterator[str]:
    """Yield what a request of this version does not have, or has in another shape, each as a sentence."""
    message_class: Any = REQUESTS[api]
    yield from _unknown(message_class._struct.fields, values, version, f"{api} {version}")


def _unknown(fields: Mapping[str, Any], values: Any, version: int, where: str) -> Iterator[str]:
    if not isinstance(values, Mapping):
        yield f"{where} takes fields by name, not {values!r}"
        return
    known = [name for name, field in fields.items() if field.for_version_q(version)]
    for name, value in values.items():
        if name not in known:
            yield f"{where} has no field {name!r}; it has {', '.join(known) or 'none'}"
        elif fields[name].is_struct_array() and value is not None:
            if not isinstance(value, Sequence) or isinstance(value, str):
                yield f"{name} of {where} is a list, not {value!r}"
                continue
            for each in value:
                yield from _unknown(fields[name].fields, each, version, f"{name} of {where}")


def as_values(message: Any, version: int) -> Any:
    """Return a message as dictionaries and lists of the fields that its version has."""
    return _as_values(message, message._struct.fields, version)


def _as_values(message: Any, fields: Mapping[str, Any], version: int) -> Any:
    if message is None:
        return None
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if not field.for_version_q(version):
            continue
        value = getattr(message, name)
        if field.is_struct_array() and value is not None:
            value = [_as_values(each, field.fields, version) for each in value]
        elif field.is_struct():
            value = _as_values(value, field.fields, version)
        values[name] = value
    return values


def error_codes(values: Any, name: str = "") -> frozenset[int]:
    """Return all error codes of an answer, given as `as_values` returns it."""
    if isinstance(values, dict):
        return frozenset().union(*(error_codes(each, field) for field, each in values.items()))
    if isinstance(values, list):
        return frozenset().union(*(error_codes(each, name) for each in values))
    return frozenset({values}) if name.endswith("error_code") else frozenset()


def records_of(batch: Mapping[str, Any]) -> bytes:
    """Return a batch as bytes.

    Args:
        batch: `records` are lists of key, value and milliseconds since `BEGAN_MS`; `codec`, `attributes`, `producer`,
            `epoch` and `sequence` are those of the batch; `header` replaces fields of its header; `cut` is how many
            bytes are missing at the end, `flip` a byte whose bits are inverted; `magic` 1 is a message of format v1;
            `size` is how many bytes it has before it is compressed: its last value is as long as that takes.
    """
    records = [
        Record(key=_bytes(key), value=_bytes(value), timestamp_ms=BEGAN_MS + at_ms)
        for key, value, at_ms in batch.get("records") or [[None, "a", 0]]
    ]
    if "size" in batch:
        records = _of_size(records, batch["size"])
    if batch.get("magic") == 1:
        return message_of(records[0].key or b"", records[0].value or b"", records[0].timestamp_ms)
    numbering = Numbering(batch.get("producer", -1), batch.get("epoch", -1), batch.get("sequence", -1))
    data = build_batch(records, attributes=batch.get("attributes", 0), numbering=numbering)
    header = parse_header(data)
    if codec := batch.get("codec", NO_COMPRESSION):
        data = bytes(recompressed(data, header, codec))
        header = parse_header(data)
    if changes := batch.get("header"):
        data = batch_with(header._replace(**changes), data[HEADER_BYTES:])
    if "flip" in batch:
        at = batch["flip"] % len(data)
        data = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
    return data[: len(data) - batch.get("cut", 0)]


def _of_size(records: Sequence[Record], size: int) -> list[Record]:
    """Return the records with a last value as long as their batch needs to have a size, or to be the next larger."""
    *others, last = records
    length = max(0, size - len(build_batch([*others, replace(last, value=b"")])) - _MOST_LENGTH_BYTES)
    while len(build_batch(padded := [*others, replace(last, value=b"x" * length)])) < size:
        length += 1
    return padded


def _bytes(text: str | int | None) -> bytes | None:
    """Return a text as bytes; a number stands for so many bytes."""
    if isinstance(text, int):
        return b"x" * text
    return None if text is None else text.encode()
