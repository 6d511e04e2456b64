"""Which properties are in a file, by the rules of Java's `Properties.load`, with which Kafka reads its own?

No library: those that there are would be one more package in every environment and in the broker's image, for the rules
below. They are compared with Java itself in the tests.
"""

import re
from collections.abc import Iterator

ENCODING = "iso-8859-1"
"""In which Java reads the bytes of such a file; other characters are escaped in it."""
_BLANKS = " \t\f"
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""What Kafka takes away around a value, as Java's `trim` does."""
_ENTRY = re.compile(rf"((?:\\.|[^\\=:{_BLANKS}])*)[{_BLANKS}]*(?:[=:][{_BLANKS}]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties_in(text: str) -> dict[str, str]:
    """Return names and values; the last line of a name counts, and blanks at the end of a value do not.

    Raises:
        ValueError: an escape is cut short; the message begins with the line's number.
    """
    properties = {}
    for number, line in _logical_lines(text):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, "every part may be empty, and the last takes anything"
        try:
            name, value = map(_unescaped, entry.groups())
        except ValueError as error:
            raise ValueError(f"{number}: {error}") from None
        properties[name] = value.strip(_TRIMMED)
    return properties


def escaped(value: str) -> str:
    """Return a value as it is written into a file: in ASCII, where a backslash stands for something else."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with the number of its first line; a backslash at the end goes on in the next line."""
    lines = iter(enumerate(re.split(r"\r\n?|\n", text), start=1))
    for number, line in lines:
        entry = line.lstrip(_BLANKS)
        if not entry or entry[0] in "#!" or entry == "\\":
            continue  # a backslash alone has begun nothing yet that could go on
        while (len(entry) - len(entry.rstrip("\\"))) % 2:
            _, more = next(lines, (0, ""))
            entry = entry[:-1] + more.lstrip(_BLANKS)
        yield number, entry


def _unescaped(text: str) -> str:
    units = _ESCAPE.sub(_meant, text).encode("utf-16", "surrogatepass")
    return units.decode("utf-16", "replace")  # two escapes may be the halves of one character


def _meant(escape: re.Match[str]) -> str:
    code, character = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    if character == "u":
        raise ValueError("\\u is followed by four hexadecimal digits")
    return _CONTROLS.get(character, character)
