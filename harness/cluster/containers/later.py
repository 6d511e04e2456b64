"""What is to happen to containers later, whatever becomes of those who want it: `python -m … guard` and `… thaw`.

Both are children of the cluster's supervisor with a grace of their own: they get SIGTERM when the supervisor ends, and
when it is killed, and have SIGTERM blocked until they ask for it, so none is missed.

- `guard ROOT RUN_ID` waits for SIGTERM, then brings the data of the run out of its containers and removes everything.
- `thaw CONTAINER SECONDS` thaws a container after that time, or at SIGTERM.

The guard is standard library only until it acts, so that a run costs no memory for what hardly ever happens.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Engine

T = TypeVar("T")

GUARD = "guard"
THAW = "thaw"
GRACE_S = 30.0
"""How long it is tried to reach an engine that does not answer."""
RETRY_S = 0.5
SETTLE_S = 1.0
"""After which the engine has done what it was asked for by somebody who was killed meanwhile."""
LATE_S = 5.0
"""How long after its time a container is thawed that was not frozen before."""
LATE_POLL_S = 0.1


def guard(root: Path, run_id: str) -> None:
    """Wait for SIGTERM, then bring the run's data out and remove all that was made for it."""
    signal.sigwait({signal.SIGTERM})
    from harness.cluster.containers.bringing_out import bring_out, containers_held
    from harness.cluster.layout import ClusterLayout
    from harness.errors import ClusterError

    def brought_out(engine: "Engine") -> list[str]:
        try:
            layout = ClusterLayout.load(root)
        except ClusterError as error:  # the folder was removed, for example; all the more must the rest go
            return [str(error)]
        return bring_out(engine, layout)

    def act(engine: "Engine") -> None:
        with containers_held(root, GRACE_S):
            if engine.made(root):
                for missing in brought_out(engine):
                    _say(missing)
            for made in engine.remove_run(root):
                _say(f"removed the {made.kind} {made.name} of run {run_id}")
            time.sleep(SETTLE_S)
            engine.remove_run(root)

    _with_engine(act)


def thaw(container: str, seconds: float) -> None:
    """Thaw a container after some seconds or at SIGTERM; without SIGTERM one that is frozen a little later too."""
    frozen_until_s = time.monotonic() + seconds
    import docker  # noqa: F401 - beforehand, so that the end is in time

    told = signal.sigtimedwait({signal.SIGTERM}, max(0.0, frozen_until_s - time.monotonic()))
    while not _with_engine(lambda engine: _thawed(engine, container)):
        if told or time.monotonic() > frozen_until_s + LATE_S:
            return
        told = signal.sigtimedwait({signal.SIGTERM}, LATE_POLL_S)


def _thawed(engine: "Engine", container: str) -> bool:
    """Thaw a container if it is frozen; return whether it was."""
    state = engine.state(container)
    frozen = state is not None and state.state == "paused"
    if frozen:
        engine.unpause(container)
    return frozen


def _with_engine(act: "Callable[[Engine], T]") -> T:
    """Return what `act` does with the engine; tried again for a while when that does not answer."""
    from harness.cluster.containers.engine import Engine, EngineUnavailable

    deadline = time.monotonic() + GRACE_S
    while True:
        try:
            with Engine.connect() as engine:
                return act(engine)
        except EngineUnavailable as error:
            if time.monotonic() > deadline:
                raise
            _say(str(error))
            time.sleep(RETRY_S)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(arguments: list[str] | None = None) -> int:
    """Do one of them and return the exit status."""
    parser = argparse.ArgumentParser(prog="harness.cluster.containers.later", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    guarding = commands.add_parser(GUARD)
    guarding.add_argument("root", type=Path)
    guarding.add_argument("run_id")
    thawing = commands.add_parser(THAW)
    thawing.add_argument("container")
    thawing.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # where the supervisor could not
    from harness.errors import ClusterError

    try:
        if options.command == GUARD:
            guard(options.root, options.run_id)
        else:
            thaw(options.container, options.seconds)
    except ClusterError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
