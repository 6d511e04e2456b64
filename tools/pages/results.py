"""The pages of results: performance and track record, from results/*.json, with plots over time."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache, partial
from pathlib import Path

from harness.analysis.sources.lineage import LINEAGE
from harness.contracts import registry
from tools.broker_mutants.battery import SCENARIOS
from tools.pages.page import NOTE, Page, table
from tools.pages.plot import Series, svg
from tools.results.rows import AREAS, BUGS, CAMPAIGNS, FIGURES, MEASUREMENTS, Row, load

FOLDER = "docs/results"
_PERFORMANCE = f"""\
# Performance

{NOTE}

The latest value of each figure, beside its aim and its peer. The history of every figure, with commit, load and
command, is in `results/measurements.json`. All values are from one machine with two cores; *load* is its load average.
Values under load compare only within one run, so CPU seconds are given where the machine was busy.

To add a measurement: `python -m benchmarks.broker --record` (also `judging --typed`, `schedules`, `sweep`), or
`python -m tools.results tests artifacts/test.xml` after `make test`, then `make pages`. A command marked *until
f058d1f9* is in that commit. In plots the line is this project, a ring is the peer, and the dashed line is the aim."""
_RECORD = f"""\
# Track record

{NOTE}

What the harness has found, and what it has not accused. Sources: `results/bugs.json` and `results/campaigns.json`. To
add a row: `python -m tools.results campaign FOLDER…` for runs of one scenario or for a sweep, `python -m tools.results
bug ID RUN…` for runs that should show a known bug, then `make pages`. [Checks](../reference/checks.md) has the promise
of each check."""
_PUBLISHED = "Each was found in a release that has it, on real processes: `chaos run SCENARIO --system kafka:RELEASE`."
_PLANTED = """\
A planted bug is one guard of the built-in broker that is switched off (`chaos list planted-bugs`). *Schedules* is how
many a sweep takes until the first finding, with three brokers in virtual time. `tests/sweep/test_planted_bugs.py` runs
each of these sweeps, some with other settings, and the same schedules without the bug, which must hold. It also names
the planted bugs that no sweep finds yet, with the reasons. *Battery* is the first schedule of the [standing
battery](broker-mutants.md), which was written for no bug, that finds it: `python -m tools.broker_mutants.planted BUG`
measures it. Where it was not measured, the cell says whether the scenario is one of the battery, or is empty. *Real* is
the argument of `chaos run` that finds it on real processes too."""
_STANDING = frozenset(Path(name).name for name in SCENARIOS)
"""The scenarios of the standing battery, by the names of their files."""
_SWEEPS = """\
Schedules of the built-in broker in virtual time, without a planted bug. A note says what a violation was: a mistake of
the broker, or of a check."""
_RUNS = "Runs on real clusters, unless the driver says otherwise. A failure by the harness itself is named in the note."


def performance() -> str:
    """Return the page of performance as Markdown."""
    return "\n".join([_PERFORMANCE, *_areas()]) + "\n"


def _areas() -> Iterator[str]:
    for area in load(AREAS):
        yield ""
        yield f"## {area['title']}"
        yield ""
        yield area["about"]
        yield ""
        head = ("figure", "latest", "date, load", "aim", "peer", "ratio", "command (as above where empty)")
        yield from table(head, _once(map(_latest, _measured(area["id"]))))
        if _series(area["id"]):
            yield ""
            yield f"![{area['title']} over time](performance-{area['id']}.svg)"
        if area["limit"]:
            yield ""
            yield f"**Limits.** {area['limit']}"


def _once(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield rows whose last cell is empty where it is that of the row before."""
    before = ""
    for row in rows:
        yield row if row[-1] != before else (*row[:-1], "")
        before = row[-1]


def _measured(area: str) -> list[Row]:
    """Return the figures of an area that were measured at least once."""
    return [figure for figure in load(FIGURES) if figure["area"] == area and _rows(figure["id"])]


@cache
def _rows(figure: str) -> tuple[Row, ...]:
    """Return the measurements of a figure, the oldest first."""
    return tuple(row for row in load(MEASUREMENTS) if figure in row["figures"])


