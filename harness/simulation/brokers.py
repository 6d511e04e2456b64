"""A broker as an operating system process: started, killed, paused, stopped, and started again with its disk."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.broker.background import reported
from harness.broker.configs.config import BrokerConfig
from harness.broker.log.storage import StorageError
from harness.broker.server import Broker, Surroundings
from harness.broker.unexpected import report, report_to
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.registration import BrokerIdTaken
from harness.scenario.model import Latencies
from harness.scenario.seeds import derived_seed
from harness.simulation.disk import MemoryStorage, whole
from harness.simulation.evidence import BrokerLog, IncarnationLog
from harness.simulation.latencies import STALL_GAP_S, no_time, reads, stalls, syncs
from harness.simulation.loop import Process, current_process, simulated_loop
from harness.simulation.network import Network
from harness.simulation.server import MemoryServer
from harness.simulation.transport import MemoryTransport
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from harness.system.process_state import ProcessState

START_ERRORS = (ZooKeeperError, StorageError, BrokerIdTaken, OSError)
"""What can keep a broker from starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Parts that all processes of a simulation share."""

    network: Network
    ensemble: Ensemble
    seed: int
    latencies: Latencies


@dataclass(slots=True, eq=False)
class _Life:
    """One process of a broker, from its start to its end."""

    process: Process
    broker: Broker
    ended: "asyncio.Future[None]"
    sessions: list[SimulatedZooKeeper] = field(default_factory=list)
    paused: bool = False
    thaw: asyncio.TimerHandle | None = None
    """The end of its pause, if that has one."""
    busy_until_s: float = 0.0
    """When it has done what it computes, or what it waits for without doing anything else."""


class SimulatedBroker:
    """One broker with all its lives; its methods are called from outside its processes."""

    def __init__(self, world: World, host: str, config: BrokerConfig, planted_bugs: Sequence[str] = ()) -> None:
        self.broker_id = config.broker_id
        self.host = host
        self.config = config
        sync_s = syncs(world.latencies, self._rng(world, config.broker_id, "syncs"))
        read_s = reads(world.latencies, self._rng(world, config.broker_id, "reads"))
        self.disks = {
            name: MemoryStorage(sync_s=sync_s, read_s=read_s, block=self._blocked) for name in config.log_dirs
        }
        """By the name of the data directory that each holds."""
        self._stalls = stalls(world.latencies, self._rng(world, config.broker_id, "stalls"), config.broker_id)
        self._gaps = self._rng(world, config.broker_id, "gaps")
        self.log = BrokerLog(config.broker_id)
        self.starts = 0
        self.failure: Exception | None = None
        """Why the last start failed."""
        self._world = world
        self._planted_bugs = planted_bugs
        self._life: _Life | None = None

    @property
    def state(self) -> ProcessState:
        """running, paused or stopped."""
        if self._life is None:
            return ProcessState.STOPPED
        return ProcessState.PAUSED if self._life.paused else ProcessState.RUNNING

    @property
    def broker(self) -> Broker | None:
        """The broker that runs or is paused."""
        return self._life.broker if self._life is not None else None

    @property
    def process_name(self) -> str:
        """The process that runs or is paused; empty for none."""
        return self._life.process.name if self._life is not None else ""

    @property
    def disk(self) -> MemoryStorage:
        """What is on all of its disks, as a run folder has it."""
        return whole(self.disks)

    def fails(self, error: Exception, operation: str) -> None:
        """Have the running process report an error that it does not foresee."""
        if self._life is not None:
            self._life.process.call(report, error, operation)

    def note(self, at_rest: Sequence[str]) -> None:
        """Have the running broker log what it holds, with differences from what a restart would load."""
        if self._life is not None and self._life.broker.ledger is not None:
            self._life.process.call(self._life.broker.ledger.note, at_rest)

    @property
    def session(self) -> SimulatedZooKeeper | None:
        """The ZooKeeper session that the running broker opened last."""
        return self._life.sessions[-1] if self._life is not None else None

    async def start(self) -> bool:
        """Start it with the disk that it has; return whether it runs when it has registered, failed or died.

        Cancelled, it ends the process again.
        """
        assert self._life is None, f"broker {self.broker_id} runs already"
        self.starts += 1
        life = self._new_life()
        self._life = life
        try:
            self.failure = await self._until_done(life, life.broker.start())
            if self._life is life and self.failure is not None:
                await self._until_done(life, life.broker.abandon())
                self._ended(life)
        except asyncio.CancelledError:
            self._ended(life)  # no caller is left to end it
            raise
        if self._life is life:
            life.process.call(_spawn_reported, self._watch(life))
        return self._life is life

    async def stop(self, timeout_s: float) -> bool:
        """Ask for a clean stop; return whether the process ended in time. If not, it goes on stopping."""
        life = self._life
        if life is None:
            return True
        task = life.process.call(_spawn_reported, life.broker.stop())
        task.add_done_callback(lambda _: self._ended(life))
        await asyncio.wait({life.ended}, timeout=timeout_s)
        return life.ended.done()

    def kill(self) -> None:
        """Kill it: what it wrote is with the kernel, its session lives until it times out."""
        if self._life is not None:
            self._ended(self._life)

    def lose_power(self, rng: random.Random | None = None) -> None:
        """End it with its whole host: no peer is notified, and unsynced data is gone; `rng` draws torn tails."""
        if self._life is not None:
            self._ended(self._life, silently=True)
        for disk in self.disks.values():
            disk.lose_power(rng)

    def pause(self, at_most_s: float | None = None) -> None:
        """Freeze it, until `resume` or until `at_most_s` have passed; a second pause counts from its own beginning."""
        life = self._life
        if life is None:
            return
        life.paused = True
        if not life.process.frozen:
            simulated_loop().freeze(life.process)
        if life.thaw is not None:
            life.thaw.cancel()
        life.thaw = None if at_most_s is None else simulated_loop().call_later(at_most_s, self._resume, life)

    def resume(self) -> None:
        """Let it go on, first with all that became due."""
        if self._life is not None:
            self._resume(self._life)

    # --- one life ---

    def _new_life(self) -> _Life:
        process = Process(f"{self.host}/{self.starts}")
        sessions: list[SimulatedZooKeeper] = []
        state_log = self.log.incarnation(f"{self.broker_id}-{self.starts}")
        process.context.run(report_to, state_log)
        broker = process.call(self._make, sessions, state_log)
        life = _Life(process, broker, simulated_loop().create_future(), sessions)
        if self._stalls is not no_time:
            self._stall_later(life)
        return life

    def _make(self, sessions: list[SimulatedZooKeeper], state_log: IncarnationLog) -> Broker:
        """Return a broker in its surroundings; runs as its process."""
        world, config = self._world, self.config

        def open_session() -> SimulatedZooKeeper:
            sessions.append(
                SimulatedZooKeeper(
                    world.ensemble,
                    host=self.host,
                    session_timeout_s=config["zookeeper.session.timeout.ms"] / 1000,
                    connection_timeout_s=config["zookeeper.connection.timeout.ms"] / 1000,
                )
            )
            return sessions[-1]

        outside = Surroundings(
            storages=self.disks,
            open_session=open_session,
            transport=MemoryTransport(world.network, self.host),
            make_server=partial(MemoryServer, world.network),
            state_log=state_log,
            wall_ms=self.log.wall_ms,
            rng=random.Random(derived_seed(world.seed, "broker", self.broker_id, self.starts)),  # noqa: S311 repeatable
        )
        return Broker(config, outside, planted_bugs=self._planted_bugs)

    async def _until_done(self, life: _Life, work: Any) -> Exception | None:
        """Return when the broker's own work is done or its process has died, with what kept it from starting."""
        task = life.process.call(_spawn, work)
        await asyncio.wait({task, life.ended}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            try:
                task.result()
            except START_ERRORS as error:
                return error
            except Exception as error:  # noqa: BLE001  it ends a process, and no other one
                life.process.call(report, error, "start")
                return error
        return None

    async def _watch(self, life: _Life) -> None:
        """End the process when the broker says that it cannot go on."""
        await life.broker.failed.wait()
        await life.broker.stop()
        self._ended(life)

    def _resume(self, life: _Life) -> None:
        life.paused = False
        self._thaw(life)

    def _thaw(self, life: _Life) -> None:
        """Let a process go on that is neither paused nor busy."""
        loop = simulated_loop()
        if life.process.frozen and not (life.paused or life.process.dead or loop.time() < life.busy_until_s):
            loop.thaw(life.process)

    # --- time that it takes ---

    def _blocked(self, length_s: float) -> None:
        """Let the process that runs now, if it is this broker's, do nothing else for a while."""
        if self._life is not None and current_process() is self._life.process:
            self._busy(self._life, length_s)

    def _busy(self, life: _Life, length_s: float) -> None:
        loop = simulated_loop()
        life.busy_until_s = max(life.busy_until_s, loop.time()) + length_s
        if not life.process.frozen:
            loop.freeze(life.process)
        loop.call_at(life.busy_until_s, self._thaw, life, context=self._world.network.context)

    def _stall_later(self, life: _Life) -> None:
        """Let a slow broker compute again and again."""
        gap_s = self._gaps.expovariate(1 / STALL_GAP_S)
        simulated_loop().call_later(gap_s, self._stall, life, context=self._world.network.context)

    def _stall(self, life: _Life) -> None:
        if not life.process.dead:
            self._busy(life, self._stalls())
            self._stall_later(life)

    @staticmethod
    def _rng(world: World, broker_id: int, what: str) -> random.Random:
        return random.Random(derived_seed(world.seed, "broker", broker_id, what))  # noqa: S311  repeatable, not secret

    def _ended(self, life: _Life, *, silently: bool = False) -> None:
        """The process is gone: no task of it runs on, and its kernel closes its files and connections."""
        if life.process.dead:
            return
        simulated_loop().kill(life.process)
        for disk in self.disks.values():
            disk.abandon()
        self._world.network.process_died(life.process, silently=silently)
        self._life = None
        if not life.ended.done():
            life.ended.set_result(None)


def _spawn(work: Any) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(work)


def _spawn_reported(work: Any) -> "asyncio.Task[Any]":
    """Start what is not awaited."""
    task = _spawn(work)
    task.add_done_callback(reported)
    return task
