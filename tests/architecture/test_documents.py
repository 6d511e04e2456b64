"""What the documents say of the code is true: links, paths, modules, targets of make, checks, commands, tests."""

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML

from harness.cli.app import app
from harness.scenario.file import read_scenario
from tools.pages import counts
from tools.pages.catalogue import PAGES

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {page.path for page in PAGES} - counts.SENTENCES.keys()
"""Compared with their generators elsewhere; their paths are checked here too, and their words are the code's."""
LINK = re.compile(r"\[([^]]+)]\(([^)\s]+)\)")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
FOLDERS = ("benchmarks", "dags", "docker", "docs", "expectations", "harness", "plugins", "tests", "tools")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*")
MODULE = re.compile(r"python -m ((?:benchmarks|expectations|harness|kafka_chaos|chaos_airflow|tests|tools)[\w.]*)")
TARGET = re.compile(r"(?:`|^ {4})make ([a-z-]+)", re.MULTILINE)
CHECK = re.compile(r"\bI\d+\b(?: [a-z]+(?:-[a-z]+)*)?")
TITLE = re.compile(r"^    title: .* = \"(.*)\"$", re.MULTILINE)
ARCHITECTURE_LINES = 200
DECISION_LINES = 25
MOST_DECISIONS = 50
README_LINES = 120
GLOSSARY_LINES = 40
PROSE_COLUMNS = 120
UNWRAPPED = ("|", "    ", "- [0")
"""Beginnings of lines that stay whole: tables, code, and the index of decisions."""

DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
}
WRITTEN = sorted(DOCUMENTS.keys() - GENERATED)
DECISIONS = sorted(name for name in DOCUMENTS if re.match(r"docs/decisions/\d{4}-", name))

TABLE = DOCUMENTS["docs/explanation/kafka-systems.md"]
LINES = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| ")]
ROWS = [row for row in LINES if row != LINES[0]]
"""Of all its tables, without their heads."""


def links(text: str) -> list[str]:
    """Return the relative ones, without their anchors."""
    targets = (target.partition("#")[0] for _, target in LINK.findall(FENCED.sub("", text)) if "://" not in target)
    return [target for target in targets if target]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    assert [target for target in links(DOCUMENTS[name]) if not (folder / target).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_in_backticks_is_there(name: str) -> None:
    paths = [code for code in INLINE_CODE.findall(FENCED.sub("", DOCUMENTS[name])) if PATH.fullmatch(code)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_module_that_is_to_be_run_is_there(name: str) -> None:
    names = [name.rstrip(".").replace(".", "/") for name in MODULE.findall(DOCUMENTS[name])]
    installed = [ROOT, ROOT / "plugins"]
    missing = [
        name
        for name in names
        if not any((root / f"{name}.py").exists() or (root / name / "__main__.py").exists() for root in installed)
    ]
    assert missing == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_target_of_make_is_there(name: str) -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(TARGET.findall(DOCUMENTS[name])) - there == set()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_check_is_called_by_its_number_and_its_name(name: str) -> None:
    checks = (path.read_text(encoding="utf-8") for path in (ROOT / "plugins/kafka_chaos/checks").glob("[!_]*.py"))
    titles = {title for check in checks for title in TITLE.findall(check)}
    prose = INLINE_CODE.sub("", FENCED.sub("", re.sub(r"^ {4}.*$", "", DOCUMENTS[name], flags=re.MULTILINE)))
    assert set(CHECK.findall(" ".join(prose.split()))) - titles == set()


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param("README.md", README_LINES, id="the README"),
        pytest.param("ARCHITECTURE.md", ARCHITECTURE_LINES, id="the architecture"),
        pytest.param("docs/glossary.md", GLOSSARY_LINES, id="the glossary, with thirty terms"),
    ],
)
def test_a_document_that_everyone_reads_is_short(name: str, most: int) -> None:
    assert len(DOCUMENTS[name].splitlines()) <= most


@pytest.mark.parametrize("name", WRITTEN)
def test_prose_is_wrapped(name: str) -> None:
    prose = FENCED.sub("", DOCUMENTS[name]).splitlines()
    assert [line for line in prose if len(line) > PROSE_COLUMNS and not line.startswith(UNWRAPPED)] == []


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_is_short_and_has_its_parts(name: str) -> None:
    text = DOCUMENTS[name]
    assert len(text.splitlines()) <= DECISION_LINES
    assert re.match(r"# \d{4} .+\n\nStatus: .+\n\n## Context\n", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Alternatives"]


def test_decisions_are_few() -> None:
    assert len(DECISIONS) <= MOST_DECISIONS


def test_the_index_names_every_decision_once_with_its_title() -> None:
    titles = [DOCUMENTS[name].partition("\n")[0].removeprefix("# ").partition(" ") for name in DECISIONS]
    expected = [
        f"- [{number}]({Path(name).name}) {title}" for name, (number, _, title) in zip(DECISIONS, titles, strict=True)
    ]
    assert (
        sorted(line for line in DOCUMENTS["docs/decisions/README.md"].splitlines() if line.startswith("- ")) == expected
    )


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """Return the words of each command line of chaos in blocks and table cells, without their comments."""
    in_blocks = re.findall(r"^(?: {4}|\$ )(chaos .+)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in (*in_blocks, *re.findall(r"`(chaos [^`]+)`", text))]


def unknown_words(words: list[str]) -> list[str]:
    """Return what a command line names that the command does not have: subcommands and options."""
    command: Any = typer.main.get_command(app)
    words = words[1:]
    while words and hasattr(command, "commands"):
        name, *words = words
        if name.startswith("-") or name == "COMMAND":
            return []
        if name not in command.commands:
            return [name]
        command = command.commands[name]
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_that_is_shown_has_the_options_that_it_is_shown_with(name: str) -> None:
    assert [words for words in commands(DOCUMENTS[name]) if unknown_words(words)] == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        pytest.param("chaos run smoke --seed 7", [], id="a command with its option"),
        pytest.param("chaos walk", ["walk"], id="no such command"),
        pytest.param("chaos cluster up --sead=7", ["--sead=7"], id="no such option of a subcommand"),
    ],
)
def test_a_wrong_command_is_noticed(line: str, unknown: list[str]) -> None:
    assert unknown_words(line.split()) == unknown


@pytest.mark.parametrize("name", WRITTEN)
def test_every_block_of_yaml_and_python_is_valid_and_a_whole_scenario_can_be_read(name: str) -> None:
    for text in blocks(DOCUMENTS[name], "yaml"):
        content = YAML(typ="safe").load(text)
        if {"name", "topics"} <= content.keys():
            assert read_scenario(text, name).name == content["name"]
    for text in blocks(DOCUMENTS[name], "python"):
        ast.parse(text)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_system_names_its_code_and_a_test_that_exists(row: list[str]) -> None:
    _, code, proof = row
    targets = [target for _, target in LINK.findall(code)]
    assert targets
    assert all(target.startswith("../../harness/") for target in targets)
    ((sentence, file),) = LINK.findall(proof)
    assert file.startswith("../../tests/")
    assert f"def test_{sentence.replace(' ', '_')}(" in (ROOT / "docs/explanation" / file).read_text(encoding="utf-8")


def test_the_table_has_the_systems_of_all_descriptions() -> None:
    named = {number for row in ROWS for number in re.findall(r"\b00\d\b", row[0])}
    assert named == {"000", "001", "002", "003", "004"}
