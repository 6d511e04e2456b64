import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.system.pids import (
    ProcessIdentity,
    group_members,
    identify,
    is_neighbour,
    read_pid_file,
    remove_stale_pid_files,
    state_of,
    write_pid_file,
)

FOUNDER = """
import subprocess, sys
print(subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


def own() -> ProcessIdentity:
    identity = identify(os.getpid())
    assert identity is not None
    return identity


def test_a_process_is_alive_only_with_its_own_start_time() -> None:
    assert own().alive()
    assert not ProcessIdentity(pid=os.getpid(), started="1").alive()


def test_a_signal_never_reaches_a_stranger_with_the_same_pid() -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        ProcessIdentity(pid=stranger.pid, started="1").send(signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            stranger.wait(0.1)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_zombie_is_gone_and_an_ended_process_unknown() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    identity = identify(process.pid)
    assert identity is not None
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    now = state_of(process.pid)
    assert now is not None
    assert now.state == "Z"
    assert not identity.alive()
    process.wait()
    assert state_of(process.pid) is None


def test_a_name_with_parentheses_and_spaces_does_not_disturb(tmp_path: Path) -> None:
    program = tmp_path / "a ) Z 1 2"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "60"])
    try:
        now = state_of(process.pid)
        assert now is not None
        assert now.group == os.getpgrp()
    finally:
        process.kill()
        process.wait()


def test_a_pid_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_pid_file(tmp_path / "a.pid", own())
    assert read_pid_file(tmp_path / "a.pid") == own()
    assert [path.name for path in tmp_path.iterdir()] == ["a.pid"]


def test_a_pid_file_moves_with_its_folder_and_a_copy_of_it_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    write_pid_file(tmp_path / "pids" / "a.pid", own())
    (tmp_path / "pids").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    assert read_pid_file(tmp_path / "moved" / "a.pid") == own()
    assert read_pid_file(tmp_path / "copy" / "a.pid") is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="a missing file"),
        pytest.param(b"", id="an empty file"),
        pytest.param(b"12", id="a pid without a start time"),
        pytest.param(b"x 1", id="a pid that is no number"),
        pytest.param(b"\xff\xfe", id="bytes that are no text"),
    ],
)
def test_what_is_no_pid_file_names_nobody(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.pid").write_bytes(content)
    assert read_pid_file(tmp_path / "a.pid") is None


def test_members_of_a_group_are_found_also_when_its_leader_is_gone() -> None:
    leader = subprocess.Popen(
        [sys.executable, "-c", FOUNDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert leader.stdout is not None
    member = int(leader.stdout.readline())
    identity = identify(leader.pid)
    assert identity is not None
    assert sorted(group_members(identity)) == sorted([leader.pid, member])
    leader.communicate()
    assert list(group_members(identity)) == [member]
    os.kill(member, signal.SIGKILL)


def test_the_group_of_a_stranger_with_the_same_pid_has_no_members() -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        assert list(group_members(ProcessIdentity(pid=stranger.pid, started="1"))) == []
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_of_a_container_is_no_neighbour() -> None:
    assert is_neighbour(os.getpid())
    assert not is_neighbour(1 << 22)
    namespace = subprocess.Popen(["unshare", "--pid", "--fork", "sleep", "60"], stderr=subprocess.DEVNULL)
    try:
        outside = psutil.Process(namespace.pid)
        while not (inside := outside.children()):
            if namespace.poll() is not None:
                pytest.skip("a namespace of its own takes root")
        assert is_neighbour(namespace.pid)
        assert not is_neighbour(inside[0].pid)
        inside[0].kill()
    finally:
        namespace.kill()
        namespace.wait()


def test_a_pid_file_goes_with_its_process_and_not_before(tmp_path: Path) -> None:
    write_pid_file(tmp_path / "alive.pid", own())
    write_pid_file(tmp_path / "gone.pid", ProcessIdentity(pid=os.getpid(), started="1"))
    (tmp_path / "damaged.pid").write_text("what")
    remove_stale_pid_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive.pid", "damaged.pid"]
    remove_stale_pid_files(tmp_path / "no such folder")
