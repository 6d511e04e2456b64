"""What faults of ZooKeeper servers share: their targets, and how an effect is confirmed."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from harness.cluster.capabilities import SeesZookeeper
from harness.contracts.faults import Disturbance, Fault, FaultContext, Injection
from harness.contracts.targets import Part, Role, Target
from harness.errors import ClusterError
from harness.system.process_state import ProcessState

SERVERS = "servers"
"""Key in the state of an injection that hits ZooKeeper servers: their numbers."""


class ZookeeperFault(Fault):
    """Hits ZooKeeper servers only, so that brokers may be under other faults meanwhile."""

    may_overlap: ClassVar[bool] = True
    zookeeper: ClassVar[bool] = True
    controllers: ClassVar[bool] = False
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    accepts: ClassVar[tuple[Role, ...]] = (Role.ZOOKEEPER,)

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the servers and the duration.

        Raises:
            ClusterError: there is no such server, or it does not run.
        """
        servers = await running_servers(context, target)
        return Injection(
            fault=self.name,
            targets=(),
            parameters=parameters.model_dump(mode="json"),
            state={SERVERS: servers, "at_most_s": duration_s},
        )


async def running_servers(context: FaultContext, target: Target) -> list[int]:
    """Return the servers that a target names now; raises ClusterError when one of them does not run."""
    servers, states = await _servers(context, target), await states_of(context)
    for number in servers:
        if (state := states.get(number)) != ProcessState.RUNNING:
            raise ClusterError(f"ZooKeeper server {number} is {state or 'not there'}: nothing was injected")
    return servers


async def _servers(context: FaultContext, target: Target) -> list[int]:
    """Return the servers that a target names now; raises ClusterError when it names none."""
    if not target.part:
        return list(target.servers)
    wanted = ("leader", "standalone") if target.part is Part.LEADER else (target.part,)
    servers = [number for number, mode in sorted((await modes_of(context)).items()) if mode in wanted]
    if not servers:
        raise ClusterError(f"no server is {target.described} now: nothing was injected")
    return servers[:1]


async def states_of(context: FaultContext) -> dict[int, ProcessState]:
    """Return running, paused or stopped by server."""
    return {server.server_id: server.state for server in (await context.driver.status()).zookeeper}


async def modes_of(context: FaultContext) -> dict[int, str]:
    """Return each server's report of its mode; empty if it serves no requests."""
    assert isinstance(context.driver, SeesZookeeper)
    return await context.driver.zookeeper_modes()


def servers_of(state: Mapping[str, Any]) -> list[int]:
    """Return the ZooKeeper servers of an injection's state; none where the fault is on brokers."""
    servers: list[int] = state.get(SERVERS, [])
    return servers


def describe_servers(servers: list[int]) -> str:
    """Return the servers as the subject of a sentence."""
    return f"ZooKeeper server{'s' * (len(servers) > 1)} {', '.join(map(str, servers))}"
