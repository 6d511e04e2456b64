"""The tracks of the figure: marks, operations, records a second, leaders, ISRs and faults, for plotly."""

import html
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from itertools import pairwise
from typing import Any

from harness.report.evidence import Evidence, Operations
from harness.report.timeline.marks import Mark
from harness.report.timeline.spans import FaultWindow, Membership, Reign, Span, Transaction, gaps
from harness.values import ACKS_ALL

BROKER_COLOURS = 8
LANE_PX, CHECK_PX, LOWEST_PX = 24, 36, 40
"""A lane; a check's lane, whose name takes two lines; the lowest track."""
CHARACTERS = 90
"""Characters of a lane's name in the whole width of a page."""
THINNEST = 400
"""The least width of a fault, as a fraction of the whole: a bounce is over at once."""
LEAST_MS = 0.01
"""Least latency, as its axis is logarithmic."""
OUTCOMES = {
    "ok": ("acknowledged", "var(--good)", "circle"),
    "info": ("unknown", "var(--open)", "triangle-up-open"),
    "fail": ("failed", "var(--ink)", "x-thin-open"),
}
TRANSACTIONS = {"committed": "var(--good)", "unknown": "var(--open)", "aborted": "var(--ink)"}
"""Colours of transactions by their outcomes."""
MISSING = {0: "all replicas", 1: "one missing", 2: "more missing"}
NO_REPLICA, CLUSTER = "no replica", "the cluster"
UNCLEAN = "x"
"""The pattern of a reign that began outside the ISR."""

Trace = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """An entry of the legend, which also hides what it names."""

    name: str
    colour: str
    symbol: str
    """A character; `▨` stands for a hatched bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One row of the picture."""

    title: str
    traces: list[Trace]
    legend: list[LegendEntry] = field(default_factory=list)
    height_px: int = 150
    axis: dict[str, Any] = field(default_factory=dict)


def of_marks(marks: Sequence[Mark]) -> Track:
    """Return the findings, a lane for each check."""
    checks = list(dict.fromkeys(mark.check for mark in marks))
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [round(mark.at_s, 4) for mark in marks],
        "y": [_two_lines(mark.check) for mark in marks],
        "customdata": [mark.id for mark in marks],
        "text": [_wrapped(f"{mark.check}: {mark.text}") for mark in marks],
        "hovertemplate": "%{x:.3f} s · %{text}<br>click: to the finding<extra></extra>",
        "marker": {"symbol": "diamond", "size": 11, "color": "var(--bad)"},
    }
    return Track(title="Broken promises", traces=[trace] if marks else [], **_lanes(checks, CHECK_PX, _two_lines))


def _two_lines(check: str) -> str:
    """Return a check as the name of its lane: the number over the word, which leaves room for the picture."""
    return "<br>".join(map(html.escape, check.split(" ", 1)))


def of_operations(operations: Operations, evidence: Evidence) -> Track:
    """Return operations as points, with p50 and p99 of each second."""
    traces: list[Trace] = []
    for outcome, (name, colour, symbol) in OUTCOMES.items():
        points = [each for each in operations.shown if each.outcome == outcome]
        marker = {"symbol": symbol, "color": colour, "size": 4 if outcome == "ok" else 8, "opacity": 0.7}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [round(point.end_s, 4) for point in points],
                "y": [round(max(point.took_ms, LEAST_MS), 3) for point in points],
                "text": [html.escape(point.what) for point in points],
                "hovertemplate": f"%{{text}}: {name}<br>%{{x:.3f}} s, after %{{y:.4~g}} ms<extra></extra>",
                "marker": marker,
            }
        )
    seconds = evidence.per_second()
    for name, dash, values in (
        ("p50", "solid", [second.p50_ms for second in seconds]),
        ("p99", "dot", [second.p99_ms for second in seconds]),
    ):
        latency = [None if value is None else round(max(value, LEAST_MS), 3) for value in values]
        line = {"color": "var(--soft)", "dash": dash, "width": 1.5}
        middle = [second.second + 0.5 for second in seconds]
        hover = {"hovertemplate": f"{name} %{{y:.4~g}} ms<extra></extra>"}
        traces.append(
            {"type": "scatter", "mode": "lines", "name": name, "x": middle, "y": latency, "line": line, **hover}
        )
    legend = [
        *(LegendEntry(name=name, colour=colour, symbol=sign) for (name, colour, _), sign in _signed()),
        LegendEntry(name="p50", colour="var(--soft)", symbol="—"),
        LegendEntry(name="p99", colour="var(--soft)", symbol="┄"),
    ]
    return Track(
        title="Time to the answer, ms",
        traces=traces if operations.shown else [],
        legend=legend,
        height_px=190,
        axis={"type": "log", "dtick": 1, "exponentformat": "none"},
    )


def _signed() -> Iterable[tuple[tuple[str, str, str], str]]:
    return zip(OUTCOMES.values(), ("●", "△", "✕"), strict=True)