def _latest(figure: Row) -> tuple[str, ...]:
    name, row = figure["id"], _rows(figure["id"])[-1]
    value = row["figures"][name]
    beside = [each for each in _rows(name) if name in each.get("peers", {})]
    peer, ratio = "", ""
    if beside:
        paired = beside[-1]
        theirs = paired["peers"][name]
        when = "" if paired is row else f" ({paired['date']})"
        peer, ratio = f"{figure['peer']}: {theirs:,g}{when}", f"{paired['figures'][name] / theirs:.2g}"
    return (
        figure["title"],
        f"{value:,g} {figure['unit']}",
        f"{row['date']}, {row['load']}",
        _aim(figure, value, ratio),
        peer,
        ratio,
        _command(figure["command"]),
    )


def _command(words: str) -> str:
    """Return a command as code; what says until which commit it is there stays outside."""
    command, until, commit = words.partition(" (until ")
    return f"`{command}`{until}{commit}"


def _aim(figure: Row, value: float, ratio: str) -> str:
    """Return the aim and whether the latest value reaches it."""
    if "aim" in figure:
        aim, reached, words = figure["aim"], value, f"{figure['aim']:,g} {figure['unit']}"
    elif "aim_ratio" in figure and ratio:
        aim, reached, words = figure["aim_ratio"], float(ratio), f"ratio {figure['aim_ratio']:g}"
    else:
        return ""
    met = reached >= aim if figure["better"] == "more" else reached <= aim
    return f"{words}: {'met' if met else '**missed**'}"


def _series(area: str) -> Sequence[Series]:
    """Return the figures of an area that were measured twice or beside a peer."""
    series = []
    for figure in _measured(area):
        name, rows = figure["id"], _rows(figure["id"])
        peers = [(_day(row), row["peers"][name]) for row in rows if name in row.get("peers", {})]
        if len(rows) > 1:
            points = [(_day(row), row["figures"][name]) for row in rows]
            title, unit = figure["title"], figure["unit"]
            series.append(Series(title=title, unit=unit, points=points, peer=peers, aim=figure.get("aim")))
    return series


def _day(row: Row) -> date:
    return date.fromisoformat(row["date"])


def _plot(area: str) -> str:
    return svg(_series(area))


def track_record() -> str:
    """Return the page of the track record as Markdown."""
    return "\n".join([_RECORD, *_bugs(), *_campaigns()]) + "\n"


def _bugs() -> Iterator[str]:
    kinds: dict[str, list[Row]] = {}
    for bug in load(BUGS):
        kinds.setdefault(bug["kind"], []).append(bug)
    yield from _section("Published bugs of Apache Kafka", _PUBLISHED)
    head: tuple[str, ...] = (
        "bug",
        "scenario",
        "release",
        "found by",
        "found in runs",
        "not in",
        "last confirmed",
        "note",
    )
    yield from table(head, map(_published, kinds.pop("published")))
    yield from _section("Planted bugs", _PLANTED)
    head = ("planted bug", "sweep of", "found by", "by clients' evidence alone", "schedules", "battery", "real")
    head = (*head, "last confirmed")
    yield from table(head, map(_planted, kinds.pop("planted")))
    yield from _section(
        "Other findings", "In Apache Kafka, in the built-in broker, in Kafka's protocol, and in client libraries."
    )
    others = (_other(bug) for rows in kinds.values() for bug in rows)
    yield from table(("finding", "where", "found by", "scenario", "how often", "note"), others)


def _section(title: str, about: str) -> Iterator[str]:
    yield from ("", f"## {title}", "", about, "")


def _published(bug: Row) -> tuple[str, ...]:
    return (
        f"[{bug['id'].upper()}]({bug['url']}): {bug['title']}",
        f"`{bug['scenario']}`",
        bug["release"],
        ", ".join(bug["found_by"]),
        f"{bug['found']} of {bug['of']}",
        bug["absent_in"],
        bug["last_confirmed"],
        bug["note"],
    )


