"""A log of syncs: what a power loss would leave of each file, a line for each change.

A line is written after its sync has returned. So a killed broker may have synced more than its log says, and never
less.
"""

from pathlib import Path

_MORE, _AT_MOST = "synced", "cut"


def sync_line(number: int, size: int, *, more: bool) -> bytes:
    """Return the line for a file, by its number, with the bytes on the disk at least (`more`), or at most."""
    return f"{_MORE if more else _AT_MOST} {number} {size}\n".encode()


def read_syncs(path: Path) -> dict[int, int]:
    """Return the bytes of each file that are certainly on the disk, by its number; a torn line is skipped."""
    sizes: dict[int, int] = {}
    for line in path.read_text(encoding="ascii").splitlines(keepends=True):
        kind, number, size = line.split(" ") if line.endswith("\n") and line.count(" ") == 2 else ("", "0", "0")
        if kind == _MORE:
            sizes[int(number)] = int(size)
        elif kind == _AT_MOST and int(number) in sizes:
            sizes[int(number)] = min(sizes[int(number)], int(size))
    return sizes
