"""What is wrong with the prose of a text? Phrases of phrases.yaml, outside code."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

PHRASES = Path(__file__).with_name("phrases.yaml")
_CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that are not to be used."""

    pattern: re.Pattern[str]
    instead: str
    """What to write, as advice."""


@cache
def phrases() -> Sequence[Phrase]:
    """Return the phrases of phrases.yaml."""
    rows = YAML(typ="safe").load(PHRASES)
    return tuple(Phrase(re.compile(row["pattern"]), row["instead"]) for row in rows)


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a line and what is wrong in it; blocks and spans of code are skipped."""
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, line in enumerate(prose.splitlines(), 1):
        for phrase in phrases():
            if match := phrase.pattern.search(line):
                yield number, f'"{match[0]}": {phrase.instead}'
