"""The page of mutants of the broker, made from the files of `results/broker_mutants`: `python -m tools.pages`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jinja2 import Environment

from tools.broker_mutants.mutants import LEFT_OUT
from tools.broker_mutants.results import HEADINGS, RESULTS, About, Measurement, Row, cells, counts, read_measurement
from tools.broker_mutants.trial import Outcome

PAGE = Path("docs/broker-mutants.md")
PLOT = Path("docs/broker-mutants.svg")
_HEAD = """\
# What sweeps reach and find: mutants of the broker

Made from the files of `results/broker_mutants` by `python -m tools.pages`; do not edit.

    python -m tools.broker_mutants --sample 300 --seed N --out results/broker_mutants/DATE-NAME.jsonl

plants one mistake at a time in a protocol room of `harness/broker` and puts the mutant to the standing battery:
schedules of `storm-sweep`, `tools/mix-light.yaml`, `tools/administration-light.yaml`, `tools/groups-light.yaml`,
`compaction` and `smoke`. A sample is drawn by its seed from all mutants, by their keys, so most of it is the same after
the broker has changed. Mutants that no history can tell from the broker are set apart, with the reason, in
`tools/broker_mutants/equivalent.yaml`.

| outcome | means |
|---|---|
| unreached | No history differs from that of the intact broker. |
| unseen | Histories differ, and all of them held. |
| in doubt | Histories differ; checks are UNKNOWN, the run is INCONCLUSIVE, or a schedule leaves no history. |
| found | A check says FAIL. |

![Outcomes of every measurement, in percent](broker-mutants.svg)
"""
_MODULES = """\
## Modules that are left out

| module | why |
|---|---|"""
COLOURS = {
    Outcome.UNREACHED: "#c8c8c8",
    Outcome.UNSEEN: "#e8a33d",
    Outcome.IN_DOUBT: "#7aa6d8",
    Outcome.FOUND: "#3f8f4f",
}
_PLOT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{ width }} 300" font-family="sans-serif" font-size="12">
<title>Mutants of the broker by outcome, each measurement a bar, in percent</title>
<rect width="100%" height="100%" fill="#fff"/>
{% for colour, name in legend %}\
<rect x="{{ 10 + 110 * loop.index0 }}" y="8" width="12" height="12" fill="{{ colour }}"/>\
<text x="{{ 26 + 110 * loop.index0 }}" y="18">{{ name }}</text>
{% endfor -%}
{% for bar in bars %}{% set left = 10 + 110 * loop.index0 %}\
{% for part in bar.parts %}<rect x="{{ left }}" y="{{ part.top }}" width="90" height="{{ part.height }}" \
fill="{{ part.colour }}"/>\
{% if part.height > 14 %}<text x="{{ left + 45 }}" y="{{ part.top + part.height / 2 + 4 }}" text-anchor="middle">\
{{ part.share }} %</text>{% endif %}
{% endfor %}<text x="{{ left }}" y="252">{{ bar.day }}</text><text x="{{ left }}" y="268">{{ bar.commit }}</text>\
<text x="{{ left }}" y="284">{{ bar.mutants }} mutants</text>
{% endfor -%}
</svg>
"""
_TOP, _HEIGHT = 34, 200


def measurements() -> list[Measurement]:
    """Return every measurement, the oldest first."""
    read = {path.name: read_measurement(path) for path in RESULTS.glob("*.jsonl")}
    return [read[name] for name in sorted(read, key=lambda name: (read[name].about.day, name))]


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    every = measurements()
    if every:
        rows = [(_named(each), counts(each.rows, lambda _: "")[""]) for each in every]
        parts += ["## All measurements\n", _table("commit, sample, battery", rows)]
        parts += _latest(every[-1])
        parts += _executed(every[-1].about)
    parts += [_MODULES, *(f"| `{module}` | {why} |" for module, why in LEFT_OUT.items())]
    return "\n".join(parts) + "\n"


