"""What is wrong with the prose of a document, or of a Python file? Phrases of phrases.yaml, outside code."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

PHRASES = Path(__file__).with_name("phrases.yaml")
MIN_WORDS = 3
"""Shorter texts in Python are names and keys."""
_CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that are not to be used."""

    pattern: re.Pattern[str]
    instead: str
    """What to write, as advice."""
    code: bool
    """Whether it is not to be used in Python files either."""


@cache
def phrases() -> Sequence[Phrase]:
    """Return the phrases of phrases.yaml."""
    rows = YAML(typ="safe").load(PHRASES)
    return tuple(Phrase(re.compile(row["pattern"]), row["instead"], row.get("code", False)) for row in rows)


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a line and what is wrong in it; blocks and spans of code are skipped."""
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, line in enumerate(prose.splitlines(), 1):
        for phrase in phrases():
            if match := phrase.pattern.search(line):
                yield number, f'"{match[0]}": {phrase.instead}'


def problems_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the same of the comments, docstrings and longer texts of a Python file."""
    strict = [phrase for phrase in phrases() if phrase.code]
    if not any(phrase.pattern.search(text) for phrase in strict):
        return
    for start, said in sorted(_said(text)):
        for offset, line in enumerate(said.splitlines()):
            for phrase in strict:
                if match := phrase.pattern.search(_CODE.sub("", line.strip())):
                    yield start + offset, f'"{match[0]}": {phrase.instead}'


def _said(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= MIN_WORDS:
            yield node.lineno, node.value
