"""What a reaper did: every thing it came upon, and what became of it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from harness.verdict import ExitCode


class Kind(StrEnum):
    """What a run may leave behind."""

    RUN = "run"
    """The run itself: a folder without an end to its story."""
    PROCESS = "process"
    CONTAINER = "container"
    NETWORK = "network"
    VOLUME = "volume"
    SOCKET = "socket"
    FOLDER = "folder"


class Fate(StrEnum):
    """What became of it."""

    REMOVED = "removed"
    CLOSED = "closed"
    """Of a run: what could still be had is in its folder, everything else is gone, and it has a verdict."""
    DUE = "due"
    """It would have been removed or closed, were this no rehearsal."""
    KEPT = "kept"
    FAILED = "failed"


class Item(BaseModel):
    """One thing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    name: str
    run: str = ""
    """Name of the run folder it belongs to."""
    fate: Fate
    detail: str = ""
    """Why it was kept, or could not be removed; what a closed run came to."""

    def __str__(self) -> str:
        """Return it as a line of a log."""
        belongs = f" of {self.run}" if self.run and self.run != self.name else ""
        return f"{self.fate}: {self.kind} {self.name}{belongs}" + (f": {self.detail}" if self.detail else "")


class Reaped(BaseModel):
    """All of it; `model_dump` is what `chaos reap --json` prints."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: list[Item] = []
    remarks: list[str] = []
    """What could not be looked at, in a sentence each: no engine is none that holds anything of ours."""

    def of(self, *fates: Fate) -> list[Item]:
        """Return the items with one of these fates."""
        return [item for item in self.items if item.fate in fates]

    @property
    def exit_code(self) -> ExitCode:
        """HELD when nothing is left that should not be, ENVIRONMENT when something could not be removed."""
        return ExitCode.ENVIRONMENT if self.of(Fate.FAILED) else ExitCode.HELD
