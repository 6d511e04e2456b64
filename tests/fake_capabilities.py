"""What the cluster in memory can do beyond ending and freezing brokers; it misbehaves when told to."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.cluster.capabilities import Direction, Rhythm, Side, Slowness
from harness.cluster.disks.damage import Damage, What
from harness.cluster.disks.disk_errors import DiskError
from harness.cluster.limits.resources import Resource, Usage
from harness.cluster.links.rules import UNDELIVERED, WAITING, Caught, Rule
from harness.system.process_state import ProcessState

HOSTS: dict[Side, tuple[str, ...]] = {
    Side.PEERS: ("peer",),
    Side.CLIENTS: ("producer-1",),
    Side.ZOOKEEPER: ("zookeeper-1",),
    Side.CONTROLLERS: (),
}

SEGMENT = "orders-0/00000000000000000000.log"
FILES = {SEGMENT: "100 bytes"}


@dataclass
class FakeCapabilities:
    """All of `harness.cluster.capabilities`, at once."""

    calls: list[str] = field(default_factory=list)
    deaf: set[str] = field(default_factory=set)
    """Names of methods that do nothing."""
    isolated: dict[int, tuple[tuple[Side, ...], Direction]] = field(default_factory=dict)
    separated: set[frozenset[int]] = field(default_factory=set)
    rhythms: dict[int, Rhythm] = field(default_factory=dict)
    slow: dict[int, Slowness] = field(default_factory=dict)
    probed: dict[tuple[int, Side, Direction], int] = field(default_factory=dict)
    stalled: int = 0
    """So many probes of a link that comes and goes are held up at first, whatever its rhythm."""
    connections_of: dict[int, set[str]] = field(
        default_factory=lambda: {broker: {f"{broker}/1"} for broker in range(3)}
    )
    hosts: dict[Side, tuple[str, ...]] = field(default_factory=HOSTS.copy)
    sizes: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(3), 100))
    disks: dict[int, dict[str, str]] = field(default_factory=lambda: {broker: FILES.copy() for broker in range(3)})
    full: set[int] = field(default_factory=set)
    failing: dict[int, DiskError] = field(default_factory=dict)
    losing: dict[int, tuple[bool, int]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    clocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    """What they were set to: a step and a rate."""
    servers: dict[int, ProcessState] = field(default_factory=lambda: dict.fromkeys((1, 2, 3), ProcessState.RUNNING))
    """State of every ZooKeeper server; the last of those that run leads."""
    servers_apart: set[int] = field(default_factory=set)
    """ZooKeeper servers that do not reach the others."""
    limits: dict[tuple[int, Resource], float] = field(default_factory=dict)
    filtered: set[int] = field(default_factory=set)
    intercepting: dict[str, list[Caught]] = field(default_factory=dict)
    slow_disks: dict[str, float] = field(default_factory=dict)
    short_of: int = 1
    """How often a broker wanted what it is short of."""
    unknown: set[str] = field(default_factory=set)
    """Connections with unknown senders."""

    def _power(self, method: str, argument: object) -> bool:
        self.calls.append(f"{method} {argument}")
        return method not in self.deaf

    async def probe(
        self, broker_id: int, side: Side, way: Direction, *, timeout_s: float, size_bytes: int = 1
    ) -> dict[str, float | None]:
        sides, direction = self.isolated.get(broker_id, ((), Direction.BOTH))
        if side in sides and way in direction.ways:
            rhythm = self.rhythms.get(broker_id)
            taken = rhythm.cut_s * self._two_of_four((broker_id, side, way)) if rhythm is not None else None
        else:
            slow = self.slow.get(broker_id, Slowness())
            passing_s = 0.0 if slow.bytes_per_s is None else size_bytes / slow.bytes_per_s
            taken = slow.extra_s + passing_s + slow.jitter_s * self._each_second((broker_id, side, way))
        return dict.fromkeys(self.hosts[side], taken)

    def _each_second(self, link: tuple[int, Side, Direction]) -> int:
        """Return 0 and 1 in turn, for what is drawn."""
        self.probed[link] = self.probed.get(link, 1) + 1
        return self.probed[link] % 2

    def _two_of_four(self, link: tuple[int, Side, Direction]) -> int:
        """Return 0 and 1, each twice in turn, for what comes and goes; 1 as long as it is stalled."""
        self.probed[link] = self.probed.get(link, 0) + 1
        return 1 if self.probed[link] <= self.stalled else self.probed[link] // 2 % 2

    async def strangers(self) -> set[str]:
        return self.unknown

    async def isolate(
        self,
        broker_id: int,
        sides: tuple[Side, ...],
        direction: Direction,
        *,
        at_most_s: float,
        rhythm: Rhythm | None = None,
    ) -> None:
        if self._power("isolate", broker_id):
            self.isolated[broker_id] = (sides, direction)
            if rhythm is not None and "rhythm" not in self.deaf:
                self.rhythms[broker_id] = rhythm

    async def rejoin(self, broker_id: int) -> None:
        self.isolated.pop(broker_id, None)

    async def separate(self, pairs: Sequence[tuple[int, int]], *, at_most_s: float) -> None:
        if self._power("separate", len(pairs)):
            self.separated = {frozenset(pair) for pair in pairs}

    async def reunite(self) -> None:
        self.separated.clear()

    async def probe_peer(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        return None if {sender, receiver} in self.separated else 0.0

    async def delay(
        self, broker_id: int, sides: tuple[Side, ...], direction: Direction, slowness: Slowness, *, at_most_s: float
    ) -> None:
        if self._power("delay", broker_id):
            self.slow[broker_id] = replace(slowness, jitter_s=0.0) if "jitter" in self.deaf else slowness

    async def remove_delay(self, broker_id: int) -> None:
        self.slow.pop(broker_id, None)

    async def intercept(
        self,
        holder: str,
        broker_id: int,
        sides: tuple[Side, ...],
        direction: Direction,
        rule: Rule,
        *,
        at_most_s: float,
    ) -> None:
        if self._power("intercept", broker_id):
            now_s = asyncio.get_running_loop().time()
            (api_key, *_) = rule.api_keys
            caught = Caught(
                api_key=api_key,
                correlation_id=7,
                source="clients",
                destination=f"broker-{broker_id}",
                action=rule.action,
                caught_s=now_s,
                let_go_s=now_s if rule.action in WAITING and rule.hold_s is not None else None,
                answered_s=None if rule.action in UNDELIVERED and "lose" not in self.deaf else now_s,
            )
            self.intercepting[holder] = [caught]

    async def caught(self, holder: str) -> list[Caught]:
        return self.intercepting.get(holder, [])

    async def let_go(self, holder: str) -> None:
        for caught in self.intercepting.get(holder, []):
            caught.let_go_s = caught.let_go_s or caught.caught_s

    async def connections(self, broker_id: int, sides: tuple[Side, ...]) -> set[str]:
        return set(self.connections_of[broker_id])

    async def reset_connections(self, broker_id: int, sides: tuple[Side, ...]) -> None:
        if self._power("reset_connections", broker_id):
            self.connections_of[broker_id] = {f"{broker_id}/2"}

    async def bytes_on_disk(self, broker_id: int) -> int:
        return self.sizes[broker_id]

    async def damage_disk(self, broker_id: int, damage: Damage) -> None:
        if not self._power("damage_disk", f"{broker_id} {damage.log}"):
            return
        if damage.what in (What.LOG, What.DISK):
            self.disks[broker_id] = {}
        else:
            self.disks[broker_id][SEGMENT] = "90 bytes"

    async def files(self, broker_id: int) -> dict[str, str]:
        return dict(self.disks[broker_id])

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        if self._power("fill_disk", broker_id):
            self.full.add(broker_id)

    async def free_disk(self, broker_id: int) -> None:
        self.full.discard(broker_id)

    async def disk_is_full(self, broker_id: int) -> bool:
        return broker_id in self.full

    async def fail_disk(self, broker_id: int, error: DiskError, *, at_most_s: float) -> None:
        if self._power("fail_disk", broker_id):
            self.failing[broker_id] = error
            self.say(broker_id, ev="log_dir_failure", error=f"no {error}", replicas=3)

    async def mend_disk(self, broker_id: int) -> None:
        self.failing.pop(broker_id, None)

    def say(self, broker: int, **event: object) -> None:
        raise NotImplementedError

    async def lose_reply(self, broker_id: int, *, carried_out: bool, answered: int = 0, at_most_s: float) -> None:
        if self._power("lose_reply", broker_id):
            self.losing[broker_id] = carried_out, answered

    async def last_lost_reply(self, broker_id: int) -> str | None:
        return self.lost.get(broker_id)

    async def cancel_reply_loss(self, broker_id: int) -> None:
        self.losing.pop(broker_id, None)

    async def set_clock(self, broker_id: int, *, step_s: float, rate: float, at_most_s: float) -> None:
        if self._power("set_clock", broker_id):
            self.clocks[broker_id] = (step_s, rate)

    async def reset_clock(self, broker_id: int) -> None:
        self.clocks.pop(broker_id, None)

    async def slow_syncs(self, process: str, extra_s: float, *, at_most_s: float) -> None:
        if self._power("slow_syncs", process):
            self.slow_disks[process] = extra_s

    async def restore_syncs(self, process: str) -> None:
        self.slow_disks.pop(process, None)

    async def slow_sync_times(self, process: str) -> list[float]:
        return [self.slow_disks.get(process, 0.0)] * self.short_of

    async def drop_packets(self, broker_id: int, direction: Direction, *, at_most_s: float) -> None:
        if self._power("drop_packets", broker_id):
            self.filtered.add(broker_id)

    async def pass_packets(self, broker_id: int) -> None:
        self.filtered.discard(broker_id)

    async def dropped_packets(self, broker_id: int) -> int | None:
        return self.short_of if broker_id in self.filtered else None

    async def lift(self, broker_id: int, resource: Resource) -> None:
        self.limits.pop((broker_id, resource), None)

    async def usage(self, broker_id: int, resource: Resource) -> Usage:
        limit = self.limits.get((broker_id, resource))
        before = 1024.0 if resource is Resource.FILES else None
        return Usage(limit=before) if limit is None else Usage(limit=limit, hits=self.short_of)

    async def answers_all(self, broker_id: int, clients: int) -> bool:
        open_to = self.limits.get((broker_id, Resource.FILES), clients)
        return (open_to >= clients and broker_id not in self.filtered) or not self.short_of

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        if self._power("pause_zookeeper", server_id):
            self.servers[server_id] = ProcessState.PAUSED

    async def resume_zookeeper(self, server_id: int) -> None:
        self.servers[server_id] = ProcessState.RUNNING

    async def zookeeper_modes(self) -> dict[int, str]:
        running = [server_id for server_id, state in self.servers.items() if state == ProcessState.RUNNING]
        if "zookeeper_modes" not in self.deaf:
            apart = [server_id for server_id in running if server_id in self.servers_apart]
            running = max(apart, [server_id for server_id in running if server_id not in apart], key=len)
        if len(running) <= len(self.servers) // 2 and "zookeeper_modes" not in self.deaf:
            running = []
        modes = dict.fromkeys(self.servers, "") | dict.fromkeys(running, "follower")
        return modes | dict.fromkeys(running[-1:], "leader")

    async def isolate_zookeeper(self, server_ids: Sequence[int], *, at_most_s: float) -> None:
        if self._power("isolate_zookeeper", list(server_ids)):
            self.servers_apart = set(server_ids)

    async def rejoin_zookeeper(self, server_ids: Sequence[int]) -> None:
        self.servers_apart.clear()

    async def probe_servers(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        return None if (sender in self.servers_apart) != (receiver in self.servers_apart) else 0.0

    async def kill_zookeeper(self, server_id: int) -> None:
        if self._power("kill_zookeeper", server_id):
            self.servers[server_id] = ProcessState.STOPPED

    async def start_zookeeper(self, server_id: int) -> None:
        if self._power("start_zookeeper", server_id):
            self.servers[server_id] = ProcessState.RUNNING
