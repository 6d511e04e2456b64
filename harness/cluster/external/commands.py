"""Carries out a user's command: without a shell, in bounded time, and without the run's environment."""

import contextlib
import os
import shlex
import signal
import string
import subprocess
import tempfile
from collections.abc import Iterable, Mapping

from harness.cluster.supervision.supervision import CLUSTER_VARIABLE
from harness.errors import ClusterError, DeadlineError

PLACEHOLDERS = ("host", "name", "id", "into", "prefix")
TAIL_BYTES = 400


def problem_of(template: str) -> str:
    """Return why a template cannot be a command; empty if it can."""
    try:
        words = shlex.split(template)
        fields = [
            name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            for word in words
            for _, name, spec, conversion in string.Formatter().parse(word)
            if name is not None
        ]
    except ValueError as error:
        return f"cannot be split into words: {error}"
    if not words:
        return "says nothing"
    unknown = sorted(set(fields) - set(PLACEHOLDERS))
    return f"unknown {_braced(unknown)}; known: {_braced(PLACEHOLDERS)}" if unknown else ""


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def filled(template: str, values: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command; a value never spans more than one argument.

    Raises:
        ClusterError: the template cannot be a command.
    """
    if problem := problem_of(template):
        raise ClusterError(problem)
    return [word.format_map(values) for word in shlex.split(template)]


def carry_out(argv: list[str], what: str, timeout_s: float) -> None:
    """Carry out a command; `what` names it in messages, as its arguments may hold secrets.

    What it leaves running is no part of this run: it is in a session of its own, without the mark by which processes
    of a run are found and ended, and takes signals as usual.

    Raises:
        ClusterError: there is no such program, or it ended with a status other than 0; quotes the end of its stderr.
        DeadlineError: it did not end in time, and was killed.
    """
    environment = {name: value for name, value in os.environ.items() if name != CLUSTER_VARIABLE}
    with tempfile.TemporaryFile() as errors:  # a pipe would be held open by its children
        try:
            process = subprocess.Popen(  # noqa: S603  the user's own words
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                cwd="/",  # the same for the driver and the guard
                start_new_session=True,
                preexec_fn=_unmasked,
            )
        except OSError as error:
            raise ClusterError(f"{what} cannot be carried out: {argv[0]}: {error.strerror}") from error
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise DeadlineError(f"{what} did not end within {timeout_s:g} s, and was killed") from None
        if status:
            errors.seek(max(0, errors.tell() - TAIL_BYTES))
            message = errors.read().decode(errors="replace").strip()
            raise ClusterError(f"{what} ended with status {status}" + (f": {message}" if message else ""))


def _unmasked() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
