"""A group in memory, whose coordinator is broker 0 of a cluster in memory."""

from dataclasses import dataclass, field

from harness.system.process_state import ProcessState
from tests.fake_cluster import FakeCluster


@dataclass
class FakeMembers:
    """One member of a group, that does what it is told unless it is deaf; its coordinator may be silent."""

    cluster: FakeCluster
    deaf: bool = False
    silent: bool = False
    now: ProcessState = ProcessState.RUNNING
    generation: int = 4
    calls: list[str] = field(default_factory=list)
    lives: int = 1
    """How often any was started: a part of the ids that the group gives."""
    instance: str = ""

    def __post_init__(self) -> None:
        """Let the second member have joined."""
        line = {"group": "group-1", "generation": self.generation, "change": "joined", "reason": ""}
        self.cluster.say(0, ev="group_member", member=self.known_as("group-1-member-2") + "-1f", **line)

    def member(self, group: str, number: int) -> str:
        return f"{group}-member-{number}"

    def client(self, role: str, number: int) -> str:
        return f"{role}-{number}"

    def known_as(self, process: str) -> str:
        return self.instance or process

    async def state(self, _process: str) -> ProcessState:
        return self.now

    async def kill(self, process: str) -> None:
        self._do(f"kill {process}", ProcessState.STOPPED)

    async def leave(self, process: str) -> None:
        self._do(f"leave {process}", ProcessState.STOPPED)
        self._tell(process, "removed", "left")

    async def start_again(self, process: str) -> None:
        self._do(f"start {process}", ProcessState.RUNNING)
        self.lives += 1
        self._tell(process, "joined", "")

    async def pause(self, process: str, *, at_most_s: float) -> None:
        self._do(f"pause {process} for {at_most_s}", ProcessState.PAUSED)

    async def resume(self, process: str) -> None:
        self._do(f"resume {process}", ProcessState.RUNNING)

    def _do(self, call: str, state: ProcessState) -> None:
        self.calls.append(call)
        self.now = self.now if self.deaf else state

    def _tell(self, process: str, change: str, reason: str) -> None:
        if not (self.deaf or self.silent):
            line = {"group": "group-1", "generation": self.generation}
            self.cluster.say(
                0,
                ev="group_member",
                member=f"{self.known_as(process)}-{self.lives}f",
                change=change,
                reason=reason,
                **line,
            )
            self.generation += 1
            self.cluster.say(0, ev="group_state", **line | {"generation": self.generation})
