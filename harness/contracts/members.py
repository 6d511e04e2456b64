"""Faults of the load's clients, which continue the same history when they return."""

from typing import Any, Protocol

from harness.contracts.targets import Target
from harness.errors import ClusterError
from harness.system.process_state import ProcessState

CLIENT = "client"
"""Key in the state of an injection that hits a client: the client."""


class Members(Protocol):
    """The clients of a run, for faults."""

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
        """Kill it."""
        ...

    def known_as(self, process: str) -> str:
        """Return the prefix of its member ids, up to the next dash."""
        ...

    async def leave(self, process: str) -> None:
        """Let it commit, leave its group and end; raises ClusterError if it did not end well."""
        ...

    async def start_again(self, process: str) -> None:
        """Start one that was killed or has left."""
        ...

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Pause it, for `at_most_s` at most."""
        ...

    async def resume(self, process: str) -> None:
        """Resume it."""
        ...


async def member_before(members: Members | None, target: Target, duration_s: float) -> dict[str, Any]:
    """Return the state of a member, or another client, that a fault records.

    Raises:
        ClusterError: there is no such client, or it does not run.
    """
    if members is None:
        raise ClusterError("the clients of this run cannot be reached: nothing was injected")
    if target.group:
        process = members.member(target.group, target.member)
    else:
        process = members.client(target.role, target.member)
    if (state := await members.state(process)) != ProcessState.RUNNING:
        raise ClusterError(f"client {process} is {state}: nothing was injected")
    return {CLIENT: process, "at_most_s": duration_s}
