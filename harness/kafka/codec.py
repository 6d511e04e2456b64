"""How are requests and responses bytes? Fields of fixed and of variable length, arrays of structs, by version.

Flexible versions (KIP-482) have compact lengths, and tagged fields after each struct, which are skipped.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = dict[str, Any]
"""A struct: values by the names of its fields."""

INT8, INT16, INT32, INT64, BOOL = (struct.Struct(f">{letter}") for letter in "bhiq?")
NO_TAGS = b"\0"
STRING, BYTES = "string", "bytes"
"""A length of 2 and of 4 bytes, in flexible versions a compact one, then as many bytes; length -1 is null."""


class Malformed(Exception):
    """Bytes that should be a message are none."""


@dataclass(frozen=True, slots=True)
class Each:
    """An array of values, which are no structs."""

    type: "struct.Struct | str"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, in the versions that have it."""

    name: str
    type: "struct.Struct | str | Each | tuple[Field, ...]"
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


def encode(fields: Fields, values: Mapping[str, Any], version: int, *, flexible: bool = False) -> bytes:
    """Return the bytes of a struct; a flexible one has no tagged fields."""
    encoded = b"".join(
        _encoded(field, values[field.name], version, flexible) for field in fields if _has(version, field)
    )
    return encoded + (NO_TAGS if flexible else b"")


def decode(fields: Fields, data: bytes, version: int) -> Values:
    """Return a struct that these bytes hold, and nothing else.

    Raises:
        Malformed: they hold less or more.
    """
    values, position = _decoded(fields, data, version, flexible=False)
    if position != len(data):
        raise Malformed(f"{len(data) - position} bytes more than its fields")
    return values


def decode_beginning(fields: Fields, data: bytes, version: int, *, flexible: bool) -> Values:
    """Return the first fields of a struct that these bytes begin with; what follows is not read.

    Raises:
        Malformed: they hold less.
    """
    return _decoded(fields, data, version, flexible=flexible)[0]


def after_tags(data: bytes, position: int) -> int:
    """Return where tagged fields that begin here end; raises Malformed."""
    try:
        count, position = _unsigned_varint(data, position)
        for _ in range(count):
            _, position = _unsigned_varint(data, position)
            size, position = _unsigned_varint(data, position)
            position += size
    except IndexError as error:
        raise Malformed(str(error)) from error
    return position


def _decoded(fields: Fields, data: bytes, version: int, *, flexible: bool) -> tuple[Values, int]:
    try:
        return _fields(fields, data, 0, version, flexible)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise Malformed(str(error)) from error


def _has(version: int, field: Field) -> bool:
    return field.since <= version <= field.until


def _encoded(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    if isinstance(field.type, struct.Struct):
        return bytes(field.type.pack(value))
    if value is None:
        return _length(field, -1, flexible)
    if isinstance(field.type, tuple):
        elements = b"".join(encode(field.type, each, version, flexible=flexible) for each in value)
        return _length(field, len(value), flexible) + elements
    if isinstance(field.type, Each):
        element = Field(field.name, field.type.type)
        elements = b"".join(_encoded(element, each, version, flexible) for each in value)
        return _length(field, len(value), flexible) + elements
    data: bytes = value.encode() if field.type == STRING else value
    return _length(field, len(data), flexible) + data


def _length(field: Field, length: int, flexible: bool) -> bytes:
    if not flexible:
        return bytes((INT16 if field.type == STRING else INT32).pack(length))
    rest, encoded = length + 1, bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def _fields(fields: Fields, data: bytes, position: int, version: int, flexible: bool) -> tuple[Values, int]:
    values: Values = {}
    for field in fields:
        if _has(version, field):
            values[field.name], position = _value(field, data, position, version, flexible)
    return values, position


def _value(field: Field, data: bytes, position: int, version: int, flexible: bool) -> tuple[Any, int]:
    if isinstance(field.type, struct.Struct):
        return field.type.unpack_from(data, position)[0], position + field.type.size
    if flexible:
        count, position = _unsigned_varint(data, position)
        count -= 1
    else:
        length = INT16 if field.type == STRING else INT32
        (count,) = length.unpack_from(data, position)
        position += length.size
    if count < 0:
        return None, position
    if isinstance(field.type, tuple | Each):
        elements = []
        for _ in range(count):
            element, position = _element(field.type, data, position, version, flexible)
            elements.append(element)
        return elements, position
    end = position + count
    if end > len(data):
        raise Malformed(f"{field.name} has {count} bytes, of which {len(data) - position} are there")
    return data[position:end].decode() if field.type == STRING else data[position:end], end


def _element(type_: Fields | Each, data: bytes, position: int, version: int, flexible: bool) -> tuple[Any, int]:
    if isinstance(type_, Each):
        return _value(Field("", type_.type), data, position, version, flexible)
    values, position = _fields(type_, data, position, version, flexible)
    return values, after_tags(data, position) if flexible else position


def _unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of up to five bytes, and where it ends; raises IndexError."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, position
