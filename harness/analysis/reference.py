"""The reference page of facts and checks, made from their own words: `python -m harness.analysis.reference`.

A test holds that `docs/checks.md` is what this makes.
"""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness import registry
from harness.analysis.allowances import ALLOWANCES
from harness.analysis.schemas import TABLES
from harness.checks import Check

PAGE = Path("docs/checks.md")
_HEAD = """\
# Checks and facts

Made from the code by `python -m harness.analysis.reference`; do not edit. Each check is one file, one promise, and one
test file of the same name in `tests/checks/`. Where a fact that it needs is empty, or something it assumes does not
hold, it answers UNKNOWN with the reason."""


def page() -> str:
    """Return the page as Markdown."""
    checks = in_order(map(registry.check, registry.names(registry.Kind.CHECK)))
    return "\n".join([_HEAD, "", *_promises(checks), "", *_allowances(), "", *_facts()]) + "\n"


def in_order(checks: Iterable[Check]) -> list[Check]:
    """Return checks as pages list them: by their numbers, then the anomalies of clients."""
    return sorted(checks, key=lambda check: _order(check.name))


def _promises(checks: Iterable[Check]) -> Iterator[str]:
    yield "## Promises"
    yield ""
    yield "| check | promise | UNKNOWN without | file |"
    yield "|---|---|---|---|"
    for check in checks:
        file = Path(inspect.getfile(type(check))).name
        needs = ", ".join(f"`{name}`" for name in check.needs)
        yield f"| {check.name} | {check.promise} | {needs} | [{file}](../plugins/kafka_chaos/checks/{file}) |"


def _allowances() -> Iterator[str]:
    yield "## What is expected"
    yield ""
    yield "An anomaly is counted and shown, and fails no run, where all conditions of a row hold."
    yield ""
    yield "| anomaly | acks | needs an allowed unclean election | needs a power loss | needs no idempotence | because |"
    yield "|---|---|---|---|---|---|"
    for each in ALLOWANCES:
        acks = ", ".join(map(str, sorted(each.acks))) if each.acks is not None else ""
        flags = (each.unclean_election, each.power_loss, each.without_idempotence)
        yield f"| {each.anomaly} | {acks} | {' | '.join('yes' if flag else '' for flag in flags)} | {each.reason} |"


def _facts() -> Iterator[str]:
    yield "## Facts"
    for table in TABLES.values():
        yield ""
        yield f"### `{table.name}`"
        yield ""
        yield f"One row: {table.row}."
        yield ""
        yield "| column | type | holds |"
        yield "|---|---|---|"
        for column in table.columns:
            yield f"| `{column.name}` | {column.type} | {column.about} |"


def _order(name: str) -> tuple[bool, int, str]:
    """Numbered checks by their numbers, then the anomalies of clients."""
    numbered = name.startswith("I") and name[1:].isdigit()
    return (not numbered, int(name[1:]) if numbered else 0, name)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
