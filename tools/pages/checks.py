"""The reference of checks: promises, expected anomalies, quality of evidence, slices."""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.analysis.tables.schemas import PROBLEMS, TORN
from harness.contracts import registry
from harness.contracts.checks import Check
from harness.model.subjects import RULES
from harness.system.plugins import OWN
from tools.pages.page import NOTE, Page, table

_HEAD = f"""\
# Checks

{NOTE}

Each check is one file, one promise, and one test file of the same name. A check answers UNKNOWN, with the reason, if a
[fact](facts.md) that it needs has no rows or if an assumption does not hold."""
_QUALITY = """\
## Quality of the evidence

Defects in the evidence are recorded in the table `evidence`, and the report shows them first. A check that finds no
violation in evidence with holes answers UNKNOWN with the defect as its reason; so does a check that holes could
mislead."""
_STEPS = """\
## Rules of the steps

The check step-by-step walks the log of each broker and ZooKeeper's history by the rules of `harness/model/`. A rule is
silent where the logs of a run leave out a kind of line that it needs, and where lines before the step are missing."""
_SLICES = """\
## Large histories

If facts are too large for one task, these checks read slices of `sends`, `polls` and `replica_records`: blocks of 64
offsets on which sends, readers and replicas agree are skipped, except next to other blocks and at the ends of a
partition. Compacted topics are not prefiltered, nor is a history with a tenth of its rows in blocks that stay
([decision 0083](../decisions/0083-what-all-sources-tell-alike-is-set-aside.md))."""


def text() -> str:
    """Return the page as Markdown."""
    checks = in_order(map(registry.check, registry.names(registry.Kind.CHECK)))
    parts = [
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
        *_steps(),
    ]
    return "\n".join(parts) + "\n"


def in_order(checks: Iterable[Check]) -> list[Check]:
    """Return checks as pages list them: by number, then the anomalies of clients."""
    return sorted(checks, key=lambda check: _order(check.name))


def _order(name: str) -> tuple[bool, int, str]:
    numbered = name.startswith("I") and name[1:].isdigit()
    return (not numbered, int(name[1:]) if numbered else 0, name)


def _promises(checks: Iterable[Check]) -> Iterator[str]:
    by_fact = _suites()
    yield "## Promises"
    yield ""
    yield "Files of expectations (last column) judge the same facts; one more judges the findings of all checks."
    yield ""
    head = ("check", "promise", "UNKNOWN without", "file, tests", "expectations")
    yield from table(head, (_promise(check, by_fact) for check in checks))


def _promise(check: Check, by_fact: dict[str, list[str]]) -> tuple[str, ...]:
    file = Path(inspect.getfile(type(check))).name
    needs = ", ".join(f"[`{name}`](facts.md#{name})" for name in check.needs)
    suites = ", ".join(f"`{suite}`" for name in check.needs for suite in by_fact.get(name, ()))
    provider = registry.provider_of(registry.Kind.CHECK, check.name)
    code = f"[{file}](../../plugins/kafka_chaos/checks/{file}), [tests](../../tests/checks/test_{file})"
    code = code if provider.name == OWN else str(provider)
    return check.title, check.promise, needs, code, suites


def _suites() -> dict[str, list[str]]:
    """Return the names of files of expectations by the tables that they judge."""
    names: dict[str, list[str]] = {}
    for suite in registry.import_module("expectations.suites").SUITES:
        names.setdefault(suite.table, []).append(suite.name)
    return names


def _quality() -> Iterator[str]:
    yield _QUALITY
    yield ""
    rows = ((problem, about, "" if problem == TORN else "yes") for problem, about in PROBLEMS.items())
    yield from table(("defect", "means", "forbids PASS"), rows)


def _allowances(checks: Iterable[Check]) -> Iterator[str]:
    yield "## What is expected"
    yield ""
    yield "An anomaly is counted, shown as *expected*, and fails no run if all conditions of one row hold."
    yield ""
    head = ("anomaly", "acks", "needs an allowed unclean election", "needs a power loss", "needs no idempotence", "why")
    yield from table(head, _allowed(checks))


def _allowed(checks: Iterable[Check]) -> Iterator[tuple[str, ...]]:
    for check in checks:
        for each in check.excused_by:
            acks = ", ".join(map(str, sorted(each.acks))) if each.acks is not None else ""
            flags = (each.unclean_election, each.power_loss, each.without_idempotence)
            yield check.title, acks, *("yes" if flag else "" for flag in flags), each.reason


def _sliced(checks: Iterable[Check]) -> Iterator[str]:
    yield _SLICES
    yield ""
    rows = ((check.title, check.prefiltered) for check in checks if check.prefiltered)
    yield from table(("check", "finds the same in a slice, because"), rows)


def _steps() -> Iterator[str]:
    yield _STEPS
    yield ""
    rows = ((f"`{rule.id}`", rule.sentence, rule.source, rule.needs and f"`{rule.needs}`") for rule in RULES)
    yield from table(("rule", "what holds", "source", "needs"), rows)


PAGES = (Page(path="docs/reference/checks.md", text=text),)
