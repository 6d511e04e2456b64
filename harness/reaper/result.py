"""The fate of each thing that dead runs left."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from harness.verdict import ExitCode


class ItemKind(StrEnum):
    """What a run may leave behind."""

    RUN = "run"
    """The run itself, which did not end properly."""
    PROCESS = "process"
    CONTAINER = "container"
    NETWORK = "network"
    VOLUME = "volume"
    SOCKET = "socket"
    GROUP = "control group"
    """Of processes that were limited."""
    FOLDER = "folder"


class Fate(StrEnum):
    """The reaper's action on it."""

    REMOVED = "removed"
    CLOSED = "closed"
    """Of a run: its remaining evidence is collected, everything else is removed, and it has a verdict."""
    DUE = "due"
    """In a dry run: it would have been removed or closed."""
    KEPT = "kept"
    FAILED = "failed"


class Item(BaseModel):
    """One thing and its fate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ItemKind
    name: str
    run: str = ""
    """Name of the run folder it belongs to."""
    fate: Fate
    detail: str = ""
    """Why it was kept or could not be removed; the verdicts of a closed run."""

    def __str__(self) -> str:
        """Return it as a line for a log."""
        belongs = f" of {self.run}" if self.run and self.run != self.name else ""
        return f"{self.fate}: {self.kind} {self.name}{belongs}" + (f": {self.detail}" if self.detail else "")


class ReapResult(BaseModel):
    """All items of one round; `model_dump` is what `chaos reap --json` prints."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: list[Item] = []
    remarks: list[str] = []
    """A sentence for each place that could not be searched; a missing Docker engine is no failure."""

    def of(self, *fates: Fate) -> list[Item]:
        """Return the items with one of these fates."""
        return [item for item in self.items if item.fate in fates]

    @property
    def exit_code(self) -> ExitCode:
        """ENVIRONMENT when a thing could not be removed, else HELD."""
        return ExitCode.ENVIRONMENT if self.of(Fate.FAILED) else ExitCode.HELD
