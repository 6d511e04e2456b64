"""What does a server or a client do right now, as seen from outside?"""

from enum import StrEnum


class ProcessState(StrEnum):
    """The state of a process."""

    RUNNING = "running"
    PAUSED = "paused"
    """It has not ended, and stands still."""
    STOPPED = "stopped"
    """It has ended, or was never started."""