def plot() -> str:
    """Return a bar for each measurement, as SVG."""
    bars = [_bar(each) for each in measurements()]
    template = Environment(autoescape=True).from_string(_PLOT)
    legend = [(COLOURS[outcome], outcome.value) for outcome in Outcome]
    return template.render(bars=bars, legend=legend, width=max(460, 10 + 110 * len(bars))) + "\n"


def _bar(measurement: Measurement) -> dict[str, object]:
    counter = Counter(row.outcome for row in measurement.rows)
    parts, top = [], float(_TOP)
    for outcome in Outcome:
        share = counter[outcome] / max(1, counter.total())
        part = {"top": round(top, 1), "height": round(share * _HEIGHT, 1), "share": round(100 * share)}
        parts.append(part | {"colour": COLOURS[outcome]})
        top += share * _HEIGHT
    about = measurement.about
    return {"parts": parts, "day": about.day, "commit": about.commit, "mutants": counter.total()}


def _named(measurement: Measurement) -> str:
    about = measurement.about
    sample = f"{about.day}, {about.commit}, seed {about.seed}, {about.schedules} schedules"
    return f"{sample}: {about.about}" if about.about else sample


def _latest(latest: Measurement) -> Iterator[str]:
    about, cpu_s = latest.about, sum(row.cpu_s for row in latest.rows)
    yield f"\n## The latest: {about.day}, {about.commit}\n"
    yield (
        f"{len(latest.rows)} of {about.mutants:,} mutants (seed {about.seed}; {about.equivalent} equivalent ones are"
        f" set apart), {about.schedules} schedules each; {cpu_s / max(1, len(latest.rows)):.1f} s of processor time a"
        " mutant for its schedules.\n"
    )
    for title, key in _PROPERTIES:
        yield _table(title, counts(latest.rows, key).items()) + "\n"
    first = Counter(name for row in latest.rows if row.outcome == Outcome.FOUND for name in row.by[:1])
    yield "\n".join(["| first check that fails | mutants |", "|---|---|"])
    yield "\n".join(f"| {name} | {number} |" for name, number in first.most_common()) + "\n"
    for outcome, heading in (
        (Outcome.UNREACHED, "Unreached"),
        (Outcome.UNSEEN, "Unseen"),
        (Outcome.IN_DOUBT, "In doubt"),
    ):
        yield f"### {heading}\n"
        yield "\n".join(_listed([row for row in latest.rows if row.outcome == outcome])) + "\n"


def _executed(about: About) -> Iterator[str]:
    """Yield what the battery executes of all mutants, and the functions that it does not execute."""
    if not about.executed:
        return
    yield "## What the battery executes of all mutants\n"
    yield "\n".join(["| room | executed | all | share |", "|---|---|---|---|"])
    rooms = {**about.executed, "all": [sum(each) for each in zip(*about.executed.values(), strict=True)]}
    yield "\n".join(
        f"| {room} | {of:,} | {whole:,} | {100 * of / whole:.0f} % |" for room, (of, whole) in rooms.items()
    )
    yield "\n### Functions that it does not execute\n"
    yield "\n".join(f"- `{name}`" for name in about.never) + "\n"


_PROPERTIES: Sequence[tuple[str, Callable[[Row], str]]] = (
    ("room", lambda row: row.room),
    ("operator", lambda row: row.operator),
)


def _table(title: str, rows: Iterable[tuple[str, Counter[str]]]) -> str:
    lines = [f"| {title} | {' | '.join(HEADINGS)} |", "|---" * (1 + len(HEADINGS)) + "|"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells(counter))} |" for name, counter in rows)])


def _listed(rows: Sequence[Row]) -> Iterator[str]:
    """Yield mutants, each with why it is where it is."""
    for row in sorted(rows, key=lambda row: (row.room, row.key)):
        if row.outcome != Outcome.UNREACHED:
            why = f"{row.differ} of {row.simulated} differ{': ' + ', '.join(row.by) if row.by else ''}"
        elif row.executed:
            why = f"executed by {row.executed} schedules"
        else:
            why = "executed by no schedule"
        yield f"- `{row.key}` ({why})"
