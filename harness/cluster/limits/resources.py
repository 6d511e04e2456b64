"""Of what can a broker have less than it takes, and what does the kernel say of that?"""

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """What a limit is of."""

    CPU = "cpu"
    """CPU time. The amount is how many CPUs, as 0.1."""
    MEMORY = "memory"
    """Memory. The amount is how many bytes more than now; whoever has more than that is killed by the kernel."""
    FILES = "files"
    """Open files, sockets among them. The amount is how many more than now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the kernel says of a broker and one resource."""

    limit: float | None
    """CPUs, bytes or files; None where nothing limits it but the machine."""
    hits: int = 0
    """Of CPU: in how many periods it was held back. Of memory: how often something was killed. Of files: not known."""
