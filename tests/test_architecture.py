"""What ARCHITECTURE.md says of the code is there: every link, and every test that is to show a system."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[([^]]+)]\(([^)]+)\)")
TABLE = TEXT.partition("## Kafka's systems")[2].partition("\n## ")[0]
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| ")][1:]


def test_every_link_leads_somewhere() -> None:
    targets = [target for _, target in LINK.findall(TEXT) if "://" not in target]
    assert [target for target in targets if not (ROOT / target).exists()] == []
    assert len(targets) > 2 * len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_system_names_its_code_and_a_test_that_exists(row: list[str]) -> None:
    _, code, proof = row
    assert all(target.startswith("harness/") for _, target in LINK.findall(code))
    ((said, file),) = LINK.findall(proof)
    assert file.startswith("tests/")
    assert f"def test_{said.replace(' ', '_')}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_table_has_the_systems_of_all_descriptions() -> None:
    named = {number for row in ROWS for number in re.findall(r"\b00\d\b", row[0])}
    assert named == {"000", "001", "002", "003", "004"}
