"""Figures over time as SVG: one small plot for each figure, readable on light and on dark pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from itertools import chain

WIDTH, HEIGHT = 300, 130
COLUMNS = 3
LEFT, RIGHT, TOP, BOTTOM = 14, 14, 34, 22
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#7a7f87}.t{font-weight:600}"
    ".o{stroke:#3b82c4;fill:none;stroke-width:1.5}.o circle{fill:#3b82c4}"
    ".p circle{fill:none;stroke:#c77d1e;stroke-width:1.5}"
    ".a{stroke:#3a9a5b;stroke-dasharray:5 3}.f{stroke:#7a7f87;opacity:.4}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure over time."""

    title: str
    unit: str
    points: Sequence[tuple[date, float]]
    """In the order of their dates; several of one day keep the order in which they were measured."""
    peer: Sequence[tuple[date, float]] = ()
    aim: float | None = None


def svg(series: Sequence[Series]) -> str:
    """Return a grid of plots: the figure as a line, its peer as rings, its aim dashed."""
    rows = -(-len(series) // COLUMNS)
    size = f'width="{WIDTH * COLUMNS}" height="{HEIGHT * rows}" viewBox="0 0 {WIDTH * COLUMNS} {HEIGHT * rows}"'
    plots = chain.from_iterable(_placed(number, each) for number, each in enumerate(series))
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<style>{_STYLE}</style>", *plots, "</svg>\n"]
    )


def _placed(number: int, each: Series) -> Iterator[str]:
    yield f'<g transform="translate({number % COLUMNS * WIDTH} {number // COLUMNS * HEIGHT})">'
    yield from _plot(each)
    yield "</g>"


def _plot(series: Series) -> Iterator[str]:
    days = [day.toordinal() for day, _ in (*series.points, *series.peer)]
    values = [value for _, value in (*series.points, *series.peer)]
    first, last = min(days), max(days)
    top = max([*values, series.aim or 0.0]) or 1.0

    def place(day: date, value: float) -> tuple[float, float]:
        across = (day.toordinal() - first) / ((last - first) or 1)
        x = LEFT + across * (WIDTH - LEFT - RIGHT)
        return round(x, 1), round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 1)

    yield f'<text class="t" x="{LEFT}" y="14">{escape(_short(series.title))}</text>'
    yield f'<text x="{LEFT}" y="28">{series.points[-1][1]:g} {escape(series.unit)}</text>'
    floor = HEIGHT - BOTTOM
    yield f'<path class="f" d="M{LEFT} {floor}H{WIDTH - RIGHT}"/>'
    if series.aim is not None:
        _, y = place(series.points[0][0], series.aim)
        yield f'<path class="a" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
    spots = [place(day, value) for day, value in series.points]
    circles = "".join(f'<circle cx="{x}" cy="{y}" r="2.5"/>' for x, y in spots)
    yield f'<g class="o"><path d="M{" L".join(f"{x} {y}" for x, y in spots)}"/>{circles}</g>'
    rings = "".join(f'<circle cx="{x}" cy="{y}" r="4"/>' for x, y in (place(day, value) for day, value in series.peer))
    yield f'<g class="p">{rings}</g>'
    yield f'<text x="{LEFT}" y="{HEIGHT - 6}">{date.fromordinal(first)}</text>'
    if last > first:
        yield f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{date.fromordinal(last)}</text>'


def _short(title: str, most: int = 44) -> str:
    return title if len(title) <= most else f"{title[: most - 1].rstrip()}…"
