"""What the documents say of the code is there: links, paths, modules, targets of make, names of checks, tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {"docs/broker-mutants.md", "docs/checks.md", "docs/faults.md", "docs/judging.md", "docs/settings.md"}
"""Tested against what makes them; their paths are tested here too, and their words are the code's."""
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

DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
}
WRITTEN = sorted(DOCUMENTS.keys() - GENERATED)
DECISIONS = sorted(name for name in DOCUMENTS if re.match(r"docs/decisions/\d{4}-", name))

TABLE = DOCUMENTS["docs/kafka-systems.md"]
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
    checks = (path.read_text(encoding="utf-8") for path in (ROOT / "plugins/kafka_chaos/checks").glob("i[0-9]*.py"))
    titles = {title for check in checks for title in TITLE.findall(check)}
    prose = INLINE_CODE.sub("", FENCED.sub("", re.sub(r"^ {4}.*$", "", DOCUMENTS[name], flags=re.MULTILINE)))
    assert set(CHECK.findall(" ".join(prose.split()))) - titles == set()


def test_the_architecture_is_short() -> None:
    assert len(DOCUMENTS["ARCHITECTURE.md"].splitlines()) <= ARCHITECTURE_LINES


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_is_short_and_has_its_parts(name: str) -> None:
    text = DOCUMENTS[name]
    assert len(text.splitlines()) <= DECISION_LINES
    assert re.match(r"# \d{4} .+\n\nStatus: .+\n\n## Context\n", text)
    assert "\n## Decision\n" in text


def test_the_index_names_every_decision_once_with_its_title() -> None:
    titles = [DOCUMENTS[name].partition("\n")[0].removeprefix("# ").partition(" ") for name in DECISIONS]
    expected = [
        f"- [{number}]({Path(name).name}) {title}" for name, (number, _, title) in zip(DECISIONS, titles, strict=True)
    ]
    assert (
        sorted(line for line in DOCUMENTS["docs/decisions/README.md"].splitlines() if line.startswith("- ")) == expected
    )


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_system_names_its_code_and_a_test_that_exists(row: list[str]) -> None:
    _, code, proof = row
    targets = [target for _, target in LINK.findall(code)]
    assert targets
    assert all(target.startswith("../harness/") for target in targets)
    ((sentence, file),) = LINK.findall(proof)
    assert file.startswith("../tests/")
    assert f"def test_{sentence.replace(' ', '_')}(" in (ROOT / "docs" / file).read_text(encoding="utf-8")


def test_the_table_has_the_systems_of_all_descriptions() -> None:
    named = {number for row in ROWS for number in re.findall(r"\b00\d\b", row[0])}
    assert named == {"000", "001", "002", "003", "004"}
