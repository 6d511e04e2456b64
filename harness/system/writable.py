"""Can a command's result be written? Checked before the work, so that none is lost. And why could something not be?"""

import errno
import os
from pathlib import Path

from harness.errors import ScenarioError


def make_parent(path: Path) -> None:
    """Make the folder of a file that is to be written.

    Raises:
        ScenarioError: it cannot be made, or nothing can be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        file = next((each for each in path.parents if each.exists() and not each.is_dir()), None)
        why = describe_error(error, path) if file is None else f"{file} is a file, not a folder"
        raise ScenarioError(f"{path} cannot be written: {why}") from error
    if path.is_dir():
        raise ScenarioError(f"{path} cannot be written: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise ScenarioError(f"{path} cannot be written: nothing can be written in {path.parent}")


def describe_error(error: Exception, place: Path) -> str:
    """Return an error's message; a full disk by its name, which the error itself does not have.

    Args:
        error: Any error.
        place: Where files were written if the error names none.
    """
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return str(error) or type(error).__name__
    named = Path(error.filename2 or error.filename or place).absolute()
    disk = next(each for each in (named, *named.parents) if each.is_mount())
    return f"the disk {disk} is full: {error}"
