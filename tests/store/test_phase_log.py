import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import ClusterError, EvidenceError, Interrupted
from harness.progress import Silent
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, Quiescence, ends, entries, record_phase, started_at
from harness.store.result import Remark, forbidding
from harness.system.pids import identify


class OutOfTime(BaseException):
    """As schedulers raise it, past every `except Exception`."""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_a_phase_leaves_what_it_had_to_say(folder: RunFolder) -> None:
    with record_phase(folder, Phase.DRIVE, Silent()) as notes:
        notes.remark("harmless")
        notes.remark("bad", subject="broker 1", forbids_pass=True)
        notes.residue.append("a process")
    end = ends(folder)[Phase.DRIVE]
    harmless = Remark(text="harmless", phase="drive")
    bad = Remark(text="bad", phase="drive", subject="broker 1", forbids_pass=True)
    assert (end.error, end.remarks, end.residue) == ("", [harmless, bad], ["a process"])
    assert started_at(folder).endswith("+00:00")


@pytest.mark.parametrize(
    ("raised", "becomes", "error"),
    [
        pytest.param(ClusterError("gone"), ClusterError, "gone", id="an error of the harness goes on"),
        pytest.param(OSError("disk full"), ClusterError, "disk full", id="the disk is an error of the environment"),
        pytest.param(TimeoutError(), ClusterError, "TimeoutError", id="an error without words"),
        pytest.param(KeyboardInterrupt(), Interrupted, "interrupted", id="Ctrl-C between two awaits"),
        pytest.param(Interrupted("x"), Interrupted, "interrupted", id="a signal"),
        pytest.param(KeyError("bug"), KeyError, "KeyError: 'bug'", id="a bug"),
        pytest.param(OutOfTime("15 min"), OutOfTime, "OutOfTime: 15 min", id="a scheduler's own way to end it"),
    ],
)
def test_a_phase_that_fails_says_so_and_forbids_a_pass(
    folder: RunFolder, raised: BaseException, becomes: type[BaseException], error: str
) -> None:
    with pytest.raises(becomes), record_phase(folder, Phase.DRIVE, Silent()):
        raise raised
    end = ends(folder)[Phase.DRIVE]
    assert end.error == error
    assert [remark.forbids_pass for remark in end.remarks] == [True]


def test_a_phase_that_was_killed_was_cut_off(folder: RunFolder) -> None:
    with record_phase(folder, Phase.DRIVE, Silent()):
        assert ends(folder)[Phase.DRIVE].error == "the phase drive was cut off"
        assert forbidding(ends(folder)[Phase.DRIVE].remarks)


SECONDS = "2026-11-26T10:00:{}+00:00"


@pytest.mark.parametrize(
    ("lines", "lasted_s"),
    [
        pytest.param([{"utc": SECONDS.format("42.500")}], 42.5, id="until a later phase began"),
        pytest.param(
            [{"utc": SECONDS.format("42.500"), "last_sign": SECONDS.format("07.250")}],
            7.25,
            id="until its last sign of life",
        ),
        pytest.param(
            [{"utc": SECONDS.format("42.500"), "last_sign": "2026-11-26T09:59:58+00:00"}],
            42.5,
            id="a sign of an earlier phase says nothing",
        ),
        pytest.param([], 0.0, id="nothing came after it"),
        pytest.param([{"utc": ""}], 0.0, id="a log without instants"),
    ],
)
def test_a_phase_that_was_cut_off_states_how_long_it_lasted(
    folder: RunFolder, lines: list[dict[str, str]], lasted_s: float
) -> None:
    drive = {"phase": "drive", "event": "started", "utc": SECONDS.format("00.000")}
    log = [drive, *({"phase": "collect", "event": "started"} | line for line in lines)]
    folder.phases.write_text("".join(json.dumps(line) + "\n" for line in log))
    assert ends(folder)[Phase.DRIVE].duration_s == lasted_s
    assert not ends(folder)[Phase.DRIVE].over


def test_the_next_phase_notes_the_last_sign_of_one_that_was_cut_off(folder: RunFolder) -> None:
    folder.phases.write_text(json.dumps({"phase": "drive", "event": "started", "utc": "2026-11-26T10:00:00+00:00"}))
    with folder.phases.open("a") as log:
        log.write("\n")
    folder.operations.mkdir()
    for process, time_s in (("producer-1", 3), ("consumer-1", 9)):
        path = folder.operations_of(process)
        path.touch()
        os.utime(path, (0, datetime(2026, 11, 26, 10, 0, time_s, tzinfo=UTC).timestamp()))
    with record_phase(folder, Phase.COLLECT, Silent()):
        pass
    with record_phase(folder, Phase.STOP, Silent()):
        pass
    assert ends(folder)[Phase.DRIVE].duration_s == 9
    signs = ["last_sign" in json.loads(line) for line in folder.phases.read_text().splitlines()]
    assert signs == [False, True, False, False, False]


