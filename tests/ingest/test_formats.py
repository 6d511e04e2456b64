"""What others are told about lines is what the harness itself writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.ingest.formats import Format, formats
from tests.analysis.run_folders import write_intact_run

SCHEMA = Path(__file__).parents[2] / "docs/reference/evidence.schema.json"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Every line of an intact run, by the kind of its file."""
    files = write_intact_run(tmp_path_factory.mktemp("runs") / "intact").evidence()
    return {
        kind: [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
        for kind, paths in files.items()
    }


@pytest.mark.parametrize("form", formats().values(), ids=formats())
def test_what_the_harness_writes_fits(form: Format, lines: dict[str, list[dict[str, Any]]]) -> None:
    kinds = {kind.name: kind for kind in form.lines}
    for line in lines[form.kind]:
        kind = kinds[line[form.kind_field] if form.kind_field else ""]
        assert line.keys() <= {field.name for field in kind.fields}
        assert set(kind.required) <= line.keys()
        for name, choices in form.choices.items():
            assert line[name] in choices


@pytest.mark.parametrize("form", formats().values(), ids=formats())
def test_what_the_harness_writes_fits_the_schema(form: Format, lines: dict[str, list[dict[str, Any]]]) -> None:
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for line in lines[form.kind]:
        name = f"{form.kind}.{line[form.kind_field]}" if form.kind_field else form.kind
        validator = Draft202012Validator({**definitions, "$ref": f"#/$defs/{name}"})
        assert [error.message for error in validator.iter_errors(line)] == []


@pytest.mark.parametrize("form", formats().values(), ids=formats())
def test_what_must_be_there_has_no_default_and_what_need_not_is_explained(form: Format) -> None:
    for line in form.lines:
        assert line.about
        assert len({field.name for field in line.fields}) == len(line.fields)
        assert not [field.name for field in line.fields if field.required and field.default is not None]


def test_an_operation_must_say_what_its_kind_is_about() -> None:
    required = {line.name: set(line.required) for line in formats()["operations"].lines}
    always = {"index", "time_ns", "process", "type", "kind"}
    assert required["poll"] == always
    assert required["send"] == always | {"topic", "value"}
    assert required["commit"] == always | {"topic", "partition", "group", "offset"}
