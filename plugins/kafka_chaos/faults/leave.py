"""Closes a member of a group: it commits and leaves. Heals by starting it again.

`times` makes it leave and rejoin in a row. A static member (KIP-345) leaves without a request, so its group misses it
when its session ends. Choose a member that is not restless.

Confirmed by: the coordinator's log, and a later generation.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    mismatch,
)
from harness.contracts.members import CLIENT, Members, member_before
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role, Target
from harness.errors import ClusterError, DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until

LEFT = "left"
"""Reason for the removal of a member that left."""


class Parameters(Strict):
    """Parameters of a leaving member."""

    times: Annotated[int, Field(ge=1, le=10, description="How often in a row; in between it returns at once")] = 1
    step_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the coordinator to log each leave and join")
    ] = 30.0


class Leave(Fault):
    """Closes members of groups, and starts them again."""

    name: ClassVar[str] = "leave"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    accepts: ClassVar[tuple[Role, ...]] = (Role.MEMBER,)
    witnesses: ClassVar[tuple[str, ...]] = ("group_member", "group_state")
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the member's identity, and where the brokers' logs end."""
        state = await member_before(context.members, target, duration_s)
        every = [each.broker_id for each in (await context.driver.status()).brokers]
        ends = {str(broker): await context.state_changes.end_of(broker) for broker in every}
        known_as = _members(context).known_as(state[CLIENT])
        of_group = {"group": target.group, "known_as": known_as, "log_ends": ends}
        injection = Injection(
            fault=self.name, targets=(), parameters=parameters.model_dump(mode="json"), state={**state, **of_group}
        )
        return injection.with_state(there=await _there(context, injection))

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Make it leave; before it leaves again, its group must have it back."""
        members, process = _members(context), injection.state[CLIENT]
        for number in range(1, injection.parameters["times"] + 1):
            await members.leave(process)
            if number < injection.parameters["times"]:
                await members.start_again(process)
                await self._await_membership(context, injection, joined=number)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until coordinators have logged each join and removal, and a generation without it."""
        times = injection.parameters["times"]
        try:
            membership = await self._await_membership(
                context, injection, removed=times, joined=times - 1, without_it=True
            )
        except DeadlineError as error:
            return mismatch(str(error))
        reasons = ", ".join(membership["reasons"])
        return confirmed(
            f"client {injection.state[CLIENT]} is out ({reasons}); then came generation {membership['generation']}"
        )

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start it again."""
        process = injection.state[CLIENT]
        if context.members is not None and await context.members.state(process) == ProcessState.STOPPED:
            await context.members.start_again(process)

    async def _await_membership(
        self,
        context: FaultContext,
        injection: Injection,
        *,
        joined: int = 0,
        removed: int = 0,
        without_it: bool = False,
    ) -> dict[str, Any]:
        """Return the lines of coordinators about it, once there are as many as expected."""
        return await until(
            lambda: _membership(context, injection),
            lambda membership: (
                membership["joined"] >= joined
                and len(membership["reasons"]) >= removed
                and (not without_it or membership["generation"] is not None)
            ),
            what=f"{removed} ends and {joined} beginnings of a membership of client {injection.state[CLIENT]}",
            timeout_s=injection.parameters["step_timeout_s"],
        )


def _members(context: FaultContext) -> Members:
    if context.members is None:
        raise ClusterError("the clients of this run cannot be reached: nothing was injected")
    return context.members


async def _there(context: FaultContext, injection: Injection) -> list[str]:
    """Return the ids under which a client is in its group, by the coordinators' logs."""
    own = [line for line in await _lines(context, injection, from_start=True) if _is_own(line, injection)]
    return sorted(_came(own) - {line["member"] for line in own if line["change"] == "removed"})


async def _membership(context: FaultContext, injection: Injection) -> dict[str, Any]:
    """Return the number of a client's joins, the reasons of its removals, and the first generation after the last.

    Earlier memberships do not count, nor do expired sessions, unless the member leaves by one.
    """
    lines = await _lines(context, injection)
    own = [line for line in lines if _is_own(line, injection)]
    ids = _came(own) | {*injection.state["there"]}
    without_a_word = injection.state["known_as"] != injection.state[CLIENT]  # an instance
    removals = [
        line
        for line in own
        if line["change"] == "removed" and line["member"] in ids and (without_a_word or line["reason"] == LEFT)
    ]
    last = max((line["generation"] for line in removals), default=-1)
    generations = [line["generation"] for line in lines if line["ev"] == "group_state"]
    after = min((each for each in generations if each > last), default=None)
    return {
        "joined": sum(line["change"] == "joined" for line in own),
        "reasons": [line["reason"] for line in removals],
        "generation": after if removals else None,
    }


async def _lines(context: FaultContext, injection: Injection, *, from_start: bool = False) -> list[dict[str, Any]]:
    """Return the coordinators' lines about a group, since `prepare` or from the start of their logs."""
    lines: list[dict[str, Any]] = []
    for broker, position in injection.state["log_ends"].items():
        seen, _ = await context.state_changes.after(int(broker), 0 if from_start else position, *Leave.witnesses)
        lines += [line for line in seen if line["group"] == injection.state["group"]]
    return lines


def _is_own(line: dict[str, Any], injection: Injection) -> bool:
    return line["ev"] == "group_member" and str(line["member"]).startswith(f"{injection.state['known_as']}-")


def _came(own: list[dict[str, Any]]) -> set[str]:
    return {line["member"] for line in own if line["change"] != "removed"}


PLUGIN: type[Fault] = Leave
