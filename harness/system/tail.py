"""Files of lines that grow while they are read. Only whole lines count: a line may be seen while it is written."""

from pathlib import Path

BLOCK_BYTES = 65_536


def end_of_lines(path: Path) -> int:
    """Return where the last whole line of a file ends, in bytes; 0 where there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while end:
            start = file.seek(max(end - BLOCK_BYTES, 0))
            if newline := file.read(end - start).rfind(b"\n") + 1:
                return start + newline
            end = start
    return 0


def whole_lines(path: Path, position: int) -> bytes:
    """Return what stands in a file from a position on, up to the end of its last whole line."""
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(position)
        data = file.read()
    return data[: data.rfind(b"\n") + 1]
