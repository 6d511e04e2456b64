from pathlib import Path

import pytest

from harness.contracts.state_changes import end_of, events_after

START, STOP = b'{"ev":"broker_start"}\n', b'{"ev":"broker_stop","controlled":true}\n'


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(START + STOP, ["broker_start", "broker_stop"], id="both kinds"),
        pytest.param(b'{"ev":"append"}\n' + STOP, ["broker_stop"], id="other kinds are passed over"),
        pytest.param(START + STOP[:-5], ["broker_start"], id="a torn last line is not there yet"),
        pytest.param(b'{"ev":"broker_st' + START + STOP, ["broker_stop"], id="a line torn by a kill"),
        pytest.param(b'{"ev":"x","to":"broker_stop"}\n', [], id="the word alone is no event"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_whole_lines_of_the_kinds_asked_for(tmp_path: Path, content: bytes, found: list[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    events, _ = events_after(path, 0, "broker_start", "broker_stop")
    assert [event["ev"] for event in events] == found


def test_the_next_look_starts_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(START + STOP[:4])
    events, offset = events_after(path, 0, "broker_start", "broker_stop")
    assert (len(events), offset) == (1, len(START))
    with path.open("ab") as log:
        log.write(STOP[4:])
    events, offset = events_after(path, offset, "broker_start", "broker_stop")
    assert (len(events), offset) == (1, end_of(path))


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert end_of(tmp_path / "none") == 0
    assert events_after(tmp_path / "none", 5, "x") == ([], 5)
