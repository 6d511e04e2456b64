"""A schedule with every capability of the simulation, drawn from a seed: more than any scenario of real runs names."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from harness.experiment.drive import create_topics
from harness.experiment.load import Load
from harness.scenario.plan import make_plan
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.guard import Guard
from harness.simulation.load import SimulatedClients
from harness.simulation.loop import run, simulated_loop
from harness.simulation.schedule import SimulatedHistory, history_of
from harness.simulation.topics import SimulatedTopicAdmin
from harness.store.phase_log import PhaseNotes
from tests.simulation.scenarios import scenario

STATE = "/brokers/topics/orders/partitions/0/state"
LOAD = {"producers": 2, "consumers": 1, "committers": 1, "rate_per_s": 20, "acks": ["all", 1]}


class Storm:
    """The capabilities, each as something that is done and undone within a moment."""

    def __init__(self, cluster: SimulatedCluster, rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng
        self.capabilities: list[Callable[[int], Awaitable[None]]] = [
            self.kill,
            self.pause,
            self.cut_off,
            self.cut_one_way,
            self.slow_down,
            self.lose_the_connection,
            self.lose_an_answer,
            self.end_the_session,
            self.lose_power,
            self.stop,
        ]

    def hosts(self) -> list[str]:
        return [*(broker.host for broker in self.cluster.brokers.values())]

    async def start(self, broker_id: int) -> None:
        while not await self.cluster[broker_id].start():  # noqa: ASYNC110  in virtual time
            await asyncio.sleep(0.5)  # its id belongs to its last session still

    async def kill(self, broker_id: int) -> None:
        self.cluster[broker_id].kill()
        await asyncio.sleep(self.rng.random() * 5)
        await self.start(broker_id)

    async def pause(self, broker_id: int) -> None:
        self.cluster[broker_id].pause(self.rng.random() * 7)
        await asyncio.sleep(7)

    async def cut_off(self, broker_id: int) -> None:
        host, links = self.cluster[broker_id].host, self.cluster.network.links
        others = [*self.hosts(), *(server.host for server in self.cluster.ensemble.servers)]
        links.isolate(host, others)
        await asyncio.sleep(self.rng.random() * 6)
        links.rejoin(host, others)

    async def cut_one_way(self, broker_id: int) -> None:
        links, other = self.cluster.network.links, self.rng.choice(self.hosts())
        links.cut(self.cluster[broker_id].host, other)
        await asyncio.sleep(self.rng.random() * 5)
        links.heal(self.cluster[broker_id].host, other)

    async def slow_down(self, broker_id: int) -> None:
        links, other = self.cluster.network.links, self.rng.choice(self.hosts())
        links.slow(self.cluster[broker_id].host, other, self.rng.random())
        await asyncio.sleep(3)
        links.slow(self.cluster[broker_id].host, other, 0)

    async def lose_the_connection(self, broker_id: int) -> None:
        session = self.cluster[broker_id].session
        if session is not None:
            self.cluster.ensemble.drop_connection(session.session_id)

    async def lose_an_answer(self, broker_id: int) -> None:
        self.cluster.ensemble.lose_answer_to = STATE

    async def end_the_session(self, broker_id: int) -> None:
        session = self.cluster[broker_id].session
        if session is not None:
            self.cluster.ensemble.end(session.session_id)

    async def lose_power(self, broker_id: int) -> None:
        self.cluster[broker_id].lose_power(self.rng)
        await asyncio.sleep(self.rng.random() * 3)
        await self.start(broker_id)

    async def stop(self, broker_id: int) -> None:
        if self.cluster[broker_id].state == "running" and await self.cluster[broker_id].stop(20):
            await self.start(broker_id)


def weather(seed: int, *, through_codecs: bool | None = None) -> SimulatedHistory:
    """Return the history of a cluster that has each capability used on it once, in an order drawn from the seed."""
    made = scenario(load=LOAD)
    plan = make_plan(made, seed)

    async def play() -> SimulatedHistory:
        rng = random.Random(seed)
        cluster = SimulatedCluster(
            [0, 1, 2],
            seed=seed,
            properties=made.cluster.properties,
            zookeeper_servers=3,
            through_codecs=through_codecs,
        )
        await asyncio.gather(*(broker.start() for broker in cluster.brokers.values()))
        await create_topics(SimulatedTopicAdmin(cluster).create, made.topics)
        clients, notes = SimulatedClients(cluster, [client.process for client in plan.clients]), PhaseNotes()
        load = Load(clients, plan, made.topics)
        await load.start()
        await asyncio.sleep(1)
        storm = Storm(cluster, rng)
        rng.shuffle(storm.capabilities)
        for capability in storm.capabilities:
            await capability(rng.randrange(3))
            await asyncio.sleep(rng.random())
        await asyncio.sleep(5)
        await load.stop(notes)
        return history_of(cluster, simulated_loop(), clients.operations, [], notes.remarks)

    with Guard():
        return run(play())
