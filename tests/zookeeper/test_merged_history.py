from dataclasses import replace
from pathlib import Path

import pytest

from harness.store.history import JsonlWriter, ZnodeChange, read_jsonl
from harness.zookeeper.merged_history import combine, merge_history

SET = ZnodeChange(
    zxid=5,
    time_ms=1,
    type="set",
    path="/a",
    data="x",
    version=1,
    session="0xa",
    ephemeral_owner="",
    source="transaction_log",
)
SEEN = replace(SET, session="", source="observer")
DELETE = replace(SET, zxid=7, type="delete", data="", version=-1)


@pytest.mark.parametrize(
    ("seen", "logged", "merged", "remarks"),
    [
        pytest.param([], [SET], [SET], [], id="what only the log has says so"),
        pytest.param(
            [SEEN], [SET], [replace(SET, source="observer")], [], id="what both have says observer, with its session"
        ),
        pytest.param(
            [replace(SEEN, version=2)],
            [replace(SET, type="create", version=0), SET, replace(SET, version=2)],
            [replace(SET, type="create", version=0), SET, replace(SET, version=2, source="observer")],
            [],
            id="of one transaction's several writes the observer saw the last",
        ),
        pytest.param(
            [replace(SEEN, data="y")],
            [SET],
            [replace(SET, source="observer")],
            ["/a at zxid 5: the log has 'x', the observer saw 'y'"],
            id="other data is a contradiction, and the log decides",
        ),
        pytest.param(
            [SEEN],
            [DELETE],
            [SEEN, DELETE],
            ["version 1 of /a at zxid 5: seen by the observer, not in the log"],
            id="a write that the log lacks is kept in its place",
        ),
        pytest.param(
            [replace(DELETE, session="", source="observer", zxid=8)],
            [DELETE],
            [DELETE],
            [],
            id="a delete with a later zxid gives way to the log's",
        ),
        pytest.param(
            [replace(DELETE, session="", source="observer")],
            [DELETE],
            [replace(DELETE, source="observer")],
            [],
            id="a delete with the right zxid was seen",
        ),
    ],
)
def test_combining(
    seen: list[ZnodeChange], logged: list[ZnodeChange], merged: list[ZnodeChange], remarks: list[str]
) -> None:
    assert combine(seen, logged) == (merged, remarks)


@pytest.mark.parametrize(
    ("seen", "remarks"),
    [
        pytest.param([replace(DELETE, source="observer")], [], id="a delete that the log has"),
        pytest.param(
            [replace(DELETE, source="observer", zxid=8)],
            ["the delete of /a at zxid 8: seen by the observer, not in the log"],
            id="one that it lacks is a disagreement, and stays",
        ),
    ],
)
def test_of_an_observer_that_knows_when_something_was_deleted(seen: list[ZnodeChange], remarks: list[str]) -> None:
    merged, made = combine(seen, [DELETE], exact=True)
    assert made == remarks
    assert {each.zxid for each in merged} == {DELETE.zxid, *(each.zxid for each in seen)}


def test_without_a_log_the_observers_lines_stay_and_a_remark_says_what_that_means(tmp_path: Path) -> None:
    history = tmp_path / "zookeeper.jsonl"
    with JsonlWriter(history) as writer:
        writer.write(replace(SEEN, zxid=6, version=2))
        writer.write(SEEN)
    history.write_bytes(history.read_bytes() + b'{"torn')

    torn, gaps = merge_history(history, tmp_path / "nowhere")

    assert "torn line" in torn
    assert "only the last is known" in gaps
    assert [line["zxid"] for line in read_jsonl(history)] == [5, 6]


def test_without_an_observer_a_remark_says_so(tmp_path: Path) -> None:
    assert "no observer ran" in merge_history(tmp_path / "zookeeper.jsonl", tmp_path / "nowhere")[0]
    assert list(read_jsonl(tmp_path / "zookeeper.jsonl")) == []
