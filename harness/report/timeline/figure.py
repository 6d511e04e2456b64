"""The figure for plotly: tracks one below the other, which share one axis of time when zoomed.

Colours are names of the page's palette, `var(--…)`, which the page's script fills in, so that they follow its mode. One
colour has one meaning: no client is served (ink), a broken promise (bad), a fault (fault), a broker (broker-N).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.progress import number_of
from harness.report.evidence import Evidence, Operations
from harness.report.timeline.marks import Mark
from harness.report.timeline.spans import FaultWindow, Reign, Transaction, memberships, reigns, transactions, windows
from harness.report.timeline.tracks import (
    LegendEntry,
    Trace,
    Track,
    of_faults,
    of_isrs,
    of_leaders,
    of_marks,
    of_operations,
    of_records,
    of_transactions,
)

GAP_PX = 34
SHOWN_PARTITIONS = 30
SHOWN_TRANSACTIONS, SHOWN_IDS = 2000, 20
"""Transactions, and transactional ids, that are drawn at most."""
LINES = 100
"""Positions for a line across all tracks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The whole picture."""

    data: list[Trace]
    layout: dict[str, Any]
    legend: dict[str, list[LegendEntry]]
    """By the title of the track."""
    left_out: list[str]
    """As sentences."""


def figure(evidence: Evidence, marks: Sequence[Mark] = ()) -> Figure:
    """Return the timeline, in seconds since the first operation."""
    operations, in_force = evidence.operations(), windows(evidence)
    all_reigns, all_memberships = reigns(evidence), memberships(evidence)
    partitions = list(
        dict.fromkeys([*(each.partition for each in all_reigns), *(each.partition for each in all_memberships)])
    )
    shown = _busiest(partitions, all_reigns)
    all_transactions = transactions(evidence)
    ids = sorted({each.transactional_id for each in all_transactions})[:SHOWN_IDS]
    drawn = _drawn([each for each in all_transactions if each.transactional_id in ids])
    tracks = [
        of_marks(marks),
        of_operations(operations, evidence),
        of_records(evidence),
        of_transactions(drawn, ids),
        of_leaders([each for each in all_reigns if each.partition in shown], in_force, evidence, shown),
        of_isrs([each for each in all_memberships if each.partition in shown], shown),
        of_faults(in_force, evidence.end_s()),
    ]
    tracks = [track for track in tracks if track.traces]
    return Figure(
        data=[trace | {"yaxis": _axis("y", index)} for index, track in enumerate(tracks) for trace in track.traces],
        layout=_layout(tracks, evidence.end_s(), in_force, marks),
        legend={track.title: track.legend for track in tracks if track.legend},
        left_out=[*_thinned(operations), *_without(len(partitions) - len(shown)), *_undrawn(all_transactions, drawn)],
    )


def _busiest(partitions: Sequence[str], all_reigns: Sequence[Reign]) -> list[str]:
    """Return the partitions with the most leaders, up to the limit, in their own order."""
    count = dict.fromkeys(partitions, 0)
    for reign in all_reigns:
        count[reign.partition] += 1
    most = set(sorted(partitions, key=lambda name: -count[name])[:SHOWN_PARTITIONS])
    return [name for name in partitions if name in most]


def _thinned(operations: Operations) -> list[str]:
    if operations.every_s is None:
        return []
    drawn = f"{len(operations.shown):,} of {number_of(operations.count, 'operation')} are drawn"
    return [f"{drawn}: of each outcome the slowest and the quickest in every {operations.every_s:.2g} s"]


def _drawn(of_ids: Sequence[Transaction]) -> list[Transaction]:
    """Return the transactions that are drawn: of too many, those that did not commit come first, then the longest."""
    rank = sorted(of_ids, key=lambda each: (each.outcome == "committed", -each.length_s))
    return sorted(rank[:SHOWN_TRANSACTIONS], key=lambda each: each.from_s)


def _undrawn(every: Sequence[Transaction], drawn: Sequence[Transaction]) -> list[str]:
    left = len(every) - len(drawn)
    return [f"{number_of(left, 'transaction')} left out"] if left else []


def _without(partitions: int) -> list[str]:
    return [f"{number_of(partitions, 'partition')} with fewer elections left out"] if partitions else []


def _axis(letter: str, index: int) -> str:
    return letter if index == 0 else f"{letter}{index + 1}"


def _layout(
    tracks: Sequence[Track], end_s: float, in_force: Sequence[FaultWindow], marks: Sequence[Mark]
) -> dict[str, Any]:
    plot_px = sum(track.height_px + GAP_PX for track in tracks) or GAP_PX
    layout: dict[str, Any] = {
        "height": plot_px + 50,
        "margin": {"l": 8, "r": 8, "t": 0, "b": 50, "pad": 0},
        "barmode": "overlay",
        "bargap": 0.12,
        "hovermode": "closest",
        "uniformtext": {"mode": "hide", "minsize": 11},
        "showlegend": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "var(--ink)"},
        "hoverlabel": {"bgcolor": "var(--raised)", "bordercolor": "var(--line)", "font": {"color": "var(--ink)"}},
        "xaxis": {
            "range": [0, round(max(end_s, 1.0) * 1.01, 3)],
            "anchor": _axis("y", len(tracks) - 1),
            "title": {"text": "seconds since the first operation"},
            "gridcolor": "var(--line)",
            "zeroline": False,
        },
        "shapes": [*_shades(in_force), *_lines(marks, end_s)],
        "annotations": [],
    }
    top_px = 0
    for index, track in enumerate(tracks):
        first, last = top_px + GAP_PX, top_px + GAP_PX + track.height_px
        domain = [max(1 - last / plot_px, 0), 1 - first / plot_px]
        key = _axis("yaxis", index)
        layout[key] = {
            "domain": domain,
            "anchor": "x",
            "automargin": True,
            "fixedrange": True,
            "gridcolor": "var(--line)",
            "zeroline": False,
            **track.axis,
        }
        layout["annotations"].append(_title(track.title, domain[1]))
        top_px = last
    return layout


def _title(text: str, y: float) -> dict[str, Any]:
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "yref": "paper", "yanchor": "bottom"}
    return {"text": f"<b>{text}</b>", "showarrow": False, "font": {"size": 13}, **place}


def _shades(in_force: Sequence[FaultWindow]) -> list[dict[str, Any]]:
    """Return the time of each fault as a shade over all tracks."""
    place = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    spans = sorted({(round(window.from_s, 4), round(window.to_s, 4)) for window in in_force})
    fill = {"fillcolor": "var(--fault)", "opacity": 0.1, "line": {"width": 0}}
    return [{"type": "rect", "x0": x0, "x1": x1, **place, **fill} for x0, x1 in spans]


def _lines(marks: Sequence[Mark], end_s: float) -> list[dict[str, Any]]:
    """Return a line through all tracks for findings at distinct positions, the first of each."""
    places = {int(mark.at_s * LINES / max(end_s, 1.0)): mark.at_s for mark in reversed(marks)}
    instants = [round(at_s, 4) for at_s in sorted(places.values())]
    line = {"color": "var(--bad)", "width": 1, "dash": "dot"}
    place = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return [{"x0": at_s, "x1": at_s, "line": line, **place} for at_s in instants]
