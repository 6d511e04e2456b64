"""How does a task run a command of this repository in a process of its own? What it says goes to the task's log.

A command that is ended, whatever way its task ends, gets Ctrl-C and ends what it started.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.system.parent import bound_to_parent

ROOT = Path(__file__).resolve().parents[3]


def run_command(
    listener: Callable[[str], None],
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> int:
    """Run `python -m` with these arguments, pass its output on line by line, and return its exit code.

    It is ended when the listener raises.
    """
    path = filter(None, (str(checkout), str(checkout / "plugins"), os.environ.get("PYTHONPATH")))
    with subprocess.Popen(  # noqa: S603  arguments of our own
        [sys.executable, "-m", *arguments],
        cwd=checkout,
        env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=bound_to_parent(os.getpid(), signal.SIGINT),  # a task that is marked by hand is killed
    ) as command:
        assert command.stdout is not None
        try:
            for line in command.stdout:
                listener(line.rstrip())
        except BaseException:  # a time limit: the way in which Airflow ends a task that it does not kill
            command.send_signal(signal.SIGINT)
            raise
    return command.returncode