def of_records(evidence: Evidence) -> Track:
    """Return the outcomes of the records of each second."""
    seconds = evidence.per_second()
    middle = [second.second + 0.5 for second in seconds]
    counts = (
        [second.acknowledged for second in seconds],
        [second.unknown for second in seconds],
        [second.failed for second in seconds],
    )
    traces: list[Trace] = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "sent",
            "name": f"{name} a second",
            "x": middle,
            "y": values,
            "line": {"shape": "hvh", "color": colour, "width": 0},
            "hovertemplate": f"%{{y:,}} {name}<extra></extra>",
        }
        for (name, colour, _), values in zip(OUTCOMES.values(), counts, strict=True)
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "consumed",
            "x": middle,
            "y": [second.consumed for second in seconds],
            "line": {"color": "var(--soft)", "dash": "dash", "width": 1.5},
            "hovertemplate": "%{y:,} consumed<extra></extra>",
        }
    )
    legend = [LegendEntry(name=f"{name} a second", colour=colour, symbol="■") for name, colour, _ in OUTCOMES.values()]
    legend.append(LegendEntry(name="consumed", colour="var(--soft)", symbol="┄"))
    return Track(
        title="Records a second",
        traces=traces if seconds else [],
        legend=legend,
        height_px=120,
        axis={"rangemode": "tozero"},
    )


def of_leaders(
    all_reigns: Sequence[Reign], in_force: Sequence[FaultWindow], evidence: Evidence, partitions: Sequence[str]
) -> Track:
    """Return the leader of each partition, its broker's fault windows, and times without an acknowledgement."""
    traces: list[Trace] = []
    legend: list[LegendEntry] = []
    for leader in sorted({reign.leader for reign in all_reigns}):
        led = [reign for reign in all_reigns if reign.leader == leader]
        name = "no leader" if leader < 0 else f"leader: broker {leader}"
        colour = "var(--ink)" if leader < 0 else f"var(--broker-{leader % BROKER_COLOURS})"
        patterns = ["/" if leader < 0 else UNCLEAN if reign.unclean else "" for reign in led]
        legend.append(LegendEntry(name=name, colour=colour, symbol="▨" if leader < 0 else "■"))
        texts = [f"{reign.leader_epoch}{' unclean' if reign.unclean else ''}" for reign in led]
        hover = [f"{name}, epoch {text}" for text in texts]
        traces.append(_bars(name, led, [reign.partition for reign in led], colour, hover, texts, patterns))
    if any(reign.unclean for reign in all_reigns):
        legend.append(LegendEntry(name="elected uncleanly", colour="var(--soft)", symbol="▩"))
    struck = [
        (span, reign.partition, window.fault)
        for reign in all_reigns
        for window in in_force
        if window.target == str(reign.leader) and (span := _both(reign, window))
    ]
    if struck:
        name = "its leader is under a fault"
        legend.append(LegendEntry(name=name, colour="var(--fault)", symbol="▨"))
        hover = [f"{name}: {fault}" for _, _, fault in struck]
        lanes = [partition for _, partition, _ in struck]
        bars = _bars(name, [span for span, _, _ in struck], lanes, "var(--fault)", hover, patterns=["/"] * len(struck))
        bars["marker"]["pattern"] |= {"fillmode": "overlay", "bgcolor": "rgba(0,0,0,0)"}
        traces.append(bars)
    if missed := [gap for gap in gaps(evidence) if gap.partition in partitions]:
        name = "no acknowledged write"
        legend.append(LegendEntry(name=name, colour="var(--ink)", symbol="▂"))
        hover = [f"{name}, acks={'all' if gap.acks == ACKS_ALL else gap.acks}, {gap.attempts} tried" for gap in missed]
        bars = _bars(name, missed, [gap.partition for gap in missed], "var(--ink)", hover)
        traces.append(bars | {"width": 0.16, "offset": -0.5})
    return Track(
        title="Leaders and their epochs",
        traces=traces if all_reigns else [],
        legend=legend,
        **_lanes(partitions),
    )


def of_isrs(all_memberships: Sequence[Membership], partitions: Sequence[str]) -> Track:
    """Return the ISRs of each partition, coloured by the number of missing replicas."""
    traces: list[Trace] = []
    legend: list[LegendEntry] = []
    worst = max(MISSING)
    for missing, name in {**MISSING, worst + 1: NO_REPLICA}.items():
        of_size = [each for each in all_memberships if _rank(each, worst) == missing]
        if of_size:
            colour = f"var(--isr-{missing})"
            texts = [",".join(map(str, each.isr)) or NO_REPLICA for each in of_size]
            hover = [f"ISR {text}" for text in texts]
            bars = _bars(f"ISR: {name}", of_size, [each.partition for each in of_size], colour, hover, texts)
            traces.append(bars | {"insidetextfont": {"color": "var(--ink)" if missing < worst else "var(--ground)"}})
            legend.append(LegendEntry(name=f"ISR: {name}", colour=colour, symbol="■"))
    return Track(title="In-sync replicas", traces=traces, legend=legend, **_lanes(partitions))


def _rank(membership: Membership, worst: int) -> int:
    return min(membership.missing, worst) if membership.isr else worst + 1


