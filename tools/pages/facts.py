"""The reference of facts: tables, their columns and the evidence that they are made of."""

from collections.abc import Iterator

from harness.analysis.sources.lineage import LINEAGE
from harness.analysis.tables.schemas import TABLES
from harness.analysis.tables.table import Table
from tools.pages.page import NOTE, Page, table

_HEAD = f"""\
# Facts

{NOTE}

A fact is a typed table that judging derives from [evidence](evidence.md). Checks and expectations read facts; `chaos
sql RUN 'select * from sends'` queries them. Each row has a `run_id`, the name of the run's folder."""
_RUN = "run_id"


def text() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_tables()]) + "\n"


def _tables() -> Iterator[str]:
    yield ""
    yield from table(("fact", "one row", "made from", "columns"), map(_row, TABLES.values()))


def _row(fact: Table) -> tuple[str, ...]:
    origins = (f"[{kind}](evidence.md#{_anchor(kind)}): {lines}" for kind, lines in LINEAGE[fact.name].items())
    columns = (f"`{column.name}` {column.type}: {column.about}" for column in fact.columns if column.name != _RUN)
    return f'<a id="{fact.name}"></a>`{fact.name}`', fact.row, "<br>".join(origins), "<br>".join(columns)


def _anchor(kind: str) -> str:
    return kind.replace("_", "-")


PAGES = (Page(path="docs/reference/facts.md", text=text),)
