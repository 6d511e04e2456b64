"""What the report reads from the facts, and what its timeline makes of it."""

import json
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from harness.report.evidence import SHOWN_OPERATIONS, RunEvidence
from harness.report.template import part
from harness.report.timeline.figure import Figure, figure
from harness.report.timeline.marks import Mark
from harness.report.timeline.spans import reigns
from harness.store.folder import RunFolder
from tests.report.conftest import SECOND, START, reign, send, write_fact


def test_seconds_count_every_outcome_and_the_time_to_acknowledgement(folder: RunFolder) -> None:
    seconds = RunEvidence(folder).per_second()
    assert [second.second for second in seconds] == list(range(15))
    assert seconds[0].acknowledged == 10
    assert seconds[0].p50_ms == pytest.approx(3, abs=0.01)
    assert (seconds[7].failed, seconds[7].acknowledged) == (1, 0)
    assert seconds[7].p50_ms is None
    assert (seconds[9].acknowledged, seconds[9].unknown) == (1, 1)
    assert seconds[9].p99_ms == pytest.approx(3000)
    assert all(second.consumed == 1 for second in seconds)


def test_a_reign_ends_where_the_next_one_begins_and_the_last_one_with_the_run(folder: RunFolder) -> None:
    shown = [(reign.leader, reign.from_s, reign.to_s, reign.unclean) for reign in reigns(RunEvidence(folder))]
    end_s = RunEvidence(folder).end_s()
    assert shown == [(2, 0.0, 9.5, False), (-1, 9.5, 9.6, False), (3, 9.6, end_s, True)]


def test_missing_facts_are_empty_and_nothing_is_drawn(folder: RunFolder) -> None:
    empty = RunEvidence(RunFolder(folder.root / "nothing"))
    assert empty.per_second() == []
    assert empty.operations().shown == []
    assert empty.rows("availability", "gap_ms") == []
    assert empty.findings() == []
    assert figure(empty).data == []


def test_operations_are_points_but_for_those_that_ask_for_no_answer(folder: RunFolder) -> None:
    operations = RunEvidence(folder).operations()
    assert Counter(each.outcome for each in operations.shown) == {"ok": 111, "info": 1, "fail": 1}
    assert max(each.took_ms for each in operations.shown) == pytest.approx(3000)
    assert (operations.count, operations.every_s) == (113, None)


def test_of_many_operations_the_slowest_and_quickest_are_drawn_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    slow, unknown = send(7.0, 900), send(12.0, 500, "info")
    write_fact(folder, "sends", *(send(number / 500, 2 + number % 3) for number in range(10_000)), slow, unknown)
    operations = RunEvidence(folder).operations()
    assert operations.count == 10_002
    assert 500 < len(operations.shown) <= SHOWN_OPERATIONS
    assert sorted(each.took_ms for each in operations.shown)[-2:] == [500, 900]
    assert [each.outcome for each in operations.shown].count("info") == 1
    (sentence,) = figure(RunEvidence(folder)).left_out
    assert re.fullmatch(r"[\d,]+ of 10,002 operations are drawn: of each outcome .* in every 0.0\d+ s", sentence)


@pytest.mark.parametrize(
    ("finding", "at_s"),
    [
        pytest.param({"at_ns": START + 3 * SECOND, "leader_epoch": 2}, 3.0, id="when its check says"),
        pytest.param({"offset": 41, "leader_epoch": 2}, 2.003, id="when its record was acknowledged, the first of two"),
        pytest.param({"offset": 99, "leader_epoch": 2}, 9.6, id="when its epoch began, without an acknowledgement"),
        pytest.param({"leader_epoch": 7}, None, id="unknown"),
    ],
)
def test_a_finding_has_an_instant(tmp_path: Path, finding: dict[str, int], at_s: float | None) -> None:
    folder = RunFolder(tmp_path)
    write_fact(folder, "sends", send(0, 1), *({**send(at_s, 3), "offset": 41} for at_s in (2.0, 4.0)))
    write_fact(folder, "leader_epochs", reign(9.6, 3, 2))
    evidence = RunEvidence(folder)
    row = {"topic": "orders", "partition": 0, "offset": None, "leader_epoch": None, "at_ns": None} | finding
    (instant,) = evidence.instants([row])
    assert evidence.seconds_since_start(instant) == at_s


def bars(drawn: Figure, name: str) -> list[tuple[str, float, float]]:
    """Return the bars of a trace: lane, from, to."""
    (trace,) = (trace for trace in drawn.data if trace["name"] == name)
    return [
        (lane, *sorted((base, base + length)))
        for lane, base, length in zip(trace["y"], trace["base"], trace["x"], strict=True)
    ]


def test_each_fault_is_a_bar_of_its_target_and_shaded_over_all_tracks(folder: RunFolder) -> None:
    drawn = figure(RunEvidence(folder))
    assert bars(drawn, "fault") == [("broker 2", 6.0, 12.0)]
    assert {(shape["x0"], shape["x1"]) for shape in drawn.layout["shapes"]} == {(6.0, 12.0)}


def test_a_reign_shows_when_its_leader_is_under_a_fault_and_when_nothing_was_acknowledged(folder: RunFolder) -> None:
    drawn = figure(RunEvidence(folder))
    assert bars(drawn, "leader: broker 2") == [("orders-0", 0.0, 9.5)]
    assert bars(drawn, "its leader is under a fault") == [("orders-0", 6.0, 9.5)]
    assert bars(drawn, "no acknowledged write") == [("orders-0", 6.0, 9.0)]
    assert bars(drawn, "no leader") == [("orders-0", 9.5, 9.6)]


def test_each_partition_has_a_lane_for_its_isr_coloured_by_who_is_missing(folder: RunFolder) -> None:
    drawn = figure(RunEvidence(folder))
    assert bars(drawn, "ISR: all replicas") == [("orders-0", 0.0, 10.0)]
    assert [lane for lane, _, _ in bars(drawn, "ISR: one missing")] == ["orders-0"]


def test_all_tracks_share_one_axis_of_time_and_one_colour_has_one_meaning(folder: RunFolder) -> None:
    drawn = figure(RunEvidence(folder), [Mark(id="finding-I10-violation-0", at_s=7.0, check="I10 x", text="lost")])
    assert len(drawn.legend) == 4
    assert {trace.get("xaxis", "x") for trace in drawn.data} == {"x"}
    assert len({trace["yaxis"] for trace in drawn.data}) == 6
    colours: dict[str, set[str]] = {}
    for entry in chain(*drawn.legend.values()):
        colours.setdefault(entry.colour, set()).add(entry.name.removesuffix(" a second"))
    nobody_is_served = {"failed", "no leader", "no acknowledged write"}
    assert {colour: names for colour, names in colours.items() if len(names) > 1} == {
        "var(--ink)": nobody_is_served,
        "var(--soft)": {"p50", "p99", "consumed", "elected uncleanly"},
    }


def test_every_colour_is_one_of_the_palette_in_both_modes(folder: RunFolder) -> None:
    named = set(re.findall(r"var\((--[\w-]+)\)", json.dumps(figure(RunEvidence(folder)).data)))
    palette = set(re.findall(r"(--[\w-]+): (?:light-dark|var)\(", part("page.css")))
    assert named <= palette
