"""Which files has a process synced, that does not tell itself? A tracer notes its syncs and renames from its start.

A file counts as synced from its first sync on, whatever is written to it later; what is renamed takes that along. So
what is said to be unsynced never was.
"""

import re
from pathlib import Path

_CALLS = "fsync,fdatasync,rename,renameat,renameat2"
_BEGUN = re.compile(
    r"(?P<thread>\d+) +(?P<call>\w+)\((?P<arguments>.*?)(?: <unfinished \.\.\.>|\) += (?P<result>-?\d+).*)"
)
_ENDED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>.*\) += (?P<result>-?\d+).*")
_OPEN = re.compile(r"\d+<(?P<path>.*)>")
_RENAMED = re.compile(r'.*?"(?P<old>[^"]*)".*"(?P<new>[^"]*)".*')


def traced(argv: list[str], trace: Path) -> list[str]:
    """Return a command that notes in a file, at its end, what a process syncs and renames.

    The process is the child that it would be without; the tracer ends with it.
    """
    what = ["-e", f"trace={_CALLS}", "-e", "signal=none"]
    return ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-y", *what, "-A", "-o", str(trace), *argv]


def synced_files(trace: Path) -> set[Path]:
    """Return the files that were synced, by their present paths, of a process that names files by whole paths.

    Raises:
        FileNotFoundError: there is no trace.
    """
    synced: set[Path] = set()
    begun: dict[str, tuple[str, str]] = {}
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := _ENDED.fullmatch(line):
            call, arguments = begun.pop(match["thread"], ("", ""))
            result = match["result"]
        elif match := _BEGUN.fullmatch(line):
            call, arguments, result = match["call"], match["arguments"], match["result"]
            if result is None:
                begun[match["thread"]] = call, arguments
        else:
            continue
        if result == "0":
            _note(synced, call, arguments)
    return synced


def _note(synced: set[Path], call: str, arguments: str) -> None:
    if call.startswith("rename"):
        if match := _RENAMED.fullmatch(arguments):
            old, new = Path(match["old"]), Path(match["new"])
            synced.discard(new)
            if old in synced:
                synced.remove(old)
                synced.add(new)
    elif match := _OPEN.fullmatch(arguments):
        synced.add(Path(match["path"]))
