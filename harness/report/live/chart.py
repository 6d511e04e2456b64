"""The run so far as pictures: lines over time with the fault windows behind them, as numbers for a template."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.progress import number_of
from harness.report.live.watch import Past

WIDTH, HEIGHT, TOP = 1000, 100, 6
"""Of the picture of a line; the largest value is `TOP` below its upper edge."""
TICKS = 6
"""Labels on the axis of time, at most."""
NONE = "-"
TICK_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One line over time."""

    name: str
    mood: str
    """The class of its colour."""
    now: str
    largest: str
    lines: list[str]
    """Points of each piece; a line has a gap where there is no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """A fault window, in percent of the width."""

    fault: str
    when: str
    left: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """All lines over one axis of time."""

    step: str
    """Length of a step of time, as text."""
    panels: list[Panel]
    shades: list[Shade]
    ticks: list[tuple[float, str]]
    """Position in percent, and label."""


def chart_of(past: Past) -> Chart:
    """Return the run so far."""
    series = past.series
    begin_s, span_s = series.begin_s, max(series.end_s - series.begin_s, 1.0)
    shades = []
    for window in past.windows:
        left_s = max(window.begin_s - begin_s, 0.0)
        right_s = span_s if window.end_s is None else min(window.end_s - begin_s, span_s)
        until = "now" if window.end_s is None else f"{window.end_s:.1f} s"
        if left_s < right_s:
            shades.append(
                Shade(
                    fault=window.fault,
                    when=f"{window.begin_s:.1f} s to {until}",
                    left=round(100 * left_s / span_s, 2),
                    width=round(100 * (right_s - left_s) / span_s, 2),
                )
            )
    return Chart(
        step=number_of(series.step_s, "second"),
        panels=[
            _panel("acknowledged writes a second", "good", series.acknowledged_per_s, lambda value: f"{value:,.0f}"),
            _panel("99 % of acknowledged writes take at most", "busy", series.p99_ms, lambda value: f"{value:,.0f} ms"),
            _panel("failed or unknown writes a second", "bad", series.errors_per_s, lambda value: f"{value:,.0f}"),
            _panel("largest lag of a reader", "open", series.lag_records, lambda value: f"{value:,.0f} records"),
        ],
        shades=shades,
        ticks=list(_ticks(begin_s, span_s)),
    )


def _panel(name: str, mood: str, values: Sequence[float | None], text: Callable[[float], str]) -> Panel:
    known = [value for value in values if value is not None]
    return Panel(
        name=name,
        mood=mood,
        now=NONE if values[-1] is None else text(values[-1]),
        largest=text(max(known)) if known else NONE,
        lines=list(_lines(values, max(known, default=0.0) or 1.0)),
    )


def _lines(values: Sequence[float | None], top: float) -> Iterator[str]:
    """Yield each piece of a line; a step is a level piece, so that a single value is seen."""
    piece: list[str] = []
    for number, value in enumerate(values):
        if value is None:
            if piece:
                yield " ".join(piece)
            piece = []
            continue
        y = round(HEIGHT - (HEIGHT - TOP) * value / top, 1)
        piece += [f"{WIDTH * at / len(values):.1f},{y}" for at in (number, number + 1)]
    if piece:
        yield " ".join(piece)


def _ticks(begin_s: float, span_s: float) -> Iterator[tuple[float, str]]:
    step_s = next((step for step in TICK_STEPS_S if span_s / step <= TICKS), span_s / TICKS)
    number = -(-begin_s // step_s)
    while (at_s := number * step_s) <= begin_s + span_s * 0.97:
        yield round(100 * (at_s - begin_s) / span_s, 2), f"{at_s:.0f} s"
        number += 1