def _planted(bug: Row) -> tuple[str, ...]:
    real = f"`{bug['real']}`" if "real" in bug else ""
    found_by = ", ".join(bug["found_by"])
    alone = ", ".join(check for check in bug["found_by"] if _of_clients(check.partition(" ")[0]))
    named = f"`{bug['id']}`", f"`{bug['scenario']}`"
    return *named, found_by, alone, str(bug["schedules"]), _by_battery(bug), real, bug["last_confirmed"]


def _by_battery(bug: Row) -> str:
    """Return which schedule of the standing battery finds a planted bug first, as far as it is known."""
    standing = bug.get("battery")
    if standing is None:
        return "its scenario" if Path(bug["scenario"]).name in _STANDING else ""
    schedules = str(standing["schedules"])
    return schedules if standing["found_by"] else f"not in {schedules}, only by its scenario"


def _of_clients(check: str) -> bool:
    """Return whether a check, by its name, needs what clients did and nothing else."""
    return all(LINEAGE[fact].keys() == {"operations"} for fact in registry.check(check).needs)


def _other(bug: Row) -> tuple[str, ...]:
    where = {
        "kafka": "Apache Kafka",
        "own": "built-in broker",
        "protocol": "Kafka's protocol",
        "client": "client library",
    }[bug["kind"]]
    title = f"[{bug['title']}]({bug['url']})" if bug.get("url") else bug["title"]
    often = f"{bug['found']:,} of {bug['of']:,}" if "of" in bug else ""
    mended = f"fixed in {bug['mended_in']}" if "mended_in" in bug else ""
    return (
        title,
        where,
        ", ".join(bug["found_by"]),
        f"`{bug['scenario']}`" if bug["scenario"] else "",
        often,
        (bug.get("note", mended)),
    )


def _campaigns() -> Iterator[str]:
    of = {kind: [row for row in load(CAMPAIGNS) if row["kind"] == kind] for kind in _KINDS}
    total = sum(row["count"] for row in of["sweep"])
    yield from _section("Sweeps without a planted bug", f"{total:,} schedules. {_SWEEPS}")
    head: tuple[str, ...] = (
        "date",
        "scenario",
        "seeds",
        "schedules",
        "checks",
        "held",
        "inconclusive",
        "violated",
        "note",
    )
    yield from table(
        head, (_cells(row, ("date", "scenario", "seeds", "count", "checks", *_CODES)) for row in of["sweep"])
    )
    yield from _section("Runs", _RUNS)
    head = (
        "date",
        "load",
        "system",
        "driver",
        "scenario",
        "runs",
        "faults",
        "checks",
        "held",
        "inconclusive",
        "violated",
    )
    keys: tuple[str, ...] = ("date", "load", "system", "driver", "scenario", "count", "faults", "checks", *_CODES)
    yield from table((*head, "note"), (_cells(row, keys) for row in of["runs"]))
    yield from _section(
        "Mutants of checks", "A mutant is a check with one guard negated or removed; its cases must fail."
    )
    keys = ("date", "scenario", "count", "killed", "equivalent", "alive")
    yield from table(("date", "mutants of", *keys[2:], "note"), (_cells(row, keys) for row in of["mutation"]))
    yield from _section("Test suites of client libraries", "Against the built-in broker.")
    keys = ("date", "scenario", "count", "held")
    yield from table(("date", "suite", "cases", "passed", "note"), (_cells(row, keys) for row in of["client suite"]))


_KINDS = ("sweep", "runs", "mutation", "client suite")
_CODES = ("held", "inconclusive", "violated")


def _cells(row: Row, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a campaign; a count of 0 that says nothing stays empty."""
    values = (row.get(key, "") for key in keys)
    return *(f"{value:,}" if isinstance(value, int) else str(value) for value in values), row.get("note", "")


PAGES = (
    Page(path=f"{FOLDER}/performance.md", text=performance),
    Page(path=f"{FOLDER}/track-record.md", text=track_record),
    *(
        Page(path=f"{FOLDER}/performance-{area['id']}.svg", text=partial(_plot, area["id"]))
        for area in load(AREAS)
        if _series(area["id"])
    ),
)
