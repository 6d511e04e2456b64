"""A whole cluster in one process: brokers, ZooKeeper and a network, all in memory and driven by one seed."""

import random
from collections.abc import Mapping, Sequence

from harness.broker.configs.config import parse_config
from harness.cluster.broker_properties import CLIENT_LISTENER, PEER_LISTENER, PROTOCOLS, profile, rack
from harness.cluster.links.links import Links
from harness.scenario.model import Latencies
from harness.scenario.seeds import derived_seed
from harness.simulation.brokers import SimulatedBroker, World
from harness.simulation.latencies import zookeeper_messages
from harness.simulation.loop import Spinning
from harness.simulation.network import Network
from harness.simulation.sizes import size_of
from harness.simulation.zookeeper.ensemble import Ensemble

CLIENT_PORT, PEER_PORT = 9092, 9093
PROFILE = {"log.index.interval.bytes": "128"}
"""Over the profile of real runs: batches are small here, and few enough to index nearly every one."""
CODEC_SHARE = 8
"""One schedule in so many sends every message through the real codecs."""


def host_of(broker_id: int) -> str:
    """Return the host that a broker runs on."""
    return f"broker-{broker_id}"


class SimulatedCluster:
    """Brokers with the ids that every driver gives, none of them started."""

    def __init__(
        self,
        broker_ids: Sequence[int],
        *,
        seed: int,
        properties: Mapping[str, str] | None = None,
        planted_bugs: Sequence[str] = (),
        zookeeper_servers: int = 1,
        through_codecs: bool | None = None,
        latencies: Latencies | None = None,
    ) -> None:
        """`through_codecs` None leaves that to the seed."""
        if through_codecs is None:
            through_codecs = derived_seed(seed, "codecs") % CODEC_SHARE == 0
        self.seed = seed
        latencies = latencies or Latencies()
        links = Links(_rng(seed, "links"), size_of, zookeeper_messages(latencies, _rng(seed, "zookeeper messages")))
        self.network = Network(links, through_codecs=through_codecs)
        self.ensemble = Ensemble(links=links, servers=zookeeper_servers, rng=_rng(seed, "zookeeper"))
        world = World(network=self.network, ensemble=self.ensemble, seed=seed, latencies=latencies)
        all_properties = {**profile(len(broker_ids)), **PROFILE, **(properties or {})}
        self.brokers = {
            broker_id: SimulatedBroker(
                world, host_of(broker_id), parse_config(_properties(broker_id, all_properties)), planted_bugs
            )
            for broker_id in broker_ids
        }

    @property
    def bootstrap(self) -> tuple[tuple[str, int], ...]:
        """Where clients knock first."""
        return tuple((broker.host, CLIENT_PORT) for broker in self.brokers.values())

    def accuse(self, spinning: Spinning) -> None:
        """Report the spin in the log of the broker that takes most of the steps; in none if clients take them."""
        broker = next((each for name in spinning.busiest if (each := self._running.get(name))), None)
        if broker is not None:
            broker.fails(spinning, "steps of one second")

    @property
    def _running(self) -> dict[str, SimulatedBroker]:
        return {broker.process_name: broker for broker in self.brokers.values()}

    def __getitem__(self, broker_id: int) -> SimulatedBroker:
        return self.brokers[broker_id]


def _properties(broker_id: int, properties: Mapping[str, str]) -> dict[str, str]:
    host = host_of(broker_id)
    own = {
        "broker.id": str(broker_id),
        "listeners": f"{CLIENT_LISTENER}://{host}:{CLIENT_PORT},{PEER_LISTENER}://{host}:{PEER_PORT}",
        "inter.broker.listener.name": PEER_LISTENER,
        "listener.security.protocol.map": PROTOCOLS,
        "log.dir": "/",
        "zookeeper.connect": "zookeeper",
    } | rack(broker_id, properties)
    return {**properties, **own}


def _rng(seed: int, what: str) -> random.Random:
    return random.Random(derived_seed(seed, what))  # noqa: S311  repeatable, not secret
