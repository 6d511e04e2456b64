"""Names of faults in the timeline stand where they have room."""

import pytest

from harness.report.timeline.spans import FaultWindow, Transaction
from harness.report.timeline.tracks import CHARACTERS, NamePlace, name_places, of_transactions

END_S = float(CHARACTERS)
"""A character is a second wide."""


@pytest.mark.parametrize(
    ("spans", "places"),
    [
        pytest.param([(0, 20)], [NamePlace.INSIDE], id="it is longer than its name"),
        pytest.param([(0, 2)], [NamePlace.AFTER], id="nothing follows"),
        pytest.param([(END_S - 3, END_S)], [NamePlace.BEFORE], id="the picture ends"),
        pytest.param([(0, 2), (5, 7)], [NamePlace.NOWHERE, NamePlace.AFTER], id="the next one follows soon"),
        pytest.param([(20, 22), (24, 26)], [NamePlace.BEFORE, NamePlace.AFTER], id="there is room before it"),
        pytest.param(
            [(0, 2), (8, 10), (13, 20), (99, 105)],
            [NamePlace.AFTER, NamePlace.NOWHERE, NamePlace.INSIDE, NamePlace.INSIDE],
            id="the room before it has the name of another one",
        ),
        pytest.param([(24, 26), (20, 22)], [NamePlace.AFTER, NamePlace.BEFORE], id="in any order"),
        pytest.param([(0, 30), (10, 12)], [NamePlace.INSIDE, NamePlace.AFTER], id="two at once"),
    ],
)
def test_the_name_of_a_fault_stands_where_it_has_room(
    spans: list[tuple[float, float]], places: list[NamePlace]
) -> None:
    in_force = [FaultWindow(fault="pause", target="1", healed=True, from_s=begin, to_s=end) for begin, end in spans]
    placed = name_places(in_force, END_S)
    assert [placed[number] for number in range(len(spans))] == places


def test_lanes_leave_room_by_themselves() -> None:
    in_force = [
        FaultWindow(fault="pause", target=target, healed=True, from_s=begin, to_s=begin + 1)
        for target, begin in (("1", 0), ("2", 2))
    ]
    assert set(name_places(in_force, END_S).values()) == {NamePlace.AFTER}


def test_a_transaction_is_a_bar_in_the_lane_of_its_id() -> None:
    shown = [
        Transaction(from_s=begin, to_s=begin + 1, transactional_id=name, process="p0", number=3, outcome=outcome)
        for begin, name, outcome in ((0, "t", "committed"), (2, "u", "aborted"), (4, "t", "aborted"))
    ]
    track = of_transactions(shown, ["t", "u"])
    assert {trace["name"]: (trace["y"], trace["base"]) for trace in track.traces} == {
        "committed": (["t"], [0]),
        "aborted": (["u", "t"], [2, 4]),
    }
    assert track.axis["categoryarray"] == ["u", "t"]
    assert "transaction 3 of p0, committed" in track.traces[0]["customdata"][0]
