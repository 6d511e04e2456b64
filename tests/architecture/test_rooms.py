"""The house is as it is drawn: every room on its floor, no import up, few files at the top."""

from pathlib import Path

import pytest

from tools.pages.rooms import ROOT, Imports, floors, upward

MOST_AT_THE_TOP = 8


@pytest.fixture(scope="module")
def imports() -> Imports:
    return Imports()


def test_every_room_has_its_floor(imports: Imports) -> None:
    assert {room for floor in floors() for room in floor} == imports.rooms


def test_no_import_leads_up_or_stays_on_its_floor_not_even_for_a_type(imports: Imports) -> None:
    assert upward(imports) == []


@pytest.mark.parametrize("room", ["harness", "harness/broker"])
def test_few_files_lie_loose_at_the_top(room: str) -> None:
    loose = sorted(path.name for path in Path(ROOT, room).glob("*.py") if path.name != "__init__.py")
    assert len(loose) <= MOST_AT_THE_TOP, loose
