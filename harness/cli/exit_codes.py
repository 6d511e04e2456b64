"""The exit codes of this project's programs: one for every kind of error, and never a traceback for bad input."""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

import typer

from harness.errors import ClusterError, HarnessError, Interrupted, NotInstalled
from harness.system.extras import not_installed
from harness.verdict import ExitCode


def exit_code_of(error: HarnessError) -> ExitCode:
    """Return the exit code of an error that ended a command."""
    if isinstance(error, ClusterError | NotInstalled):
        return ExitCode.ENVIRONMENT
    return ExitCode.INCONCLUSIVE if isinstance(error, Interrupted) else ExitCode.USAGE


class _Patient:
    """A stream that falls silent when its reader ends, as in `chaos run smoke | head`: the command continues.

    The reaction of typer and rich is exit code 1, which would claim a violation.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or discard what has no reader."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._fall_silent()
            return len(text)

    def flush(self) -> None:
        """Flush, or discard what has no reader."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        with Path(os.devnull).open("w") as nowhere:  # buffered output is discarded
            os.dup2(nowhere.fileno(), self._stream.fileno())


def with_exit_codes(program: Callable[[], object]) -> None:
    """Run a program; an error of the harness becomes its message on stderr and its exit code, a bug is 4.

    A file that cannot be read or written, and a missing package of an extra, are errors of the harness too. Output
    without a reader is discarded.
    """
    out, err = (cast("TextIO", _Patient(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        _with_exit_codes(program)


def _with_exit_codes(program: Callable[[], object]) -> None:
    try:
        program()
    except HarnessError as error:
        typer.echo(str(error), err=True)
        sys.exit(exit_code_of(error))
    except OSError as error:
        typer.echo(str(error), err=True)
        sys.exit(ExitCode.ENVIRONMENT)
    except Exception as error:  # noqa: BLE001  Python's own exit status for it is 1, which would claim a violation
        typer.echo(not_installed(error) or traceback.format_exc(), err=True)
        sys.exit(ExitCode.ENVIRONMENT)