def of_transactions(shown: Sequence[Transaction], ids: Sequence[str]) -> Track:
    """Return the transactions of clients, a lane for each transactional id, coloured by their outcomes."""
    traces: list[Trace] = []
    legend: list[LegendEntry] = []
    for outcome, colour in TRANSACTIONS.items():
        spans = [each for each in shown if each.outcome == outcome]
        if spans:
            hover = [f"transaction {each.number} of {each.process}, {outcome}" for each in spans]
            traces.append(_bars(outcome, spans, [each.transactional_id for each in spans], colour, hover))
            legend.append(LegendEntry(name=outcome, colour=colour, symbol="■"))
    return Track(title="Transactions", traces=traces, legend=legend, **_lanes(ids))


def of_faults(in_force: Sequence[FaultWindow], end_s: float) -> Track:
    """Return the faults in force, a lane for each target."""
    lanes = [_lane(window.target) for window in in_force]
    hover = [f"{window.fault} {_lane(window.target)}{'' if window.healed else ', never healed'}" for window in in_force]
    bars = _bars("fault", in_force, lanes, "var(--fault)", hover, [window.fault for window in in_force])
    bars["x"] = [max(length_s, round(end_s / THINNEST, 4)) for length_s in bars["x"]]
    places = name_places(in_force, end_s)
    bars["textposition"] = [places[number].text_position for number in range(len(in_force))]
    for number, place in places.items():
        if place is NamePlace.BEFORE:  # text outside a bar is at its end; here at its start
            bars["base"][number] += bars["x"][number]
            bars["x"][number] *= -1
    return Track(title="Faults in force", traces=[bars] if in_force else [], **_lanes(sorted(set(lanes))))


class NamePlace(StrEnum):
    """Position of a fault's name: in its bar, beside it, or none if there is no room."""

    INSIDE = auto()
    AFTER = auto()
    BEFORE = auto()
    NOWHERE = auto()

    @property
    def text_position(self) -> str:
        """Plotly's name of it."""
        return {NamePlace.INSIDE: "inside", NamePlace.NOWHERE: "none"}.get(self, "outside")


def name_places(in_force: Sequence[FaultWindow], end_s: float) -> dict[int, NamePlace]:
    """Return where the name of each fault fits into its lane, by its number; hovering shows it in any case."""
    places = {}
    for target in {window.target for window in in_force}:
        lane = sorted((window.from_s, number) for number, window in enumerate(in_force) if window.target == target)
        free_from_s = 0.0
        for (_, number), (next_s, _) in pairwise([*lane, (end_s, -1)]):
            window = in_force[number]
            needed_s = len(window.fault) * end_s / CHARACTERS
            if window.length_s > needed_s:
                places[number] = NamePlace.INSIDE
            elif next_s - window.to_s > needed_s:
                places[number] = NamePlace.AFTER
            elif window.from_s - free_from_s > needed_s:
                places[number] = NamePlace.BEFORE
            else:
                places[number] = NamePlace.NOWHERE
            free_from_s = max(free_from_s, window.to_s + needed_s * (places[number] is NamePlace.AFTER))
    return places


def _lane(target: str) -> str:
    return f"broker {target}" if target.isdecimal() else target or CLUSTER


def _both(reign: Span, window: Span) -> Span | None:
    from_s, to_s = max(reign.from_s, window.from_s), min(reign.to_s, window.to_s)
    return Span(from_s=from_s, to_s=to_s) if to_s > from_s else None


def _bars(
    name: str,
    spans: Sequence[Span],
    lanes: Sequence[str],
    colour: str,
    hover: Sequence[str],
    texts: Sequence[str] = (),
    patterns: Sequence[str] = (),
) -> Trace:
    """Return spans as bars, each in its lane; a pattern has the colour of the background."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [html.escape(lane) for lane in lanes],
        "base": [round(span.from_s, 4) for span in spans],
        "x": [round(span.length_s, 4) for span in spans],
        "text": [html.escape(text) for text in texts],
        "textposition": "inside" if texts else "none",
        "insidetextanchor": "start",
        "insidetextfont": {"color": "var(--ground)"},
        "textangle": 0,
        "customdata": [
            f"{html.escape(f'{lane}: {words}')}<br>{span.from_s:.3f} to {span.to_s:.3f} s ({span.length_s:.3f} s)"
            for span, lane, words in zip(spans, lanes, hover, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "color": colour,
            "line": {"color": "var(--ground)", "width": 1},
            "pattern": {"shape": list(patterns), "fgcolor": colour if not texts else "var(--ground)", "size": 7},
        },
    }


def _lanes(names: Sequence[str], lane_px: int = LANE_PX, shown: Callable[[str], str] = html.escape) -> dict[str, Any]:
    """Return axis and height of a track with a lane for each name, the first one on top."""
    return {
        "axis": {
            "type": "category",
            "categoryarray": [shown(name) for name in reversed(names)],
            "categoryorder": "array",
        },
        "height_px": max(lane_px * len(names), LOWEST_PX),
    }


def _wrapped(text: str) -> str:
    """Return a sentence in lines for plotly: the only tags are those added here."""
    return "<br>".join(html.escape(line) for line in textwrap.wrap(text, 80))
