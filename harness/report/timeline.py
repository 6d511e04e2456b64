"""The run as one picture: throughput, latency, leaders and ISRs over time, with every fault window shaded."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from harness.report.evidence import Evidence
from harness.report.findings import Row

BROKER_COLOURS = ("#2f6f9f", "#d9822b", "#4f9d69", "#8e5ea2", "#c05c7e", "#7a8b99", "#b5a22f", "#5bb5c5")
NO_LEADER_COLOUR = "#d64545"
FAULT_COLOUR = "#d64545"
ROW_PX = 170


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """One leader of one partition from one instant to the next."""

    partition: str
    leader: int
    leader_epoch: int
    from_s: float
    to_s: float
    unclean: bool


def reigns(evidence: Evidence) -> list[Reign]:
    """Return who led which partition when, by ZooKeeper; internal topics are left out."""
    end_s = evidence.end_s()
    states = [
        row for row in evidence.rows("leader_epochs", "zxid") if row["time_ns"] is not None and _visible(row["topic"])
    ]
    all_reigns = []
    for partition, group in _by_partition(states):
        ordered = list(group)
        starts = [max(evidence.seconds_since_start(row["time_ns"]) or 0.0, 0.0) for row in ordered]
        for row, start, until in zip(ordered, starts, [*starts[1:], end_s], strict=True):
            if until > start:
                all_reigns.append(
                    Reign(
                        partition=partition,
                        leader=row["leader"],
                        leader_epoch=row["leader_epoch"],
                        from_s=start,
                        to_s=until,
                        unclean=bool(row["unclean"]),
                    )
                )
    return all_reigns


def figure(evidence: Evidence) -> go.Figure:
    """Return the timeline: four rows over one time axis in seconds since the first operation."""
    timeline = make_subplots(
        rows=4,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
        row_heights=[1, 1, 1.2, 1],
        subplot_titles=(
            "Records a second",
            "Time to acknowledgement, ms",
            "Leader and leader epoch of each partition",
            "ISR size",
        ),
    )
    _add_throughput(timeline, evidence)
    partitions = _add_leaders(timeline, evidence)
    _add_isr_sizes(timeline, evidence)
    timeline.update_annotations(x=0, xanchor="left", font_size=13)
    _add_faults(timeline, evidence)
    timeline.update_layout(
        height=ROW_PX * 4 + 22 * max(partitions - 4, 0),
        margin={"l": 8, "r": 8, "t": 72, "b": 24},
        template="plotly_white",
        hovermode="closest",
        legend={"orientation": "h", "y": -0.09, "yanchor": "top", "x": 0},
        font={"family": "system-ui, sans-serif", "size": 12},
    )
    timeline.update_yaxes(automargin=True, rangemode="tozero")
    timeline.update_xaxes(range=[0, evidence.end_s()])
    timeline.update_xaxes(title_text="seconds since the first operation", row=4)
    return timeline


def _visible(topic: str) -> bool:
    return not topic.startswith("__")


def _by_partition(rows: list[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    ordered = sorted(rows, key=lambda row: (row["topic"], row["partition"], row["zxid"] or 0))
    return groupby(ordered, key=lambda row: f"{row['topic']}-{row['partition']}")


def _add_throughput(timeline: go.Figure, evidence: Evidence) -> None:
    seconds = evidence.per_second()
    middle = [second.second + 0.5 for second in seconds]
    for name, colour, values in (
        ("acknowledged", "#9dc5a8", [second.acknowledged for second in seconds]),
        ("unknown", "#d9822b", [second.unknown for second in seconds]),
        ("failed", "#d64545", [second.failed for second in seconds]),
    ):
        timeline.add_trace(go.Bar(x=middle, y=values, name=name, marker_color=colour, width=0.9), row=1, col=1)
    consumed: dict[str, Any] = {"mode": "lines", "line": {"color": "#2f6f9f", "width": 1.5}}
    timeline.add_trace(
        go.Scatter(x=middle, y=[second.consumed for second in seconds], name="consumed", **consumed), row=1, col=1
    )
    for name, dash, latency in (
        ("p50", "solid", [second.p50_ms for second in seconds]),
        ("p99", "dot", [second.p99_ms for second in seconds]),
    ):
        line = {"color": "#8e5ea2", "dash": dash}
        trace = go.Scatter(x=middle, y=latency, name=name, mode="lines+markers", line=line, marker={"size": 4})
        timeline.add_trace(trace, row=2, col=1)
    timeline.update_layout(barmode="stack")
    timeline.update_yaxes(type="log", dtick=1, row=2)


def _add_leaders(timeline: go.Figure, evidence: Evidence) -> int:
    """Draw one bar a reign and return how many partitions there are."""
    all_reigns = reigns(evidence)
    named: set[int] = set()
    for reign in sorted(all_reigns, key=lambda reign: reign.leader):
        colour = NO_LEADER_COLOUR if reign.leader < 0 else BROKER_COLOURS[reign.leader % len(BROKER_COLOURS)]
        name = "no leader" if reign.leader < 0 else f"broker {reign.leader}"
        timeline.add_trace(
            go.Bar(
                y=[reign.partition],
                x=[reign.to_s - reign.from_s],
                base=[reign.from_s],
                orientation="h",
                name=name,
                legendgroup=name,
                showlegend=reign.leader not in named,
                marker={"color": colour, "line": {"color": "white", "width": 1}},
                marker_pattern_shape="x" if reign.unclean else "",
                text=f"{reign.leader_epoch}{' unclean' if reign.unclean else ''}",
                textposition="inside",
                insidetextanchor="start",
                hovertemplate=f"{reign.partition}: {name}, leader epoch {reign.leader_epoch}"
                f"<br>{reign.from_s:.2f} to {reign.to_s:.2f} s<extra></extra>",
            ),
            row=3,
            col=1,
        )
        named.add(reign.leader)
    timeline.update_yaxes(type="category", categoryorder="category descending", row=3)
    return len({reign.partition for reign in all_reigns})


def _add_isr_sizes(timeline: go.Figure, evidence: Evidence) -> None:
    end_s = evidence.end_s()
    rows = [row for row in evidence.rows("isr_changes", "zxid") if row["time_ns"] and _visible(row["topic"])]
    for index, (partition, group) in enumerate(_by_partition(rows)):
        points = [(max(evidence.seconds_since_start(row["time_ns"]) or 0.0, 0.0), row["new_isr"]) for row in group]
        points.append((end_s, points[-1][1]))
        timeline.add_trace(
            go.Scatter(
                x=[at for at, _ in points],
                y=[len(isr) for _, isr in points],
                customdata=[", ".join(map(str, isr)) for _, isr in points],
                name=f"ISR of {partition}",
                mode="lines",
                line={"shape": "hv", "color": BROKER_COLOURS[index % len(BROKER_COLOURS)], "width": 1.5},
                showlegend=False,
                hovertemplate=f"{partition}: ISR %{{customdata}}<extra></extra>",
            ),
            row=4,
            col=1,
        )


def _add_faults(timeline: go.Figure, evidence: Evidence) -> None:
    """Shade each fault window over all rows and name it above the first one."""
    for index, row in enumerate(evidence.rows("fault_windows", "intended_ns")):
        start = evidence.seconds_since_start(row["injected_ns"] or row["intended_ns"])
        end = evidence.seconds_since_start(row["healed_ns"])
        if start is None:
            continue
        stop = evidence.end_s() if end is None else max(end, start + 0.05)
        timeline.add_vrect(x0=start, x1=stop, fillcolor=FAULT_COLOUR, opacity=0.10, line_width=0, layer="below")
        timeline.add_annotation(
            x=start,
            y=1.0,
            yshift=44 if index % 2 else 30,
            xref="x",
            yref="paper",
            xanchor="left",
            showarrow=False,
            font={"size": 11, "color": FAULT_COLOUR},
            text=f"▼ {row['fault']} {','.join(row['targets'] or [])}",
        )
