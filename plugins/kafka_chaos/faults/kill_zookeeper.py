"""Kills ZooKeeper servers with SIGKILL. Heals by starting them again with their data.

Sessions survive: clients continue at another server.

Confirmed by: the processes are gone, and another server leads (`srvr`) or, without a quorum, none serves requests.
"""

import asyncio
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanKillZookeeper
from harness.contracts.faults import Effect, Fault, FaultContext, Injection, confirmed, mismatch
from harness.contracts.parameters import Strict
from harness.contracts.zookeeper_servers import SERVERS, ZookeeperFault, describe_servers, modes_of, states_of
from harness.errors import DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until

NO_QUORUM = "no quorum left, and no server takes requests"
SERVE_TIMEOUT_S = 60.0
"""For servers that were started again to take requests."""


class Parameters(Strict):
    """Parameters of the fault."""

    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the others to elect a leader, or to refuse requests")
    ] = 30.0


class KillZookeeper(ZookeeperFault):
    """Kills servers, observes the others, and starts them again."""

    name: ClassVar[str] = "kill-zookeeper"
    requires: ClassVar[tuple[str, ...]] = ("zookeeper-kill",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Kill them, at once."""
        assert isinstance(context.driver, CanKillZookeeper)
        await asyncio.gather(*map(context.driver.kill_zookeeper, injection.state[SERVERS]))
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until each process is gone, and one of the others leads, or none serves requests without a quorum."""
        servers: list[int] = injection.state[SERVERS]
        expected = {NO_QUORUM, *(f"{describe_servers([number])} leads" for number in await states_of(context))}

        async def look() -> str:
            states, modes = await states_of(context), await modes_of(context)
            if alive := [number for number in servers if states[number] != ProcessState.STOPPED]:
                return f"{describe_servers(alive)} not gone"
            running = [number for number, state in states.items() if state == ProcessState.RUNNING]
            if len(running) > len(states) // 2:
                leaders = [number for number in running if modes[number] == "leader"]
                return f"{describe_servers(leaders)} leads" if len(leaders) == 1 else f"no leader among {modes}"
            return f"requests taken without a quorum: {modes}" if any(modes.values()) else NO_QUORUM

        try:
            seen = await until(
                look,
                expected.__contains__,
                what=f"end of {describe_servers(servers)}",
                timeout_s=injection.parameters["confirm_timeout_s"],
            )
        except DeadlineError as error:
            return mismatch(str(error))
        return confirmed(f"{describe_servers(servers)} gone, {seen}")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start those that do not run, all at once, and wait until all take requests."""
        assert isinstance(context.driver, CanKillZookeeper)
        servers, states = injection.state[SERVERS], await states_of(context)
        stopped = [number for number in servers if states[number] == ProcessState.STOPPED]
        await asyncio.gather(*map(context.driver.start_zookeeper, stopped))
        await until(
            lambda: modes_of(context),
            lambda modes: all(modes[number] for number in servers),
            what=f"{describe_servers(servers)} taking requests",
            timeout_s=SERVE_TIMEOUT_S,
        )


PLUGIN: type[Fault] = KillZookeeper
