"""What the report reads from the facts."""

import pytest

from harness.report.evidence import RunEvidence
from harness.report.timeline import figure, reigns
from harness.store.folder import RunFolder


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
    found = [(reign.leader, reign.from_s, reign.to_s, reign.unclean) for reign in reigns(RunEvidence(folder))]
    end_s = RunEvidence(folder).end_s()
    assert found == [(2, 0.0, 9.5, False), (-1, 9.5, 9.6, False), (3, 9.6, end_s, True)]


def test_missing_facts_are_empty_and_the_picture_is_still_drawn(folder: RunFolder) -> None:
    empty = RunEvidence(RunFolder(folder.root / "nothing"))
    assert empty.per_second() == []
    assert empty.rows("availability", "gap_ms") == []
    assert empty.findings() == []
    assert len(figure(empty).layout.annotations) == 4, "the four titles and no fault"


def test_each_fault_is_named_and_shaded_over_all_rows(folder: RunFolder) -> None:
    drawn = figure(RunEvidence(folder))
    assert [note.text for note in drawn.layout.annotations][4:] == ["▼ kill 2"]
    assert {(shape.x0, shape.x1) for shape in drawn.layout.shapes} == {(6.0, 12.0)}
