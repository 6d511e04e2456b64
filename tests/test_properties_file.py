import random
import subprocess
from pathlib import Path

import pytest

from harness.cluster.embedded_zookeeper import java
from harness.properties_file import escaped, properties_in

BLANKS, ENDS = (" ", "\t", "\f"), ("\n", "\r\n")
PIECES = ("a", "b.c", "=", ":", *BLANKS, "\\", "\\\\", *ENDS, "#", "!", "u", "\\u0042", "\\n", "\x85", "é")
"""Of which files are made that Java reads too."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a=1\nb = 2 \n", {"a": "1", "b": "2"}, id="an equals sign, with blanks or without"),
        pytest.param("a:1\nb : 2", {"a": "1", "b": "2"}, id="a colon"),
        pytest.param("a 1\n\tb\t \t2", {"a": "1", "b": "2"}, id="a blank alone"),
        pytest.param(
            "listeners=A://h:1,B://h:2", {"listeners": "A://h:1,B://h:2"}, id="the first sign ends the name only"
        ),
        pytest.param("a= =1", {"a": "=1"}, id="a second sign is of the value"),
        pytest.param("# a=1\n ! b=2\n\n", {}, id="comments and blank lines"),
        pytest.param("a=1 # one", {"a": "1 # one"}, id="a comment has a line of its own"),
        pytest.param("# a=1\\\nb=2", {"b": "2"}, id="a comment does not go on"),
        pytest.param("a=1,\\\n   2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}, id="a value over several lines"),
        pytest.param("a\\\n.b=1", {"a.b": "1"}, id="a name over several lines"),
        pytest.param("a=1\\\n#2", {"a": "1#2"}, id="what goes on is no comment"),
        pytest.param("a=C:\\\\x\\\\", {"a": "C:\\x\\"}, id="two backslashes are one, and do not go on"),
        pytest.param("a\\=\\ b=1", {"a= b": "1"}, id="signs of a name"),
        pytest.param("a=\\t1\\u0041\\z", {"a": "1Az"}, id="escapes"),
        pytest.param("a\nb=", {"a": "", "b": ""}, id="a name alone"),
        pytest.param("a=1\na=2", {"a": "2"}, id="the last one counts"),
        pytest.param("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}, id="ends of lines of any system"),
        pytest.param("a=1\x852", {"a": "1\x852"}, id="what Python takes for the end of a line and Java does not"),
    ],
)
def test_what_a_file_says(text: str, expected: dict[str, str]) -> None:
    assert properties_in(text) == expected


def test_an_escape_that_is_cut_short_is_named_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"^3: .u is followed by four hexadecimal digits$"):
        properties_in("a=1\n\nb=\\u00\\\n4")


def test_what_is_escaped_is_read_back() -> None:
    path = r"C:\x\u00 \N{} é 😀"
    assert escaped(path).isascii()
    assert properties_in(f"a={escaped(path)}") == {"a": path}


@pytest.mark.real_time("a JVM, that is waited for")
def test_files_say_what_java_finds_in_them() -> None:
    rng = random.Random(7)
    files = ["".join(rng.choices(PIECES, k=rng.randint(1, 14))) + "\nz" for _ in range(3000)]
    command = [java(), str(Path(__file__).with_name("PropertiesOf.java"))]
    ended = subprocess.run(command, input="\x01".join(files).encode(), capture_output=True, timeout=120, check=True)
    parsed = ended.stdout.decode().split("\x01")[:-1]
    assert len(parsed) == len(files)
    for file, java_found in zip(files, parsed, strict=True):
        assert (ours(file), file) == (javas(java_found), file)


def ours(file: str) -> dict[str, str] | None:
    try:
        return properties_in(file)
    except ValueError:
        return None


def javas(printed: str) -> dict[str, str] | None:
    """What Java found, as Kafka uses it: without blanks at the end of values; None for what it refused."""
    if printed == "malformed":
        return None
    pairs = (pair.partition("\x02") for pair in printed.split("\x03") if pair)
    return {name: value.strip("".join(map(chr, range(33)))) for name, _, value in pairs}
