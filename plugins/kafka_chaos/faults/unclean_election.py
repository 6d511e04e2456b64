"""Kills the followers of a partition, lets its leader write more, kills it, and starts the followers again.

Where the topic allows it, a broker outside the ISR becomes leader, and what only the old leader had is lost. That loss
is counted as expected.

Confirmed by: the partition's state in ZooKeeper.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.driver import CanKill
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.parameters import Size, Strict
from harness.contracts.restoring import start_stopped
from harness.contracts.targets import Role, Target
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.zookeeper.view import PartitionView


class Parameters(Strict):
    """Parameters of an unclean election."""

    lag_records: Annotated[
        int, Size(), Field(ge=1, le=1_000_000, description="Records that the leader takes alone before it is killed")
    ] = 10
    step_timeout_s: Annotated[
        float,
        Field(gt=0, le=60, description="Deadline for each step: the ISR shrinks, the leader moves on, the election"),
    ] = 30.0


class UncleanElection(Fault):
    """Leaves a partition with live replicas outside its ISR only."""

    name: ClassVar[str] = "unclean-election"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("kill",)
    accepts: ClassVar[tuple[Role, ...]] = (Role.LEADER,)
    witnesses: ClassVar[tuple[str, ...]] = ("append",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the session time-outs of the followers, and then of the leader."""
        return 2 * session_timeout_s

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record leader and followers, all of which will be disturbed."""
        view = await _partition(context, target.topic, target.partition)
        followers = [broker for broker in view.assignment if broker != view.leader]
        if not followers:
            raise ClusterError(
                f"{target.topic}-{target.partition} has no follower that could come back without the leader"
            )
        return Injection(
            fault=self.name,
            targets=(view.leader, *followers),
            parameters=parameters.model_dump(),
            state={"topic": target.topic, "partition": target.partition, "leader": view.leader, "followers": followers},
        )

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Kill the followers, let the leader append alone, kill it, and start the followers."""
        driver, state = context.driver, injection.state
        assert isinstance(driver, CanKill)
        timeout_s = injection.parameters["step_timeout_s"]
        for follower in state["followers"]:
            await driver.kill_broker(follower)
        alone = await until(
            lambda: _partition(context, state["topic"], state["partition"]),
            lambda seen: set(seen.isr) == {state["leader"]} and seen.leader == state["leader"],
            what="an ISR of the leader alone",
            timeout_s=timeout_s,
        )
        since = await context.state_changes.end_of(state["leader"])
        lag = await self._leader_moves_on(context, injection, since, timeout_s)
        await driver.kill_broker(state["leader"])
        await start_stopped(context, tuple(state["followers"]))
        return injection.with_state(isr=list(alone.isr), leader_epoch=alone.leader_epoch, lag_records=lag)

    async def _leader_moves_on(self, context: FaultContext, injection: Injection, since: int, timeout_s: float) -> int:
        """Return how many records the leader appended alone, once there are enough."""
        state = injection.state
        taken, offset = 0, since

        async def look() -> int:
            nonlocal taken, offset
            events, offset = await context.state_changes.after(state["leader"], offset, "append")
            taken += sum(int(event["last_offset"] - event["base_offset"] + 1) for event in events if _of(state, event))
            return taken

        wanted: int = injection.parameters["lag_records"]
        return await until(
            look, lambda seen: seen >= wanted, what=f"{wanted} records at the leader alone", timeout_s=timeout_s
        )

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait for a leader from outside the last ISR, in a higher epoch."""
        state = injection.state
        if "isr" not in state:
            return inconclusive("the ISR was never the leader alone")
        try:
            view = await until(
                lambda: _partition(context, state["topic"], state["partition"]),
                lambda seen: (
                    seen.leader not in (NO_BROKER, state["leader"]) and seen.leader_epoch > state["leader_epoch"]
                ),
                what="a leader from outside the ISR",
                timeout_s=injection.parameters["step_timeout_s"],
            )
        except DeadlineError as error:
            return mismatch(str(error))
        return confirmed(
            f"broker {view.leader}, outside the ISR {state['isr']}, leads in epoch {view.leader_epoch} after"
            f" {state['leader_epoch']}; the old leader had taken {state['lag_records']} records alone",
        )

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start what does not run."""
        await start_stopped(context, injection.targets)


async def _partition(context: FaultContext, topic: str, partition: int) -> PartitionView:
    for view in await context.view.partitions():
        if (view.topic, view.partition) == (topic, partition):
            return view
    raise ClusterError(f"there is no state of {topic}-{partition}")


def _of(state: dict[str, Any], event: dict[str, Any]) -> bool:
    """Return whether an append was the leader's own, to this partition, while the leader was the whole ISR.

    An event without role and ISR counts if the metadata had the leader alone by then, and no other replica was alive.
    """
    of_partition = (event["topic"], event["partition"]) == (state["topic"], state["partition"])
    return of_partition and event["role"] in ("leader", "") and event["isr_size"] in (1, None)


PLUGIN: type[Fault] = UncleanElection
