"""Watchdog processes that clean up a run's containers when its supervisor and its driver have died.

- `python -m harness.cluster.containers.guard guard ROOT RUN_ID` waits for SIGTERM, then copies the data out of the
  run's containers and removes everything.
- `… thaw CONTAINER SECONDS` thaws a container after that time, or at SIGTERM.
- `… lift CONTAINER RESOURCE BEFORE SECONDS` lifts a limit likewise, to what it was before.
- `… unfilter CONTAINER SECONDS` lets a container's packets pass likewise.

All are children of the cluster's supervisor with a `grace_s`: they get SIGTERM when the supervisor ends or is killed,
and have it blocked until they wait for it, so that it is never missed. Until it acts the guard imports the standard
library only, to save memory in every run that needs no guard.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.cluster.limits.resources import Resource

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Engine

T = TypeVar("T")

GUARD = "guard"
THAW = "thaw"
LIFT = "lift"
UNFILTER = "unfilter"
GRACE_S = 30.0
"""How long to retry an engine that does not answer."""
RETRY_S = 0.5
SETTLE_S = 1.0
"""By then the engine has carried out the last request of a driver that was killed."""
LATE_S = 5.0
"""How long after its time a container is still thawed if it was not frozen yet."""
LATE_POLL_S = 0.1


def guard(root: Path, run_id: str) -> None:
    """Wait for SIGTERM, then copy the data of the run out of its containers and remove all that was created for it."""
    signal.sigwait({signal.SIGTERM})
    from harness.cluster.containers.data_copy import containers_lock, copy_data
    from harness.cluster.layout import ClusterLayout
    from harness.errors import ClusterError

    def copied(engine: "Engine") -> list[str]:
        try:
            layout = ClusterLayout.load(root)
        except ClusterError as error:  # for example the folder was removed; the containers must go all the same
            return [str(error)]
        return copy_data(engine, layout)

    def act(engine: "Engine") -> None:
        with containers_lock(root, GRACE_S):
            if engine.resources(root):
                for missing in copied(engine):
                    _log(missing)
            for resource in engine.remove_run(root):
                _log(f"removed the {resource.kind} {resource.name} of run {run_id}")
            time.sleep(SETTLE_S)
            engine.remove_run(root)

    _with_engine(act)


def thaw(container: str, seconds: float) -> None:
    """Thaw a container after some seconds or at SIGTERM; without SIGTERM also one frozen up to `LATE_S` later."""
    frozen_until_s = time.monotonic() + seconds
    import docker  # noqa: F401 - loaded now, so that the container is thawed in time

    terminated = signal.sigtimedwait({signal.SIGTERM}, max(0.0, frozen_until_s - time.monotonic()))
    while not _with_engine(lambda engine: _thawed(engine, container)):
        if terminated or time.monotonic() > frozen_until_s + LATE_S:
            return
        terminated = signal.sigtimedwait({signal.SIGTERM}, LATE_POLL_S)


def lift(container: str, resource: Resource, before: float, seconds: float) -> None:
    """Lift a container's limit after some seconds or at SIGTERM; one whose container is gone is lifted."""
    signal.sigtimedwait({signal.SIGTERM}, seconds)
    from harness.cluster.containers import unlimit

    def lifted(engine: "Engine") -> None:
        if engine.state(container) is not None:
            unlimit.lift(engine, container, resource, before)

    _with_engine(lifted)


def let_pass(container: str, seconds: float) -> None:
    """Let a container's packets pass after some seconds or at SIGTERM; one that is gone drops none."""
    signal.sigtimedwait({signal.SIGTERM}, seconds)
    from harness.cluster.containers import filters

    state = _with_engine(lambda engine: engine.state(container))
    if state is not None and state.runs and state.pid is not None:
        filters.let_pass(state.pid)


def _thawed(engine: "Engine", container: str) -> bool:
    """Thaw a container if it is frozen; return whether it was."""
    state = engine.state(container)
    frozen = state is not None and state.state == "paused"
    if frozen:
        engine.unpause(container)
    return frozen


def _with_engine(act: "Callable[[Engine], T]") -> T:
    """Return what `act` returns; try again for `GRACE_S` when the engine does not answer."""
    from harness.cluster.containers.engine import Engine, EngineUnavailable

    deadline = time.monotonic() + GRACE_S
    while True:
        try:
            with Engine.connect() as engine:
                return act(engine)
        except EngineUnavailable as error:
            if time.monotonic() > deadline:
                raise
            _log(str(error))
            time.sleep(RETRY_S)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(arguments: list[str] | None = None) -> int:
    """Carry out one of the commands and return the exit status."""
    parser = argparse.ArgumentParser(prog="harness.cluster.containers.guard", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    guard_parser = commands.add_parser(GUARD)
    guard_parser.add_argument("root", type=Path)
    guard_parser.add_argument("run_id")
    thaw_parser = commands.add_parser(THAW)
    thaw_parser.add_argument("container")
    thaw_parser.add_argument("seconds", type=float)
    lift_parser = commands.add_parser(LIFT)
    lift_parser.add_argument("container")
    lift_parser.add_argument("resource", type=Resource)
    lift_parser.add_argument("before", type=float)
    lift_parser.add_argument("seconds", type=float)
    pass_parser = commands.add_parser(UNFILTER)
    pass_parser.add_argument("container")
    pass_parser.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # where the supervisor could not
    from harness.errors import ClusterError

    try:
        if options.command == GUARD:
            guard(options.root, options.run_id)
        elif options.command == LIFT:
            lift(options.container, options.resource, options.before, options.seconds)
        elif options.command == UNFILTER:
            let_pass(options.container, options.seconds)
        else:
            thaw(options.container, options.seconds)
    except ClusterError as error:
        _log(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
