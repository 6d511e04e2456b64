"""A process has a wall clock of its own by libfaketime, and everything else uses the machine's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cluster import faketime
from harness.cluster.clocks import FOLDER, SECOND_NS, Clock, setting_of
from harness.cluster.driver import CLOCK
from harness.cluster.processes.driver import ProcessDriver
from harness.errors import ClusterError, Refused
from harness.scenario.capabilities import require_capabilities
from harness.scenario.file import load_scenario
from harness.system import libraries

PYTHON = """\
import threading, time
began_s = time.monotonic()
time.sleep(0.05)
threading.Event().wait(0.05)
threading.Thread(target=time.sleep, args=[0.05]).start()
print(time.time(), began_s, time.monotonic() - began_s, flush=True)
time.sleep(60)
"""
JAVA = """\
public class Told {
    public static void main(String[] arguments) throws Exception {
        long began = System.nanoTime();
        Object lock = new Object();
        synchronized (lock) { lock.wait(50); }
        java.util.concurrent.locks.LockSupport.parkNanos(50_000_000L);
        long now = System.currentTimeMillis(), end = System.nanoTime();
        System.out.println(now / 1e3 + " " + began / 1e9 + " " + (end - began) / 1e9);
        System.out.flush();
        Thread.sleep(60_000);
    }
}
"""
WAITED_S = 0.1
needs_faketime = pytest.mark.skipif(faketime.library() is None, reason=faketime.lacking())


def shared() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir() if "faketime" in path.name}


@needs_faketime
@pytest.mark.parametrize("language", ["python", "java"])
def test_only_the_wall_clock_is_set_and_nothing_is_left_of_who_is_killed(tmp_path: Path, language: str) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    faketime.install(folder)
    environment = faketime.environment(folder, "server")
    (folder / FOLDER / "server").write_text(setting_of(Clock(since_ns=0, step_s=-3600), 0))
    if language == "java":
        (tmp_path / "Told.java").write_text(JAVA)
    argv = {"python": [sys.executable, "-c", PYTHON], "java": ["java", str(tmp_path / "Told.java")]}[language]
    before = shared()
    process = subprocess.Popen(argv, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        wall_s, monotonic_s, took_s = map(float, process.stdout.readline().split())
        now_s, now_monotonic_s = time.time(), time.monotonic()
    finally:
        process.kill()
        process.communicate()
    assert now_s - 3660 < wall_s <= now_s - 3600
    assert now_monotonic_s - 60 < monotonic_s <= now_monotonic_s
    assert took_s >= WAITED_S
    assert shared() <= before


@needs_faketime
def test_a_setting_is_kept_when_a_process_starts_again(tmp_path: Path) -> None:
    faketime.install(tmp_path)
    faketime.environment(tmp_path, "server")
    file = tmp_path / FOLDER / "server"
    assert file.read_text() == "+0 x1\n"
    file.write_text("+5 x1\n")
    faketime.environment(tmp_path, "server")
    assert file.read_text() == "+5 x1\n"


@needs_faketime
def test_a_drift_goes_on_from_where_it_is(tmp_path: Path) -> None:
    clock = Clock(since_ns=time.monotonic_ns(), rate=2)
    faketime.install(tmp_path)
    environment = faketime.environment(tmp_path, "server")
    started_ns = time.monotonic_ns()
    (tmp_path / FOLDER / "server").write_text(setting_of(clock, started_ns))
    program = "import time; time.sleep(0.3); print(time.time(), time.monotonic_ns())"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    ).stdout.split()
    ahead_s = time.time() - time.monotonic()
    wanted_s = int(printed[1]) / SECOND_NS + ahead_s + clock.ahead_ns(int(printed[1])) / SECOND_NS
    late_s = (time.monotonic_ns() - started_ns) / SECOND_NS
    assert wanted_s - late_s < float(printed[0]) < wanted_s + 0.1, "its clock begins with the process, a little later"


def test_where_it_is_not_installed_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(libraries, "_FOLDERS", ("nowhere",))
    reason = "there is no libfaketimeMT.so.1: install libfaketime (on Debian: apt-get install faketime)"
    assert ProcessDriver.lacks()[CLOCK] == reason
    with pytest.raises(ClusterError, match="apt-get install faketime"):
        faketime.install(tmp_path)
    with pytest.raises(Refused) as refused:
        require_capabilities(load_scenario("clock"))
    assert str(refused.value) == (
        f"the driver process cannot do this here: clock: {reason}; drivers that can: simulated"
    )
