"""Takes memory until the kernel kills a process, or this one; PID 0 is the child of a container's first process.

`python -m harness.cluster.limits.pressure PID BYTES`, in the control group of that process, which is the first to be
killed then. Standard library only.
"""

import sys
from pathlib import Path

from harness.cluster.limits.descriptors import server_here

FIRST_TO_GO = "1000"
_STEP = 1 << 20


def main(arguments: list[str]) -> int:
    """Take this many bytes, piece by piece."""
    pid, size = map(int, arguments)
    Path(f"/proc/{pid or server_here()}/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    held = [b"x" * _STEP for _ in range(size // _STEP)]
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
