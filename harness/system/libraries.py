"""Where are libraries that processes load before all others, as those that set clocks apart or let disks fail?"""

import platform
from pathlib import Path

_FOLDERS = (f"lib/{platform.machine()}-linux-gnu", "lib", "lib64", "local/lib")


def installed(folder: str, *names: str) -> list[Path]:
    """Return the libraries of these names in the first place that has all of them; nothing where none has.

    Args:
        folder: Of what they belong to, below a folder of libraries.
        names: Of their files.
    """
    places = (Path("/usr", each, folder) for each in _FOLDERS)
    candidates = ([place / name for name in names] for place in places)
    return next((paths for paths in candidates if all(path.exists() for path in paths)), [])