@pytest.mark.parametrize("phase", [Phase.JUDGE, Phase.REPORT])
@pytest.mark.parametrize("followed", [False, True], ids=["nothing came after it", "another phase came long after it"])
def test_a_killed_phase_that_writes_no_evidence_lasted_until_its_last_sign(
    folder: RunFolder, phase: Phase, followed: bool
) -> None:
    began = datetime(2026, 11, 26, 10, tzinfo=UTC)
    line = {"phase": phase, "event": "started", "utc": began.isoformat()}
    folder.phases.write_text(json.dumps(line) + "\n", encoding="utf-8")
    folder.sign.write_text((began + timedelta(seconds=6.5)).isoformat(timespec="microseconds"), encoding="ascii")
    if followed:
        with record_phase(folder, Phase.STOP, Silent()):
            pass
    assert ends(folder)[phase].duration_s == 6.5
    assert folder.sign.exists() is not followed


def test_a_phase_gives_signs_until_it_is_over(folder: RunFolder) -> None:
    with record_phase(folder, Phase.REPORT, Silent()):
        while not ends(folder)[Phase.REPORT].duration_s:  # the first sign may be of the millisecond in which it began
            os.sched_yield()
    assert not folder.sign.exists()


def test_what_is_known_of_writes_while_evidence_was_collected_is_kept(folder: RunFolder) -> None:
    def collect() -> None:
        with record_phase(folder, Phase.COLLECT, Silent()) as notes:
            notes.quiescence = Quiescence(loaded=["client a still runs"])
            raise ClusterError("no room")

    with pytest.raises(ClusterError):
        collect()
    assert ends(folder)[Phase.COLLECT].quiescence == Quiescence(loaded=["client a still runs"], unsettled=[])
    with record_phase(folder, Phase.COLLECT, Silent()):
        pass
    assert ends(folder)[Phase.COLLECT].quiescence is None


def test_the_last_time_counts(folder: RunFolder) -> None:
    with pytest.raises(ClusterError), record_phase(folder, Phase.JUDGE, Silent()):
        raise ClusterError("no memory")
    with record_phase(folder, Phase.JUDGE, Silent()):
        pass
    assert ends(folder)[Phase.JUDGE].error == ""
    assert list(ends(folder)) == [Phase.JUDGE]


@pytest.mark.parametrize(
    ("phase", "damaged"),
    [
        pytest.param(Phase.COLLECT, True, id="what it would have gathered may be lost"),
        pytest.param(Phase.JUDGE, False, id="a judge looks at the same evidence again"),
    ],
)
def test_a_phase_that_was_cut_off_and_done_again(folder: RunFolder, phase: Phase, damaged: bool) -> None:
    folder.phases.write_text(f'{{"phase": "{phase}", "event": "started", "utc": ""}}\n')
    with record_phase(folder, phase, Silent()):
        pass
    end = ends(folder)[phase]
    cut = Remark(text=f"the phase {phase} was cut off", phase=phase, forbids_pass=True)
    assert (end.error, end.remarks) == ("", [cut] if damaged else [])


def test_no_phase_has_run_yet(folder: RunFolder) -> None:
    assert ends(folder) == {}
    assert started_at(folder) == ""


def test_a_folder_that_cannot_be_written_keeps_no_phase_from_running(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    ran = []
    with record_phase(RunFolder(no_folder), Phase.STOP, Silent()):
        ran.append("stop")
    assert ran == ["stop"]


def test_who_carries_a_phase_out_and_how_it_ended_is_known_afterwards(folder: RunFolder) -> None:
    with record_phase(folder, Phase.START, Silent()):
        assert [(entry.phase, entry.over) for entry in entries(folder)] == [(Phase.START, False)]
    with pytest.raises(ClusterError), record_phase(folder, Phase.DRIVE, Silent()):
        raise ClusterError("gone")
    with record_phase(folder, Phase.STOP, Silent()):
        pass
    read = entries(folder)
    assert [(entry.phase, entry.error) for entry in read] == [
        (Phase.START, ""),
        (Phase.DRIVE, "gone"),
        (Phase.STOP, ""),
    ]
    assert {(entry.host, entry.process) for entry in read} == {(socket.gethostname(), identify(os.getpid()))}


def test_a_log_from_before_hosts_and_processes_were_noted_is_read(folder: RunFolder) -> None:
    folder.phases.write_text('{"phase": "start", "event": "started", "utc": ""}\n')
    (entry,) = entries(folder)
    assert (entry.phase, entry.host, entry.process, entry.over) == (Phase.START, "", None, False)


def test_a_log_from_before_remarks_had_a_type_is_read(folder: RunFolder) -> None:
    line = {"phase": "judge", "event": "ended", "duration_s": 1.0, "error": "", "residue": []}
    folder.phases.write_text(json.dumps({**line, "remarks": ["no answer"], "damaged": True}) + "\n")
    assert ends(folder)[Phase.JUDGE].remarks == [Remark(text="no answer", phase="judge", forbids_pass=True)]


def test_a_log_of_something_else_is_refused(folder: RunFolder) -> None:
    folder.phases.write_text('{"phase": "dance", "event": "started"}\n')
    with pytest.raises(EvidenceError, match="not a line of the phase log"):
        entries(folder)
