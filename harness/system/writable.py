"""Can a command's result be written? Checked before the work, so that none is lost."""

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
        raise ScenarioError(f"{path} cannot be written: {error}") from error
    if not os.access(path.parent, os.W_OK):
        raise ScenarioError(f"{path} cannot be written: nothing can be written in {path.parent}")
