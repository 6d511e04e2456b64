"""How are requests and responses bytes? Fields of fixed and of variable length, arrays of structs, by version."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = dict[str, Any]
"""A struct: values by the names of its fields."""

INT8, INT16, INT32, INT64, BOOL = (struct.Struct(f">{letter}") for letter in "bhiq?")
STRING, BYTES = "string", "bytes"
"""A length of 2 and of 4 bytes, then as many bytes; length -1 is null."""


class Malformed(Exception):
    """Bytes that should be a message are none."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, in the versions that have it."""

    name: str
    type: "struct.Struct | str | tuple[Field, ...]"
    """A tuple is an array of structs; count -1 is null."""
    since: int = 0
    until: int = 99


Fields = tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A request and its response, in the versions before flexible ones."""

    key: int
    name: str
    request: Fields
    response: Fields


def encode(fields: Fields, values: Mapping[str, Any], version: int) -> bytes:
    """Return the bytes of a struct."""
    return b"".join(_encoded(field, values[field.name], version) for field in fields if _has(version, field))


def decode(fields: Fields, data: bytes, version: int) -> Values:
    """Return a struct that these bytes hold, and nothing else.

    Raises:
        Malformed: they hold less or more.
    """
    try:
        values, position = _struct(fields, data, 0, version)
    except (struct.error, UnicodeDecodeError) as error:
        raise Malformed(str(error)) from error
    if position != len(data):
        raise Malformed(f"{len(data) - position} bytes more than its fields")
    return values


def _has(version: int, field: Field) -> bool:
    return field.since <= version <= field.until


def _encoded(field: Field, value: Any, version: int) -> bytes:
    if isinstance(field.type, struct.Struct):
        return bytes(field.type.pack(value))
    length = INT16 if field.type == STRING else INT32
    if value is None:
        return length.pack(-1)
    if isinstance(field.type, tuple):
        return length.pack(len(value)) + b"".join(encode(field.type, each, version) for each in value)
    data: bytes = value.encode() if field.type == STRING else value
    return length.pack(len(data)) + data


def _struct(fields: Fields, data: bytes, position: int, version: int) -> tuple[Values, int]:
    values: Values = {}
    for field in fields:
        if _has(version, field):
            values[field.name], position = _value(field, data, position, version)
    return values, position


def _value(field: Field, data: bytes, position: int, version: int) -> tuple[Any, int]:
    if isinstance(field.type, struct.Struct):
        return field.type.unpack_from(data, position)[0], position + field.type.size
    length = INT16 if field.type == STRING else INT32
    (count,) = length.unpack_from(data, position)
    position += length.size
    if count < 0:
        return None, position
    if isinstance(field.type, tuple):
        elements = []
        for _ in range(count):
            element, position = _struct(field.type, data, position, version)
            elements.append(element)
        return elements, position
    end = position + count
    if end > len(data):
        raise Malformed(f"{field.name} has {count} bytes, of which {len(data) - position} are there")
    return data[position:end].decode() if field.type == STRING else data[position:end], end
