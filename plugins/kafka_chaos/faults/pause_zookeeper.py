"""A ZooKeeper server stands still with all its connections, and goes on as if nothing had happened."""

from typing import ClassVar

from pydantic import BaseModel

from harness.cluster.powers import CanPauseZookeeper
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed_once
from harness.contracts.targets import Role, Target
from harness.errors import ClusterError
from harness.system.waiting import until

SEE_TIMEOUT_S = 2.0


class PauseZookeeper(BrokerFault):
    """Freezes one server for the fault's duration; the driver itself thaws it then."""

    name: ClassVar[str] = "pause-zookeeper"
    requires: ClassVar[tuple[str, ...]] = ("zookeeper-pause",)
    composes: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.ZOOKEEPER,)

    async def prepare(
        self, arena: Arena, target: Target, brokers: tuple[int, ...], parameters: BaseModel, *, duration_s: float
    ) -> Injection:
        """Note which server, and how long."""
        known = {server.server_id for server in (await arena.driver.status()).zookeeper}
        if target.server_id not in known:
            raise ClusterError(f"there is no ZooKeeper server {target.server_id}: nothing was injected")
        return Injection(fault=self.name, targets=(), state={"server_id": target.server_id, "at_most_s": duration_s})

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Freeze it."""
        assert isinstance(arena.driver, CanPauseZookeeper)
        state = injection.state
        await arena.driver.pause_zookeeper(state["server_id"], at_most_s=state["at_most_s"])
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Look at the state of the server."""
        server_id = injection.state["server_id"]
        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        paused = until(
            lambda: _state(arena, server_id),
            lambda seen: seen == "paused",
            what=f"ZooKeeper server {server_id} paused",
            timeout_s=timeout_s,
            every_s=0.02,
        )
        return await confirmed_once(paused, f"ZooKeeper server {server_id} is paused")

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Thaw it; one that runs already is left alone."""
        assert isinstance(arena.driver, CanPauseZookeeper)
        if await _state(arena, injection.state["server_id"]) == "paused":
            await arena.driver.resume_zookeeper(injection.state["server_id"])


async def _state(arena: Arena, server_id: int) -> str:
    servers = {server.server_id: server.state for server in (await arena.driver.status()).zookeeper}
    return servers.get(server_id, "stopped")


PLUGIN: type[Fault] = PauseZookeeper
