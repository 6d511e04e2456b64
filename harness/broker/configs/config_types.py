"""The types of configuration properties: parsing, and their form in DescribeConfigs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import Any

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1


class ConfigError(ValueError):
    """A property is unknown, malformed or out of bounds; the message names all of them."""


class TypeCode(IntEnum):
    """Kafka's numbers of the types, as in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class ConfigType:
    """A type with its bounds; calling it turns text into a value or raises ValueError."""

    code: TypeCode
    parse: Callable[[str], Any]

    def __call__(self, text: str) -> Any:
        """Return the value of a text."""
        return self.parse(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property that a broker knows."""

    name: str
    default: str | None
    """Text as in a properties file; None when it is required."""
    parse: ConfigType
    idle: str = ""
    """Why it has no effect here; empty if it has one."""


def integer(low: int, high: int = INT_MAX) -> ConfigType:
    """Return Kafka's INT within bounds."""
    return ConfigType(TypeCode.INT, _number(low, high))


def short(low: int) -> ConfigType:
    """Return Kafka's SHORT of at least `low`."""
    return ConfigType(TypeCode.SHORT, _number(low, SHORT_MAX))


def long(low: int = -(2**63)) -> ConfigType:
    """Return Kafka's LONG of at least `low`."""
    return ConfigType(TypeCode.LONG, _number(low, LONG_MAX))


def optional(of: ConfigType) -> ConfigType:
    """Return a type whose empty text is None, which Kafka calls null."""
    return ConfigType(of.code, lambda text: of.parse(text) if text else None)


def buffer_size() -> ConfigType:
    """Return the size of a socket's buffer in bytes, an INT; -1 leaves it to the operating system."""

    def parse(text: str) -> int:
        value: int = _number(-1, INT_MAX)(text)
        if not value:
            raise ValueError("must be more than 0, or -1 for the operating system's own")
        return value

    return ConfigType(TypeCode.INT, parse)


def ratio() -> ConfigType:
    """Return Kafka's DOUBLE from 0 to 1."""

    def parse(text: str) -> float:
        value = float(text)
        if not 0 <= value <= 1:
            raise ValueError("must be between 0 and 1")
        return value

    return ConfigType(TypeCode.DOUBLE, parse)


def positive() -> ConfigType:
    """Return Kafka's DOUBLE above 0: no work is possible without speed or memory."""

    def parse(text: str) -> float:
        value = float(text)
        if not value > 0:
            raise ValueError("must be more than 0")
        return value

    return ConfigType(TypeCode.DOUBLE, parse)


def choice(*allowed: str) -> ConfigType:
    """Return one of several words."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return ConfigType(TypeCode.STRING, parse)


def only(value: str, code: TypeCode = TypeCode.STRING, *, why: str = "this broker has no other way") -> ConfigType:
    """Return a type of one value: any other would need a missing feature."""

    def parse(text: str) -> str:
        if text.strip().lower() != value.lower():
            raise ValueError(f"{why}: remove the line" + (f", or set it to {value}" if value else ""))
        return value

    return ConfigType(code, parse)


def listing(*allowed: str) -> ConfigType:
    """Return a comma-separated list, of the allowed elements if any are named."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(",")) if text.strip() else ()
        if not allowed:
            return tuple(filter(None, words))
        if any(word not in allowed for word in words):
            raise ValueError(f"each word must be one of {', '.join(allowed)}")
        return words

    return ConfigType(TypeCode.LIST, parse)


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


BOOLEAN = ConfigType(TypeCode.BOOLEAN, _flag)
TEXT = ConfigType(TypeCode.STRING, str)
COMPRESSION_TYPE = choice("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def as_text(value: Any) -> str | None:
    """Return a value as in a properties file; None for one that is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


def unknown(what: str, name: str, known: Mapping[str, object]) -> str:
    """Return a sentence about an unknown name, with the nearest known one."""
    near = get_close_matches(name, known, n=1)
    return f"unknown {what} {name}" + (f" (did you mean {near[0]}?)" if near else "")
