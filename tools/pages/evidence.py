"""The reference of evidence: formats of recorded histories as a page, and field by field as a JSON Schema."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from harness.analysis.sources.lineage import FACT_EVENTS
from harness.ingest.expansion import ALWAYS_BYTES, ALWAYS_VALUES, EXPANSION
from harness.ingest.formats import LINKS, Field, Format, LineKind, formats, nested
from harness.ingest.settings import AllowedSettings
from harness.system.chain import all_chained
from tools.pages.page import NOTE, ROOT, Page, table

EXAMPLE = "docs/examples/lost-write"
COMMAND = (
    f"chaos judge --operations {EXAMPLE}/operations.jsonl --settings {EXAMPLE}/settings.yaml "
    "--check lost-write --check phantom --check I9 --into judged/example"
)
SCHEMA = "docs/reference/evidence.schema.json"
_HEAD = f"""\
# Evidence

{NOTE}

The formats that `chaos judge` reads and that every run folder contains.
[Judge a history](../how-to/judge-a-history.md) says how to use them. All fields of all kinds of lines are in
[evidence.schema.json](evidence.schema.json), a JSON Schema (draft 2020-12) with one definition for each kind."""
_READING = f"""\
## Reading

- Files are JSON Lines (`.jsonl`, `.ndjson`, `.json`; also `.gz`, `.bz2`, `.zst`) or Parquet with the same fields as
  columns. Whole numbers may have any width; an object without a fixed type (`parameters`, `result`) is JSON text.
- A line with a missing field, an unknown key, a wrong type or an unknown word is not evidence. The answer names the
  file and the first such line, and checks that read this kind of evidence answer UNKNOWN instead of PASS. The same
  holds for gaps in numbers and for lines that occur twice.
