"""Files that are replaced in one step: a reader sees the old or the new content."""

from pathlib import Path


def replace_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a file anew, all or nothing; raises OSError.

    `mode`: its permissions; by default those of any new file.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
