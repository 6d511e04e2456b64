"""The exit codes of this project's programs: one for every kind of error, and never a traceback for bad input."""

import sys
import traceback
from collections.abc import Callable

import typer

from harness.errors import ClusterError, HarnessError, Interrupted, NotInstalled
from harness.system.extras import not_installed
from harness.verdict import ExitCode


def exit_code_of(error: HarnessError) -> ExitCode:
    """Return the exit code of an error that ended a command."""
    if isinstance(error, ClusterError | NotInstalled):
        return ExitCode.ENVIRONMENT
    return ExitCode.INCONCLUSIVE if isinstance(error, Interrupted) else ExitCode.USAGE


def with_exit_codes(program: Callable[[], object]) -> None:
    """Run a program; an error of the harness becomes its message on stderr and its exit code, a bug is 4.

    A file that cannot be read or written, and a missing package of an extra, are errors of the harness too.
    """
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
