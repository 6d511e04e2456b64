"""No name is a word that says nothing of its value: what was found may be a finding, a path or a partition."""

import ast
import keyword
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
WORDS = frozenset({"found", "told", "said", "asked", "given", "kept"})
"""As a whole name, with or without underscores around it; in a longer name they have something to say of."""
SEEN = re.compile(rf"(?:(\w+) +)?\b_*(?:{'|'.join(sorted(WORDS))})_*\b(?: +(\w+))?")
"""Such a word with the words around it."""
EXCEPTIONS = {
    ("harness/sweep/recorded.py", "found"): "a key of the verdict.json of kept histories",
    ("plugins/kafka_chaos/faults/controlled_shutdown.py", "kept"): "a key of the journal of kept histories",
}
"""Names that others prescribe, by file, and who does."""


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that a module chooses, with its line: not what it reads of others, nor keys of data."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.MatchMapping(rest=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.keyword(arg=str(name), value=value):
                yield name, value.lineno


def _only_prose(source: str) -> bool:
    """Return whether each such word stands between words as no name does: beside it are keywords alone."""
    keywords = {*keyword.kwlist, *keyword.softkwlist}
    return all(any(word and word not in keywords for word in around) for around in SEEN.findall(source))


def _riddles(path: str, source: str) -> list[str]:
    """Return where such names are, each with its file and line."""
    names = [
        *([] if _only_prose(source) else _names(ast.parse(source))),
        *((part, 1) for part in Path(path).with_suffix("").parts),
    ]
    return [
        f"{path}:{line}: {name}"
        for name, line in names
        if name.strip("_") in WORDS and (path, name.strip("_")) not in EXCEPTIONS
    ]


def test_every_name_says_what_its_value_is() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [path for path in listed.stdout.split("\0") if path and (REPOSITORY / path).is_file()]
    assert len(paths) > 1000, "the repository's own files are looked at"
    riddles = [each for path in paths for each in _riddles(path, (REPOSITORY / path).read_text(encoding="utf-8"))]
    assert not riddles, "name what the value is, with a plain noun:\n" + "\n".join(sorted(riddles))


@pytest.mark.parametrize(
    ("source", "where"),
    [
        pytest.param("kept = 1", ["a.py:1: kept"], id="a variable"),
        pytest.param("x = 1\nfor said in x: pass", ["a.py:2: said"], id="what a loop goes over"),
        pytest.param("def f(*, asked=0): pass", ["a.py:1: asked"], id="an argument"),
        pytest.param("f = lambda told: 1", ["a.py:1: told"], id="an argument of a lambda"),
        pytest.param("self.found = 1", ["a.py:1: found"], id="an attribute that is assigned"),
        pytest.param("class A:\n    given: int", ["a.py:2: given"], id="a field"),
        pytest.param("def _told(): pass", ["a.py:1: _told"], id="a function, underscore or not"),
        pytest.param("class found: pass", ["a.py:1: found"], id="a class"),
        pytest.param("f(kept=1)", ["a.py:1: kept"], id="a keyword"),
        pytest.param("import b as told", ["a.py:1: told"], id="what an import is called here"),
        pytest.param("match x:\n    case [1, *found]: pass", ["a.py:2: found"], id="what a pattern catches"),
        pytest.param("match x:\n    case found: pass", ["a.py:2: found"], id="what it catches as a whole"),
        pytest.param("x['kept'] = x.get('found')", [], id="keys of data"),
        pytest.param("# it was told of what is given to it", [], id="prose"),
        pytest.param("from hypothesis import given", [], id="what somebody else has named"),
        pytest.param("x = y.found", [], id="what is read of somebody else"),
        pytest.param("found_at, kept_bytes = 1, 2", [], id="longer names"),
    ],
)
def test_a_riddle_is_told_by_its_place(source: str, where: list[str]) -> None:
    assert _riddles("a.py", source) == where


@pytest.mark.parametrize("path", ["a/told.py", "kept/b.py"])
def test_modules_and_their_folders_have_names_too(path: str) -> None:
    assert len(_riddles(path, "")) == 1


def test_every_exception_is_still_one() -> None:
    for path, word in EXCEPTIONS:
        tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
        assert word in {name for name, _ in _names(tree)}, f"{path} needs no exception for {word}"
