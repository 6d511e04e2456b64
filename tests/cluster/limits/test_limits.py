"""What a limited process may have, and that nothing is left of the limit, on real processes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.limits import control_groups, descriptors, limiter
from harness.cluster.limits.control_groups import Group, Tree, group_of, groups_of
from harness.cluster.limits.resources import Resource, Usage
from harness.system.pids import identify
from harness.system.waiting import until

pytestmark = pytest.mark.real_time("a real process, which the kernel limits")
needs = {
    resource: pytest.mark.skipif(bool(reason := control_groups.lacking(resource)), reason=reason or "it can")
    for resource in control_groups.RESOURCES
}
AT_MOST_S = 60
BUSY = [sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"]
OPENING = """
import sys
held = []
print('ready', flush=True)
for _ in sys.stdin:
    try:
        held.append(open('/dev/null'))
    except OSError as error:
        print(error.errno, flush=True)
    else:
        print('opened', flush=True)
"""


def begun(argv: list[str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def busy() -> Iterator["subprocess.Popen[str]"]:
    with begun(BUSY) as process:
        yield process
        process.kill()


def limiting(root: Path, pid: int, resource: Resource, amount: float, seconds: float) -> "subprocess.Popen[bytes]":
    what = [str(root), "server", str(pid), resource, str(amount), str(seconds)]
    return subprocess.Popen([sys.executable, "-m", limiter.__name__, *what])


async def throttled(root: Path) -> None:
    group = group_of(root, "server", Resource.CPU)

    async def hits() -> int:
        return group.usage().hits

    await until(hits, bool, what="a process that was held back", timeout_s=AT_MOST_S)
    assert group.usage().limit == 0.05


@needs[Resource.CPU]
async def test_a_busy_process_is_held_back_until_its_limiter_is_told_to_end(
    tmp_path: Path, busy: "subprocess.Popen[str]"
) -> None:
    with limiting(tmp_path, busy.pid, Resource.CPU, 0.05, AT_MOST_S) as watchdog:
        await throttled(tmp_path)
        watchdog.terminate()
        assert watchdog.wait(AT_MOST_S) == 0
    assert [*groups_of(tmp_path)] == []
    assert busy.poll() is None


@needs[Resource.CPU]
async def test_what_a_killed_limiter_leaves_is_found_by_the_run_folder_and_removed(
    tmp_path: Path, busy: "subprocess.Popen[str]"
) -> None:
    with limiting(tmp_path, busy.pid, Resource.CPU, 0.05, AT_MOST_S) as watchdog:
        await throttled(tmp_path)
        watchdog.kill()
    assert [*groups_of(tmp_path / "another")] == []
    (group,) = groups_of(tmp_path)
    group.remove()
    group.remove()
    assert [*groups_of(tmp_path)] == []
    assert busy.poll() is None


@needs[Resource.MEMORY]
def test_a_process_without_memory_is_killed_by_the_kernel_and_its_limiter_waits(tmp_path: Path) -> None:
    with begun(BUSY) as process, limiting(tmp_path, process.pid, Resource.MEMORY, 4 << 20, AT_MOST_S) as watchdog:
        assert process.wait(AT_MOST_S) == -signal.SIGKILL
        assert group_of(tmp_path, "server", Resource.MEMORY).usage().hits > 0
        watchdog.terminate()
        assert watchdog.wait(AT_MOST_S) == 0
    assert [*groups_of(tmp_path)] == []


def test_a_process_knows_whether_it_can_open_so_many_files_more() -> None:
    most = descriptors.KEPT_FREE + 400
    program = f"""
import resource
from harness.cluster.limits.descriptors import limit_of, room_for
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {most}))
print(room_for(300), limit_of(0), room_for(400))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    fits, limit, why = printed.partition(f" {most} ")
    assert (fits, bool(limit)) == ("", True)
    assert f"and may have {most}, too few for 400 more" in why


def test_a_process_opens_as_many_files_as_it_is_left_and_again_any_when_that_is_lifted() -> None:
    with begun([sys.executable, "-c", OPENING]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = descriptors.leave(process.pid, 2)
        process.stdin.write("\n" * 3)
        process.stdin.flush()
        assert [process.stdout.readline().strip() for _ in range(3)] == ["opened", "opened", "24"]
        descriptors.lift(process.pid, before)
        assert descriptors.limit_of(process.pid) == before
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "opened\n"
        process.kill()


def test_a_limit_of_files_ends_with_its_time(tmp_path: Path, busy: "subprocess.Popen[str]") -> None:
    before = descriptors.limit_of(busy.pid)
    with limiting(tmp_path, busy.pid, Resource.FILES, 0, 0.1) as watchdog:
        assert watchdog.wait(AT_MOST_S) == 0
    assert descriptors.limit_of(busy.pid) == before


def test_a_limiter_of_a_process_that_is_gone_says_so(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert identify(gone.pid) is None
    with limiting(tmp_path, gone.pid, Resource.FILES, 0, AT_MOST_S) as watchdog:
        assert watchdog.wait(AT_MOST_S) == 1


def test_nobody_is_limited_who_may_not_make_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = control_groups.Tree(resource=Resource.CPU, unified=False, root=tmp_path / "none", home=tmp_path)
    monkeypatch.setattr(control_groups, "_tree", lambda _: tree)
    control_groups.lacking.cache_clear()
    assert control_groups.lacking(Resource.CPU).startswith("no control group can be made: ")
    control_groups.lacking.cache_clear()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("resource", "amount", "before", "written", "usage"),
    [
        pytest.param(
            Resource.CPU,
            0.05,
            {"cpu.max": "max 100000", "cpu.stat": "usage_usec 7\nnr_periods 9\nnr_throttled 3\n"},
            {"cpu.max": "5000 100000"},
            Usage(limit=0.05, hits=3),
            id="CPU time",
        ),
        pytest.param(
            Resource.MEMORY,
            4 << 20,
            {"memory.max": "max", "memory.swap.max": "max", "memory.events": "low 0\noom 2\noom_kill 1\n"},
            {"memory.max": "4194304", "memory.swap.max": "0"},
            Usage(limit=4 << 20, hits=1),
            id="memory and swap",
        ),
        pytest.param(
            Resource.MEMORY,
            4 << 20,
            {"memory.max": "max", "memory.events": "oom_kill 0\n"},
            {"memory.max": "4194304"},
            Usage(limit=4 << 20),
            id="memory where there is no swap",
        ),
    ],
)
def test_groups_of_version_2_are_written_and_read_as_the_kernel_documents_them(
    tmp_path: Path,
    resource: Resource,
    amount: float,
    before: dict[str, str],
    written: dict[str, str],
    usage: Usage,
) -> None:
    group = Group(tree=Tree(resource=resource, unified=True, root=tmp_path, home=tmp_path), name="group")
    group.folder.mkdir()
    for name, text in before.items():
        (group.folder / name).write_text(text)
    assert group.usage().limit is None
    group.limit(amount)
    assert {name: (group.folder / name).read_text() for name in written} == written
    assert {path.name for path in group.folder.iterdir()} == before.keys()
    assert group.usage() == usage