- A torn last line, as a killed process leaves it, is reported and costs no answer.
- Parquet with other columns, empty or missing files, and other formats are refused before judging.
- A file may unpack to {EXPANSION} times its size; {ALWAYS_BYTES >> 20} MiB and {ALWAYS_VALUES:,} values of a column are
  always allowed. `--expansion` raises the limit."""
_STATED = """\
In lines of the history (kind `setting` of [operations](#operations)), in a YAML file (`--settings`) or one by one
(`--set min_insync_replicas=2`). An option overrides the file, the file overrides the history, and a remark states what
was overridden. If lines of the history differ, the most lenient value applies. Kafka's names of these settings, such as
`enable.idempotence`, are accepted. A setting that is not stated is taken at its strictest. A check that would
answer otherwise with its most lenient value answers UNKNOWN and names the `--set` that decides."""
_CHAINED = """\
## Chained lines

Lines of every kind except dumps of replicas may end with two more fields. A writer that finished ends its file with a
line that counts its lines. These fields and that line contain no spaces, there are no blank lines, and each line ends
with one newline:"""
_CHAINED_USE = """\
The first chain of a writer begins with 0, every other one with the chain before it. A JSON Lines file with such a line
near its beginning is verified. If a line was deleted, doubled, joined, moved or changed, the answer names the line, and
checks that read this kind of evidence answer UNKNOWN whatever they found. An `operations`, `zookeeper`, `journal` or
`liveness` file without its last line may be incomplete: it forbids PASS. One writer may follow another in a file.
Files without chains, and Parquet tables, are read as they are."""
_CHANGES = (b'{"zxid":7}\n', b'{"zxid":9}\n')
_JSON_TYPES = {
    "whole number": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "true or false": {"type": "boolean"},
    "object": {"type": "object"},
}


def text() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD, "", *_example(), "", _READING, "", *_settings(), "", *_chained(), *_formats()]
    return "\n".join(parts) + "\n"


def _example() -> Iterator[str]:
    yield "## Example"
    for name in ("operations.jsonl", "settings.yaml"):
        yield ""
        yield f"[`{name}`](../{EXAMPLE.removeprefix('docs/')}/{name}):"
        yield ""
        yield "```"
        yield (ROOT / EXAMPLE / name).read_text(encoding="utf-8").rstrip()
        yield "```"
    yield ""
    yield "```"
    yield f"$ {COMMAND}"
    yield (ROOT / EXAMPLE / "output.txt").read_text(encoding="utf-8").rstrip()
    yield "```"


def _settings() -> Iterator[str]:
    yield "## Settings"
    yield ""
    yield _STATED
    yield ""
    rows = (
        (f"`{name}`", AllowedSettings().text(name), field.description or "")
        for name, field in AllowedSettings.model_fields.items()
    )
    yield from table(("setting", "strictest", "means"), rows)


def _chained() -> Iterator[str]:
    yield _CHAINED
    yield ""
    yield "```"
    yield b"".join(all_chained(_CHANGES)).decode().rstrip()
    yield "```"
    yield ""
    yield from table(("field", "type", "means"), ((f"`{each.name}`", each.type, each.about) for each in LINKS))
    yield ""
    yield _CHAINED_USE


def _formats() -> Iterator[str]:
    for form in formats().values():
        yield ""
        yield f"## {form.option.removeprefix('--')}"
        yield ""
        yield f"`{form.option}`: {form.about}"
        yield ""
        yield from _kinds(form) if form.kind_field == "ev" else _together(form)


def _together(form: Format) -> Iterator[str]:
    """Yield the kinds of lines, and one table of all fields, because kinds share most of them."""
    if form.kind_field:
        yield from table((f"`{form.kind_field}`", "is"), ((f"`{line.name}`", line.about) for line in form.lines))
        yield ""
    fields = {field.name: field for line in form.lines for field in line.fields}
    needed = {name: [line.name for line in form.lines if name in line.required] for name in fields}
    must = {
        name: "yes" if len(lines) == len(form.lines) else ", ".join(f"`{line}`" for line in lines)
        for name, lines in needed.items()
    }
    yield from _table(fields.values(), must)


def _kinds(form: Format) -> Iterator[str]:
    """Yield the fields that all lines share, and the kinds that facts are made of; the schema has their fields."""
    kinds = {kind.ev for kind in FACT_EVENTS}
    yield from _table(_shared(form), {field.name: "yes" if field.required else "" for field in _shared(form)})
    yield ""
    yield f"[The schema]({SCHEMA.rpartition('/')[2]}) has the fields of each kind, as `{form.kind}.KIND`."
    yield ""
    used = (line for line in form.lines if line.name in kinds)
    yield from table(("`ev`", "is"), ((f"`{line.name}`", line.about) for line in used))
    yield ""
    others = ", ".join(f"`{line.name}`" for line in form.lines if line.name not in kinds)
    yield f"These kinds are accepted, and no fact is made of them: {others}."


def _shared(form: Format) -> tuple[Field, ...]:
    fields = form.lines[0].fields
    return fields[: next(number for number, field in enumerate(fields) if field.name == "ev") + 1]


def _table(fields: Iterable[Field], must: dict[str, str]) -> Iterator[str]:
    yield from table(("field", "type", "required", "default", "means"), (_row(field, must) for field in fields))


def _row(field: Field, must: dict[str, str]) -> tuple[str, ...]:
    default = "" if field.default is None else f"`{field.default}`" if field.default != "" else "empty"
    choices = field.choices if field.name != "ev" else ()
    one_of = f"One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    about = " ".join(part for part in (field.about, one_of) if part)
    return f"`{field.name}`", field.type, must[field.name], default, about


def schema() -> str:
    """Return the JSON Schema of every kind of line, as text."""
    kinds = {_key(form, line): _object(line.fields, form) for form in formats().values() for line in form.lines}
    objects = {word: _object(fields) for word, fields in nested().items()}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Evidence of the Kafka chaos harness",
        "description": "One definition for each kind of line; see docs/reference/evidence.md.",
    }
    definitions = ",\n".join(f"  {_text(key)}: {_text(value)}" for key, value in {**kinds, **objects}.items())
    return f'{_text(head)[:-1]}, "$defs": {{\n{definitions}\n}}}}\n'


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(form: Format, line: LineKind) -> str:
    return f"{form.kind}.{line.name}" if line.name else form.kind


def _object(fields: Iterable[Field], form: Format | None = None) -> dict[str, Any]:
    """Return the schema of one line or of one object within a line."""
    fields = tuple(fields)
    links = LINKS if form is not None and form.chained else ()
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in (*fields, *links)},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _property(field: Field) -> dict[str, Any]:
    default = {} if field.default is None else {"default": field.default}
    choices = {"enum": list(field.choices)} if field.choices else {}
    about = {"description": field.about} if field.about else {}
    return _type(field.type) | choices | default | about


def _type(words: str) -> dict[str, Any]:
    """Return the schema of a type that is given in words."""
    if words.endswith(", or null"):
        return {"anyOf": [_type(words.removesuffix(", or null")), {"type": "null"}]}
    if pairs := re.fullmatch(r"list of pairs of (.+)", words):
        pair = {"type": "array", "items": _item(pairs[1]), "minItems": 2, "maxItems": 2}
        return {"type": "array", "items": pair}
    if items := re.fullmatch(r"list of (.+)", words):
        return {"type": "array", "items": _item(items[1])}
    return _JSON_TYPES.get(words) or {"$ref": f"#/$defs/{words.replace(' ', '%20')}"}


def _item(plural: str) -> dict[str, Any]:
    return _type(plural.removesuffix("s"))


PAGES = (Page(path="docs/reference/evidence.md", text=text), Page(path=SCHEMA, text=schema))
