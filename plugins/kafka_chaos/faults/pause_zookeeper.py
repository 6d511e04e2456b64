"""Pauses ZooKeeper servers with SIGSTOP. Heals by SIGCONT.

Confirmed by: the state of the servers.
"""

from typing import ClassVar

from harness.cluster.capabilities import CanPauseZookeeper
from harness.contracts.faults import Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.zookeeper_servers import SERVERS, ZookeeperFault, describe_servers, servers_of, states_of
from harness.system.process_state import ProcessState
from harness.system.waiting import until

SEE_TIMEOUT_S = 2.0


class PauseZookeeper(ZookeeperFault):
    """Pauses servers for the fault's duration; the driver itself resumes them then."""

    name: ClassVar[str] = "pause-zookeeper"
    requires: ClassVar[tuple[str, ...]] = ("zookeeper-pause",)

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Pause them."""
        assert isinstance(context.driver, CanPauseZookeeper)
        for server_id in injection.state[SERVERS]:
            await context.driver.pause_zookeeper(server_id, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Look at the state of each."""
        servers = injection.state[SERVERS]
        paused = until(
            lambda: states_of(context),
            lambda states: all(states[server_id] == ProcessState.PAUSED for server_id in servers),
            what=f"{describe_servers(servers)} paused",
            timeout_s=min(SEE_TIMEOUT_S, injection.state["at_most_s"]),
            every_s=0.02,
        )
        return await confirmed_once(paused, f"{describe_servers(servers)} paused")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Resume them; no-op for those that run."""
        assert isinstance(context.driver, CanPauseZookeeper)
        states = await states_of(context)
        for server_id in servers_of(injection.state):
            if states[server_id] == ProcessState.PAUSED:
                await context.driver.resume_zookeeper(server_id)


PLUGIN: type[Fault] = PauseZookeeper
