"""The reference page of facts and checks, made from their own words: `python -m tools.pages`.

A test holds that `docs/checks.md` is what this makes.
"""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.analysis.sources.origins import ORIGINS
from harness.analysis.tables.schemas import PROBLEMS, TABLES, TORN
from harness.contracts import registry
from harness.contracts.checks import Check, Sliced, allowances

PAGE = Path("docs/checks.md")
TESTS = Path("tests/checks")
_HEAD = """\
# Checks and facts

Made from the code by `python -m tools.pages`; do not edit. Each check is one file, one promise, and one
test file of the same name. Where a fact that it needs is empty, or something it assumes does not hold, it answers
UNKNOWN with the reason. [judging.md](judging.md) says which evidence gives which promise its facts."""
_QUALITY = """\
## Quality of the evidence

What is wrong with evidence is a fact too, `evidence`; whoever reads an answer sees it first. A check that finds nothing
in evidence with holes answers UNKNOWN with the remark as its reason, and so does one that holes could mislead."""

_SLICES = """\
## Large histories

Where facts are too many for one task, these checks look at slices of `sends`, `polls` and `replica_records`: blocks of
64 offsets in which sends, readers and replicas all tell the same are left out, but for those beside others and at the
ends of a partition. Whatever was compacted is not sliced, nor is a history with a tenth of its rows in other blocks
([decision 0083](decisions/0083-what-all-sources-tell-alike-is-set-aside.md))."""


def page() -> str:
    """Return the page as Markdown."""
    checks = in_order(map(registry.check, registry.names(registry.Kind.CHECK)))
    return (
        "\n".join(
            [
                _HEAD,
                "",
                *_promises(checks),
                "",
                *_allowances(checks),
                "",
                *_quality(),
                "",
                *_sliced(checks),
                "",
                *_facts(),
            ]
        )
        + "\n"
    )


def in_order(checks: Iterable[Check]) -> list[Check]:
    """Return checks as pages list them: by their numbers, then the anomalies of clients."""
    return sorted(checks, key=lambda check: _order(check.name))


def _promises(checks: Iterable[Check]) -> Iterator[str]:
    """The map: promise, facts, check, tests, expectations."""
    by_fact = _suites()
    yield "## Promises"
    yield ""
    yield "Suites of Great Expectations look at the same facts, a table each; one on findings, at what all checks say."
    yield ""
    yield "| check | promise | UNKNOWN without | file | tests | suites |"
    yield "|---|---|---|---|---|---|"
    for check in checks:
        file = Path(inspect.getfile(type(check))).name
        needs = ", ".join(f"[`{name}`](#{name})" for name in check.needs)
        suites = ", ".join(f"`{suite}`" for name in check.needs for suite in by_fact.get(name, ()))
        code, test = f"[{file}](../plugins/kafka_chaos/checks/{file})", f"[test_{file}](../{TESTS}/test_{file})"
        yield f"| {check.title} | {check.promise} | {needs} | {code} | {test} | {suites} |"


def _suites() -> dict[str, list[str]]:
    """Return the names of suites by the tables that they are about."""
    names: dict[str, list[str]] = {}
    for suite in registry.import_module("expectations.suites").SUITES:
        names.setdefault(suite.table, []).append(suite.name)
    return names


def _quality() -> Iterator[str]:
    yield _QUALITY
    yield ""
    yield "| problem | means | forbids a PASS |"
    yield "|---|---|---|"
    for problem, about in PROBLEMS.items():
        yield f"| {problem} | {about} | {'' if problem == TORN else 'yes'} |"


def _allowances(checks: Iterable[Check]) -> Iterator[str]:
    yield "## What is expected"
    yield ""
    yield "An anomaly is counted and shown, and fails no run, where all conditions of a row hold."
    yield ""
    yield "| anomaly | acks | needs an allowed unclean election | needs a power loss | needs no idempotence | because |"
    yield "|---|---|---|---|---|---|"
    for check in checks:
        for each in allowances(check):
            acks = ", ".join(map(str, sorted(each.acks))) if each.acks is not None else ""
            flags = (each.unclean_election, each.power_loss, each.without_idempotence)
            yield f"| {' | '.join((check.title, acks, *('yes' if flag else '' for flag in flags), each.reason))} |"


def _sliced(checks: Iterable[Check]) -> Iterator[str]:
    yield _SLICES
    yield ""
    yield "| check | finds the same in a slice, because |"
    yield "|---|---|"
    for check in checks:
        if isinstance(check, Sliced):
            yield f"| {check.title} | {check.sliced} |"


def _facts() -> Iterator[str]:
    yield "## Facts"
    for table in TABLES.values():
        yield ""
        yield f"### `{table.name}`"
        yield ""
        yield f"One row: {table.row}."
        yield ""
        yield f"From {'; '.join(f'{_fields_of(kind)} ({lines})' for kind, lines in ORIGINS[table.name].items())}."
        yield ""
        yield "| column | type | holds |"
        yield "|---|---|---|"
        for column in table.columns:
            yield f"| `{column.name}` | {column.type} | {column.about} |"


def _fields_of(evidence: str) -> str:
    """Return a link from a kind of evidence to what its lines hold."""
    return f"[{evidence}](judging.md#--{evidence.replace('_', '-')})"


def _order(name: str) -> tuple[bool, int, str]:
    """Numbered checks by their numbers, then the anomalies of clients."""
    numbered = name.startswith("I") and name[1:].isdigit()
    return (not numbered, int(name[1:]) if numbered else 0, name)
