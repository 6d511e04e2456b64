"""A broker's host loses its power: nobody is told, what was not synced is gone; healed by starting it again."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.powers import CanCutPower
from harness.contracts.faults import (
    Arena,
    BrokerFault,
    Effect,
    Fault,
    Injection,
    MayForfeit,
    Reach,
    confirmed_once,
    not_running,
)
from harness.contracts.restoring import start_stopped
from harness.contracts.targets import Target
from harness.system.waiting import until


class Parameters(MayForfeit):
    """What the scenario may say about a power loss."""

    torn: Annotated[
        bool, Field(description="A part of what was not synced may be there, its end garbled; drawn from the seed")
    ] = True
    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the end of the broker's registration")
    ] = 30.0
    whole_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="How long to wait for whole replicas, if committed records are spared")
    ] = 30.0


class PowerLoss(BrokerFault):
    """Cuts brokers' power, waits until ZooKeeper has noticed, and starts them with what their disks have left."""

    name: ClassVar[str] = "power-loss"
    requires: ClassVar[tuple[str, ...]] = ("power",)
    reach: ClassVar[Reach] = Reach.UNFLUSHED
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def least_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the time until its session has timed out, which the healing waits for."""
        return session_timeout_s

    async def prepare(
        self, arena: Arena, target: Target, brokers: tuple[int, ...], parameters: BaseModel, *, duration_s: float
    ) -> Injection:
        """Wait, if committed records are spared, until all are elsewhere too."""
        assert isinstance(parameters, Parameters)
        if parameters.spares_committed:
            await until(
                lambda: _at_stake(arena, brokers),
                lambda seen: not seen,
                what="every partition whole, with a replica elsewhere",
                timeout_s=parameters.whole_timeout_s,
            )
        return await super().prepare(arena, target, brokers, parameters, duration_s=duration_s)

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note who runs, under which sessions."""
        status = await arena.driver.status()
        registered = await arena.view.registrations()
        return {
            "running": [broker for broker in brokers if status.broker(broker).state == "running"],
            "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
        }

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Cut the power of all at once."""
        driver = arena.driver
        assert isinstance(driver, CanCutPower)
        before = {str(broker): await driver.bytes_on_disk(broker) for broker in injection.state["running"]}
        for broker in injection.state["running"]:
            await driver.cut_power(broker, torn=injection.parameters["torn"])
        return injection.with_state(bytes=before)

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Wait until every process is gone, and its registration too; say what the disks have lost."""
        driver = arena.driver
        assert isinstance(driver, CanCutPower)
        if idle := not_running(injection, "cut off"):
            return idle
        before = injection.state["bytes"]
        lost = {broker: before[str(broker)] - await driver.bytes_on_disk(broker) for broker in injection.targets}
        gone = until(
            lambda: _signs_of_life(arena, injection),
            lambda seen: not seen,
            what="end of processes and registrations",
            timeout_s=injection.parameters["confirm_timeout_s"],
        )
        details = [f"broker {broker} is gone, and {size} unsynced bytes" for broker, size in lost.items()]
        return await confirmed_once(gone, "; ".join(details))

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Start what does not run."""
        await start_stopped(arena, injection.targets)


async def _at_stake(arena: Arena, brokers: tuple[int, ...]) -> list[str]:
    """Return the partitions that are not whole, or that nobody but these brokers has.

    A broker that runs and is not registered yet is as good as gone: the controller will take it from the ISR first.
    """
    running = {broker.broker_id for broker in (await arena.driver.status()).brokers if broker.state == "running"}
    running &= (await arena.view.registrations()).keys()
    return [
        f"{view.topic}-{view.partition}"
        for view in await arena.view.partitions()
        if set(view.assignment) & set(brokers)
        and not (set(view.isr) == set(view.assignment) <= running and set(view.isr) - set(brokers))
    ]


async def _signs_of_life(arena: Arena, injection: Injection) -> list[str]:
    status = await arena.driver.status()
    registered = await arena.view.registrations()
    sessions = injection.state["sessions"]
    alive = [f"broker {it} is not stopped" for it in injection.targets if status.broker(it).state != "stopped"]
    if injection.parameters["spares_committed"]:
        # Back before any controller has missed it, a broker leads on with what its disk has left, in the same epoch,
        # when the controller died with it and the next one sees it alive; Kafka has that hole too, up to KIP-966.
        alive += [
            f"{view.topic}-{view.partition} still has the ISR {list(view.isr)}"
            for view in await arena.view.partitions()
            if set(view.isr) & set(injection.targets)
            and not await arena.view.exists(f"/admin/delete_topics/{view.topic}")  # nobody misses its records
        ]
    return alive + [
        f"broker {it} is registered by session {sessions[str(it)]}"
        for it in injection.targets
        if it in registered and registered[it].session == sessions.get(str(it))
    ]


PLUGIN: type[Fault] = PowerLoss
