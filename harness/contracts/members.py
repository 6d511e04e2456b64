"""What faults may do to clients of the load, which go on in the same history when they return."""

from typing import Any, Protocol

from harness.contracts.targets import Target
from harness.errors import ClusterError
from harness.system.process_state import ProcessState

CLIENT = "client"
"""Of the state of an injection that hits a client: which."""


class Members(Protocol):
    """The clients of a run, as faults see them."""

    def member(self, group: str, number: int) -> str:
        """Return the process of a group's member, counted from 1; raises ClusterError when there is none."""
        ...

    def client(self, role: str, number: int) -> str:
        """Return the process of a client by its role, counted from 1; raises ClusterError when there is none."""
        ...

    async def state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        ...

    async def kill(self, process: str) -> None:
        """End it without a word."""
        ...

    def known_as(self, process: str) -> str:
        """Return what the ids begin with that its group gives it, before the next dash."""
        ...

    async def leave(self, process: str) -> None:
        """Let it commit, leave its group and end; raises ClusterError if it did not end well."""
        ...

    async def start_again(self, process: str) -> None:
        """Start one that was killed or has left."""
        ...

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Freeze it, for `at_most_s` at most."""
        ...

    async def resume(self, process: str) -> None:
        """Let it go on."""
        ...


async def member_before(members: Members | None, target: Target, duration_s: float) -> dict[str, Any]:
    """Return what a fault notes of a member, or another client.

    Raises:
        ClusterError: there is no such client, or it does not run.
    """
    if members is None:
        raise ClusterError("the clients of this run are out of reach: nothing was injected")
    if target.group:
        process = members.member(target.group, target.member)
    else:
        process = members.client(target.role, target.member)
    if (state := await members.state(process)) != ProcessState.RUNNING:
        raise ClusterError(f"client {process} is {state}: nothing was injected")
    return {CLIENT: process, "at_most_s": duration_s}
