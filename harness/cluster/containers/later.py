"""What is to happen to containers later, whatever becomes of those who want it: `python -m … guard` and `… pause`.

Both are children of the cluster's supervisor with a grace of their own: they get SIGTERM when the supervisor ends, and
when it is killed, and have SIGTERM blocked until they ask for it, so none is missed.

- `guard ROOT RUN_ID` waits for SIGTERM, then brings the data of the run out of its containers and removes everything.
- `pause CONTAINER SECONDS` freezes a container and thaws it after that time, or at SIGTERM.

Standard library only until they act, so that a run costs no memory for what hardly ever happens.
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
PAUSE = "pause"
GRACE_S = 30.0
"""How long it is tried to reach an engine that does not answer."""
RETRY_S = 0.5


def guard(root: Path, run_id: str) -> None:
    """Wait for SIGTERM, then bring the run's data out and remove all that was made for it."""
    signal.sigwait({signal.SIGTERM})
    from harness.cluster.containers.bringing_out import bring_out, containers_held
    from harness.cluster.layout import ClusterLayout

    def act(engine: "Engine") -> None:
        with containers_held(root, GRACE_S):
            if engine.made(root):
                for missing in bring_out(engine, ClusterLayout.load(root)):
                    _say(missing)
            for made in engine.remove_run(root):
                _say(f"removed the {made.kind} {made.name} of run {run_id}")

    _with_engine(act)


def pause(container: str, seconds: float) -> None:
    """Freeze a container, and thaw it after some seconds or at SIGTERM, if it is frozen still."""
    _with_engine(lambda engine: engine.pause(container))
    signal.sigtimedwait({signal.SIGTERM}, seconds)

    def thaw(engine: "Engine") -> None:
        state = engine.state(container)
        if state is not None and state.state == "paused":
            engine.unpause(container)

    _with_engine(thaw)


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
    pausing = commands.add_parser(PAUSE)
    pausing.add_argument("container")
    pausing.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    from harness.errors import ClusterError

    try:
        if options.command == GUARD:
            guard(options.root, options.run_id)
        else:
            pause(options.container, options.seconds)
    except ClusterError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
