"""The resources of a broker that can be limited, and the kernel's counters for each."""

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """The resource of a limit."""

    CPU = "cpu"
    """CPU time. The amount is how many CPUs, as 0.1."""
    MEMORY = "memory"
    """Memory. The amount is how many bytes more than now; the kernel kills a process that needs more."""
    FILES = "files"
    """Open files, sockets among them. The amount is how many more than now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The kernel's counters of a broker and one resource."""

    limit: float | None
    """CPUs, bytes or files; None if only the machine limits it."""
    hits: int = 0
    """CPU: throttled periods. Memory: processes killed. Files: unknown."""
