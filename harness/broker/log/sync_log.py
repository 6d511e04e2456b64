"""What would a power loss leave of each file? A broker can keep a log of it, a line each time that changes.

A line is written after its sync has returned. So a killed broker may have synced more than its log says, and never
less.
"""

from pathlib import Path

_MORE, _AT_MOST = "synced", "cut"


def sync_line(number: int, size: int, *, more: bool) -> bytes:
    """Return the line that says of a file, by its number, how many bytes are on the disk (`more`), or at most are."""
    return f"{_MORE if more else _AT_MOST} {number} {size}\n".encode()


def read_syncs(path: Path) -> dict[int, int]:
    """Return how many bytes of each file are on the disk for certain, by its number; a torn line says nothing."""
    sizes: dict[int, int] = {}
    for line in path.read_text(encoding="ascii").splitlines(keepends=True):
        kind, number, size = line.split(" ") if line.endswith("\n") and line.count(" ") == 2 else ("", "0", "0")
        if kind == _MORE:
            sizes[int(number)] = int(size)
        elif kind == _AT_MOST and int(number) in sizes:
            sizes[int(number)] = min(sizes[int(number)], int(size))
    return sizes
