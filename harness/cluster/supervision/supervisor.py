"""The parent of every process of one cluster: starts, disturbs and ends them, and leaves none behind.

`python -m harness.cluster.supervision.supervisor DIR [--owner-pid PID] [--run-id ID]` returns when the supervisor is
ready and goes on in the background, in a session and process group of its own. It takes one command a connection over
the unix socket in DIR, a JSON line, and answers with another (`harness.cluster.supervision.client`).

It ends all of them on the command `shutdown`, at SIGTERM, when its owner has ended in any way, when DIR was moved or
removed, or when a cluster without an owner expires. If the supervisor itself is killed, the kernel kills its children
(PR_SET_PDEATHSIG; on Linux).

Standard library only, so that it is up in a tenth of a second.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, BinaryIO

from harness.cluster.clocks import FOLDER as CLOCKS
from harness.cluster.clocks import SECOND_NS, SET, Clock, setting_of
from harness.cluster.ports import PortReservations
from harness.cluster.supervision.children import Child, all_exited
from harness.cluster.supervision.command_socket import CommandError, Commands, taking
from harness.cluster.supervision.lifetime import folder_moved, process_gone
from harness.system.parent import bound_to_parent
from harness.system.pids import identify, write_pid_file
from harness.system.process_state import ProcessState
from harness.system.whole_file import replace_text

SOCKET_NAME = "supervisor.sock"
LOCK_NAME = "supervisor.lock"
LOG_NAME = "supervisor.log"
EVENTS_NAME = "supervisor.jsonl"
PIDS_NAME = "pids"
SUPERVISOR_PID_NAME = "supervisor.pid"

GRACE_S = 1.0
KILL_TIMEOUT_S = 5.0
STOP_POLL_S = 0.005
STOP_TIMEOUT_S = 2.0


class Supervisor:
    """Owns the children; every command is a method that takes plain values and returns them."""

    def __init__(self, events: BinaryIO) -> None:
        self._children: dict[str, Child] = {}
        self._clocks: dict[str, Clock] = {}
        self._clock_timers: dict[str, asyncio.TimerHandle] = {}
        self._started_elsewhere_ns: dict[str, int] = {}
        """When a process was started that is no child, and whose clock is set."""
        self._clocks_right_ns: dict[str, int] = {}
        """When those that were set apart got the machine's clock again."""
        self._events = events
        self._ports = PortReservations()
        self._ended = asyncio.Event()
        self._shutting_down = False
        self._owner_watch: asyncio.Task[None] | None = None
        self._folder_watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[dict[str, Any]] | None = None
        self._pid = os.getpid()
        self._bind_to_kill = bound_to_parent(self._pid, signal.SIGKILL)
        self._bind_to_terminate = bound_to_parent(self._pid, signal.SIGTERM)

    @property
    def commands(self) -> Commands:
        """Every command by its name."""
        return {
            "spawn": self.spawn,
            "signal": self.signal,
            "wait": self.wait,
            "pause": self.pause,
            "resume": self.resume,
            "set_clock": self.set_clock,
            "reset_clock": self.reset_clock,
            "clock_started": self.clock_started,
            "status": self.status,
            "ports": self.ports,
            "disown": self.disown,
            "shutdown": self.shutdown,
        }

    async def spawn(
        self,
        name: str,
        argv: list[str],
        log: str,
        env: dict[str, str] | None = None,
        stage: int = 0,
        grace_s: float | None = None,
    ) -> dict[str, Any]:
        """Start a process; its output is appended to `log`, `env` is added to the supervisor's own environment.

        Processes of a lower `stage` are shut down first. One with a `grace_s` has that time between SIGTERM and
        SIGKILL, starts with SIGTERM blocked, and gets SIGTERM instead of SIGKILL when the supervisor is killed.
        """
        before = self._children.get(name)
        pid_file = _pid_path(name)
        if self._shutting_down:
            raise CommandError("the cluster is shutting down")
        if before is not None and before.running:
            raise CommandError(f"{name} runs already, pid {before.process.pid}")
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        started_ns = time.monotonic_ns()
        if name in self._clocks:
            _write_clock(name, self._clocks[name], started_ns)
        with open(log, "ab") as output:  # noqa: PTH123, ASYNC230 (a local file; the child inherits it)
            process = subprocess.Popen(  # noqa: S603, ASYNC220
                argv,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=self._bind_to_kill if grace_s is None else self._bind_to_terminate,
            )
        starts = 1 if before is None else before.starts + 1
        self._children[name] = Child(
            name=name,
            stage=stage,
            process=process,
            log=log,
            starts=starts,
            started_ns=started_ns,
            grace_s=grace_s,
        )
        identity = identify(process.pid)
        assert identity is not None, "an ended child stays until its status is read"
        write_pid_file(pid_file, identity)
        self._note("spawned", name, pid=process.pid, starts=starts)
        return {"pid": process.pid, "starts": starts}

    async def signal(self, name: str, signal: str) -> dict[str, Any]:
        """Send a signal by its name (TERM, KILL …)."""
        child = self._running(name)
        number = _signal_number(signal)
        self._note("signalled", name, signal=signal)
        child.send(number)
        return {"pid": child.process.pid}

    async def wait(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Wait for the end of a process and return its exit status; null when it still runs after the time."""
        child = self._child(name)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.exited.wait(), timeout_s)
        return {"exited": not child.running, "status": child.status}

    async def pause(self, name: str, at_most_s: float) -> dict[str, Any]:
        """Freeze a process, and thaw it after `at_most_s` at the latest; return when it is stopped."""
        child = self._running(name)
        if at_most_s <= 0:
            raise CommandError(f"at_most_s must be positive, not {at_most_s}")
        self._cancel_timer(child)
        child.resume_timer = asyncio.get_running_loop().call_later(at_most_s, self._thaw, child)
        self._note("paused", name, at_most_s=at_most_s)
        child.send(signal.SIGSTOP)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while child.state is not ProcessState.PAUSED:
            if not child.running or time.monotonic() > deadline:
                raise CommandError(f"{name} is {child.state}, not paused")
            await asyncio.sleep(STOP_POLL_S)
        return {"pid": child.process.pid}

    async def resume(self, name: str) -> dict[str, Any]:
        """Thaw a process; nothing happens when it is not paused."""
        child = self._running(name)
        self._thaw(child)
        return {"pid": child.process.pid}

    async def set_clock(
        self, name: str, step_s: float, rate: float, at_most_s: float, started_ns: int | None = None
    ) -> dict[str, Any]:
        """Shift a process's wall clock, and set it back after `at_most_s` at the latest; return when it is shifted.

        The process reads the change at the machine's next full second, if it was started with libfaketime. `started_ns`
        is the start of a process that is not a child.
        """
        if started_ns is None:
            self._child(name)
        else:
            self._started_elsewhere_ns[name] = started_ns
        if at_most_s <= 0 or rate <= 0:
            raise CommandError(f"at_most_s and rate must be positive, not {at_most_s} and {rate}")
        self._forget_clock(name)
        clock = Clock(since_ns=_next_second_ns(), step_s=step_s, rate=rate)
        self._clocks[name] = clock
        loop = asyncio.get_running_loop()
        until_then_s = (clock.since_ns - time.monotonic_ns()) / SECOND_NS
        self._clock_timers[name] = loop.call_later(until_then_s + at_most_s, self._reset_clock, name)
        self._tell_clock(name, clock)
        await asyncio.sleep((clock.since_ns - time.monotonic_ns()) / SECOND_NS)
        return {}

    async def reset_clock(self, name: str) -> dict[str, Any]:
        """Put a process's wall clock to the machine's, if it is not; return when it goes so."""
        since_ns = self._reset_clock(name)
        await asyncio.sleep(max(0, since_ns - time.monotonic_ns()) / SECOND_NS)
        return {}

    async def clock_started(self, name: str, started_ns: int) -> dict[str, Any]:
        """Hear of another process of this name that is no child: what is set goes on for it."""
        self._started_elsewhere_ns[name] = started_ns
        if name in self._clocks:
            _write_clock(name, self._clocks[name], started_ns)
        return {}

    def _reset_clock(self, name: str) -> int:
        """Return when it got the machine's clock again."""
        if self._forget_clock(name) is not None:
            self._clocks_right_ns[name] = _next_second_ns()
            self._tell_clock(name, Clock(since_ns=self._clocks_right_ns[name]))
        return self._clocks_right_ns.get(name, 0)

    def _forget_clock(self, name: str) -> Clock | None:
        if name in self._clock_timers:
            self._clock_timers.pop(name).cancel()
        return self._clocks.pop(name, None)

    def _tell_clock(self, name: str, clock: Clock) -> None:
        started_ns = self._children[name].started_ns if name in self._children else self._started_elsewhere_ns[name]
        _write_clock(name, clock, started_ns)
        self._note(SET, name, since_ns=clock.since_ns, step_s=clock.step_s, rate=clock.rate)

    async def status(self) -> dict[str, Any]:
        """Return every process that was ever started, by name."""
        return {
            "pid": self._pid,
            "processes": {
                child.name: {
                    "pid": child.process.pid,
                    "state": child.state,
                    "status": child.status,
                    "starts": child.starts,
                    "log": child.log,
                }
                for child in self._children.values()
            },
        }

    async def ports(self, count: int) -> dict[str, Any]:
        """Reserve free ports for as long as the supervisor lives."""
        return {"ports": self._ports.reserve(count)}

    async def shutdown(self, timeout_s: float = GRACE_S) -> dict[str, Any]:
        """End all processes, stage by stage, then itself: SIGTERM, then SIGKILL after `timeout_s` or `grace_s`."""
        self._shutting_down = True
        killed: list[str] = []
        for stage in sorted({child.stage for child in self._children.values()}):
            children = [child for child in self._children.values() if child.stage == stage and child.running]
            killed += await self._end(children, timeout_s)
        self._ended.set()
        return {"killed": killed}

    async def _end(self, children: list[Child], timeout_s: float) -> list[str]:
        for child in children:
            child.send(signal.SIGTERM)
            self._thaw(child)
        graces = [child.grace_s for child in children if child.grace_s is not None]
        await all_exited(children, max([timeout_s, *graces]))
        late = [child for child in children if child.running]
        for child in late:
            self._note("signalled", child.name, signal="KILL")
            child.send(signal.SIGKILL)
        await all_exited(late, KILL_TIMEOUT_S)
        return [child.name for child in late]

    async def disown(self, expires_after_s: float | None = None) -> dict[str, Any]:
        """Live on without the owner; end everything after `expires_after_s` if that is given."""
        if self._owner_watch is not None:
            self._owner_watch.cancel()
        if expires_after_s is not None:
            asyncio.get_running_loop().call_later(expires_after_s, self.end)
        return {}

    def end_with_owner(self, owner: int) -> None:
        """Shut down when the process with this pid is gone."""
        self._owner_watch = self._end_after(process_gone(owner))

    def end_with_folder(self, folder: Path) -> None:
        """Shut down when the working directory is no longer at this path."""
        self._folder_watch = self._end_after(folder_moved(folder))

    def end(self) -> None:
        """Begin to shut down."""
        self._ending = asyncio.ensure_future(self.shutdown())

    def close(self) -> None:
        """Release the ports and cancel all watches."""
        self._ports.release()
        for task in (self._owner_watch, self._folder_watch, self._ending):
            if task is not None:
                task.cancel()

    async def ended(self) -> None:
        """Return when everything was shut down."""
        await self._ended.wait()

    def reap(self) -> None:
        """Record the exit of every child that has ended; called at SIGCHLD."""
        for child in self._children.values():
            if child.running and (status := child.process.poll()) is not None:
                child.status = status
                self._cancel_timer(child)
                _pid_path(child.name).unlink(missing_ok=True)
                self._note("exited", child.name, pid=child.process.pid, status=status)
                child.exited.set()

    def _end_after(self, event: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        watch = asyncio.ensure_future(event)
        watch.add_done_callback(lambda watch: None if watch.cancelled() else self.end())
        return watch

    def _child(self, name: str) -> Child:
        if name not in self._children:
            raise CommandError(f"no process {name}; there are: {', '.join(self._children) or 'none'}")
        return self._children[name]

    def _running(self, name: str) -> Child:
        child = self._child(name)
        if not child.running:
            raise CommandError(f"{name} does not run; its exit status was {child.status}")
        return child

    def _thaw(self, child: Child) -> None:
        self._cancel_timer(child)
        if child.state is ProcessState.PAUSED:
            self._note("resumed", child.name)
        child.send(signal.SIGCONT)

    def _cancel_timer(self, child: Child) -> None:
        if child.resume_timer is not None:
            child.resume_timer.cancel()
            child.resume_timer = None

    def _note(self, event: str, name: str, **details: Any) -> None:
        line = {"time_ns": time.monotonic_ns(), "event": event, "name": name, **details}
        self._events.write(json.dumps(line).encode() + b"\n")


def _pid_path(name: str) -> Path:
    if not name or "/" in name or name.startswith("."):
        raise CommandError(f"{name!r} cannot name a process")
    return Path(PIDS_NAME, f"{name}.pid")


def _write_clock(name: str, clock: Clock, started_ns: int) -> None:
    readable = 0o644  # a server in a container is another user
    replace_text(Path(CLOCKS, name), setting_of(clock, started_ns), mode=readable)


def _next_second_ns() -> int:
    """Return when the machine's next second begins, on the monotonic clock."""
    return time.monotonic_ns() + SECOND_NS - time.time_ns() % SECOND_NS


def _signal_number(name: str) -> int:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        raise CommandError(f"unknown signal {name}") from None


async def serve(folder: Path, owner: int | None, ready: Callable[[], None]) -> None:
    """Serve commands in `folder`, the working directory, until everything is shut down. `owner` is a pid, or None."""
    loop = asyncio.get_running_loop()
    with open(EVENTS_NAME, "ab", buffering=0) as events:  # noqa: PTH123, ASYNC230
        supervisor = Supervisor(events)
        loop.add_signal_handler(signal.SIGCHLD, supervisor.reap)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, supervisor.end)
        supervisor.end_with_folder(folder)
        if owner is not None:
            supervisor.end_with_owner(owner)
        try:
            async with taking(supervisor.commands, SOCKET_NAME):
                ready()
                await supervisor.ended()
        finally:
            supervisor.close()


def _become_supervisor(folder: Path, owner: int | None, report: int) -> None:
    """Run in the background process: take the lock, serve, and say on `report` that it is ready or why not."""
    os.setsid()
    os.umask(0o077)
    lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(report, b"another supervisor runs in this folder")
        return
    log = os.open(LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    identity = identify(os.getpid())
    assert identity is not None, "this process runs"
    write_pid_file(Path(PIDS_NAME, SUPERVISOR_PID_NAME), identity)

    def ready() -> None:
        os.write(report, b"ready")
        os.close(report)

    asyncio.run(serve(folder, owner, ready))
    os.killpg(0, signal.SIGKILL)  # whatever a child may have left in the group, and itself


def main(arguments: list[str] | None = None) -> int:
    """Start the supervisor in the background and return when it is ready: 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="harness.cluster.supervision.supervisor", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--owner-pid", type=int, help="end everything when this process is gone")
    parser.add_argument("--run-id", default="", help="shown in the process list, for people and for the reaper")
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    os.chdir(folder)
    Path(PIDS_NAME).mkdir(exist_ok=True)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _become_supervisor(folder, options.owner_pid, writer)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as report:  # noqa: PTH123
        outcome = report.read().decode()
    if outcome != "ready":
        sys.stderr.write(outcome or f"the supervisor died at its start; see {folder / LOG_NAME}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
