"""The chart library of a page: one file beside all reports of a site, or part of the page."""

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from plotly.offline import get_plotlyjs


@cache
def name() -> str:
    """Return the file name of the installed release."""
    return f"plotly-{hashlib.sha256(text().encode()).hexdigest()[:16]}.min.js"  # as `LIBRARY` of the store says


def text() -> str:
    """Return the library itself."""
    script: str = get_plotlyjs()
    return script


def put_beside(folder: Path) -> str:
    """Make sure that the file is beside a folder with a page, and return its address from there.

    Return an empty address if it cannot be written there, as beside a run that is mounted alone.
    """
    beside = folder.parent / name()
    temporary = beside.with_suffix(f".{os.getpid()}")
    try:
        if not beside.exists():
            temporary.write_text(text(), encoding="utf-8")
            temporary.replace(beside)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        return ""
    return f"../{name()}"
