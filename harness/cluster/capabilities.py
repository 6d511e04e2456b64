"""Which capabilities can a cluster driver have over network, disks and ZooKeeper?

Every disturbance ends by itself after `at_most_s`, even when the caller has died. The relay imports this, and consists
of few modules, so the modules of disks are imported for type checking only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harness.system.process_state import ProcessState

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from harness.broker.wire.transport import Connection
    from harness.cluster.disks.damage import Damage
    from harness.cluster.disks.disk_errors import DiskError
    from harness.cluster.limits.resources import Resource, Usage
    from harness.cluster.links.rules import Caught, Rule


class Side(StrEnum):
    """The hosts at the other end of a link of a broker, or of a controller that is no broker."""

    PEERS = "peers"
    CLIENTS = "clients"
    ZOOKEEPER = "zookeeper"
    CONTROLLERS = "controllers"
    """Of a quorum, as far as they are no brokers: those are peers."""


"""Controllers of a quorum that are not brokers; a broker that is one counts as a peer."""


class Direction(StrEnum):
    """A direction of a broker's links, seen from the broker."""

    BOTH = "both"
    INBOUND = "inbound"
    OUTBOUND = "outbound"

    @property
    def ways(self) -> tuple[Direction, ...]:
        """The single directions it consists of."""
        return (Direction.INBOUND, Direction.OUTBOUND) if self is Direction.BOTH else (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """A cut that comes and goes, starting with the cut."""

    cut_s: float
    whole_s: float

    @property
    def period_s(self) -> float:
        """Length of one cut and one pause."""
        return self.cut_s + self.whole_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowness:
    """How slow a link is, in addition to its usual delay."""

    extra_s: float = 0.0
    """Added delay."""
    jitter_s: float = 0.0
    """Highest random delay on top, drawn for each message; the order stays."""
    bytes_per_s: float | None = None
    """Rate of the link, for all its connections together; None for no limit."""


@runtime_checkable
class CanProbe(Protocol):
    """Can check whether a network link carries bytes."""

    async def probe(
        self, broker_id: int, side: Side, way: Direction, *, timeout_s: float, size_bytes: int = 1
    ) -> dict[str, float | None]:
        """Send a probe over every link of one side in one direction.

        Return the seconds that it took, by the host at the other end; None where it did not arrive in time.
        """
        ...

    async def strangers(self) -> set[str]:
        """Return the names of the connections to brokers' peer addresses of unknown origin.

        They may be brokers' own, and no fault disturbs them.
        """
        ...


@runtime_checkable
class CanIsolate(Protocol):
    """Can cut links: what is sent over them is lost silently."""

    async def isolate(
        self,
        broker_id: int,
        sides: tuple[Side, ...],
        direction: Direction,
        *,
        at_most_s: float,
        rhythm: Rhythm | None = None,
    ) -> None:
        """Cut a broker's links, all the time or in a rhythm; connections stay half open."""
        ...

    async def rejoin(self, broker_id: int) -> None:
        """Restore the links that were cut for this broker, except those that another broker's isolation cuts too."""
        ...


@runtime_checkable
class CanPartition(Protocol):
    """Can cut links between certain brokers."""

    async def separate(self, pairs: Sequence[tuple[int, int]], *, at_most_s: float) -> None:
        """Cut the links between the brokers of each pair, both ways, instead of those that were cut so before."""
        ...

    async def reunite(self) -> None:
        """Restore them, except those that an isolation cuts too."""
        ...

    async def probe_peer(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send a probe from one broker to another; return the seconds it took, None where it did not arrive in time."""
        ...


@runtime_checkable
class CanDelay(Protocol):
    """Can make links slow."""

    async def delay(
        self, broker_id: int, sides: tuple[Side, ...], direction: Direction, slowness: Slowness, *, at_most_s: float
    ) -> None:
        """Make a broker's links slow."""
        ...

    async def remove_delay(self, broker_id: int) -> None:
        """Remove the delay from this broker's links."""
        ...


@runtime_checkable
class CanIntercept(Protocol):
    """Can intercept single messages of Kafka's protocol."""

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
        """Act on requests on a broker's links, by a rule whose links are added; replaces the holder's earlier rule.

        `direction`: inbound are requests that the broker gets, with their answers.
        """
        ...

    async def caught(self, holder: str) -> list[Caught]:
        """Return what a holder's rule has acted on, the first one first; known after `let_go` too."""
        ...

    async def let_go(self, holder: str) -> None:
        """End a rule, and let go what it holds; no-op if there is none."""
        ...


@runtime_checkable
class CanReset(Protocol):
    """Can break connections."""

    async def connections(self, broker_id: int, sides: tuple[Side, ...]) -> set[str]:
        """Return the names of a broker's open connections; a name is never used again."""
        ...

    async def reset_connections(self, broker_id: int, sides: tuple[Side, ...]) -> None:
        """Break every connection; both ends see a reset."""
        ...


@runtime_checkable
class CanCutPower(Protocol):
    """Can end a broker together with its host."""

    async def cut_power(self, broker_id: int, *, torn: bool) -> None:
        """End it; unsynced data is lost, or with `torn` partly written, its end perhaps corrupt."""
        ...

    async def bytes_on_disk(self, broker_id: int) -> int:
        """Return the total size of a broker's files, whether it runs or not."""
        ...


@runtime_checkable
class CanDamageDisk(Protocol):
    """Can change what is on the disk of a broker that does not run."""

    async def damage_disk(self, broker_id: int, damage: Damage) -> None:
        """Damage the disk; raises ClusterError if the broker runs, or no file can be damaged so."""
        ...

    async def files(self, broker_id: int) -> dict[str, str]:
        """Return the size and checksum of each file on a broker's disk, as text, by path."""
        ...


@runtime_checkable
class CanFillDisk(Protocol):
    """Can fill a broker's disk."""

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        """Leave no space on a broker's disk."""
        ...

    async def free_disk(self, broker_id: int) -> None:
        """Make the space available again."""
        ...

    async def disk_is_full(self, broker_id: int) -> bool:
        """Return whether a broker's disk has no space left."""
        ...


@runtime_checkable
class CanFailDisk(Protocol):
    """Can let a broker's disk fail."""

    async def fail_disk(self, broker_id: int, error: DiskError, *, at_most_s: float) -> None:
        """Make it fail for the running process."""
        ...

    async def mend_disk(self, broker_id: int) -> None:
        """Repair it; no-op if it works."""
        ...


@runtime_checkable
class CanSlowSyncs(Protocol):
    """Can delay the syncs of a broker, or of a ZooKeeper server.

    Either is addressed by the name of its process (`broker_process`, `zookeeper_process`).
    """

    async def slow_syncs(self, process: str, extra_s: float, *, at_most_s: float) -> None:
        """Delay every sync of the running process."""
        ...

    async def restore_syncs(self, process: str) -> None:
        """Remove the delay; no-op if there is none."""
        ...

    async def slow_sync_times(self, process: str) -> list[float]:
        """Return the duration of each delayed sync since `slow_syncs`, in seconds."""
        ...


@runtime_checkable
class CanLoseReplies(Protocol):
    """Can break a broker's connection to ZooKeeper when the reply to a write is due."""

    async def lose_reply(self, broker_id: int, *, carried_out: bool, answered: int = 0, at_most_s: float) -> None:
        """Break the connection instead of replying to a write of the broker.

        Args:
            broker_id: The broker.
            carried_out: Whether the write is carried out first.
            answered: How many writes before it are answered.
            at_most_s: After so long none is lost any more.
        """
        ...

    async def last_lost_reply(self, broker_id: int) -> str | None:
        """Return, in a few words, the last write whose reply was lost since `lose_reply`; None when there is none."""
        ...

    async def cancel_reply_loss(self, broker_id: int) -> None:
        """Cancel the loss, if no reply was lost yet."""
        ...


@runtime_checkable
class SeesZookeeper(Protocol):
    """Can read the modes of ZooKeeper servers."""

    async def zookeeper_modes(self) -> dict[int, str]:
        """Return each server's own report of its mode: leader, follower or standalone; empty if it serves none."""
        ...


@runtime_checkable
class CanKillZookeeper(SeesZookeeper, Protocol):
    """Can end a ZooKeeper server without warning."""

    async def kill_zookeeper(self, server_id: int) -> None:
        """End the process at once (SIGKILL) and return when it is gone."""
        ...

    async def start_zookeeper(self, server_id: int) -> None:
        """Start a stopped server with its data; return when it answers, which it may do before it takes requests."""
        ...


@runtime_checkable
class CanBounce(Protocol):
    """Can have what manages a broker end it and start it again at once, as Kubernetes does with a deleted pod."""

    async def bounces_by_command(self) -> bool:
        """Return whether there is a command for that."""
        ...

    async def bounce_broker(self, broker_id: int) -> None:
        """Have it ended and started again; return when the command has ended."""
        ...


@runtime_checkable
class CanRunCommands(Protocol):
    """Can disturb brokers by commands that the cluster's owner has named."""

    async def inject_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that injects; noted first, so that it is undone whatever happens."""
        ...

    async def confirm_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that confirms; raises ClusterError when it fails: there is no effect yet."""
        ...

    async def heal_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that heals; nothing happens when nothing was injected."""
        ...


@runtime_checkable
class CanStartEarly(Protocol):
    """Can start a broker whose earlier process is still registered."""

    async def start_early(self, broker_id: int) -> None:
        """Start a stopped broker with its data at once, without waiting for the result."""
        ...


@runtime_checkable
class CanUpgrade(Protocol):
    """Can restart a broker with its data as another release."""

    async def change_release(self, broker_id: int, system: str) -> None:
        """Set the release of a stopped broker from its next start on, by the name that scenarios use."""
        ...


@runtime_checkable
class CanPauseZookeeper(SeesZookeeper, Protocol):
    """Can freeze a ZooKeeper server."""

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        """Freeze a server with all its connections."""
        ...

    async def resume_zookeeper(self, server_id: int) -> None:
        """Resume it; no-op if it runs."""
        ...


@runtime_checkable
class CanIsolateZookeeper(SeesZookeeper, Protocol):
    """Can cut the links between servers of an ensemble; brokers and the harness reach all of them."""

    async def isolate_zookeeper(self, server_ids: Sequence[int], *, at_most_s: float) -> None:
        """Cut the links between these servers and the others, both ways; connections stay half open."""
        ...

    async def rejoin_zookeeper(self, server_ids: Sequence[int]) -> None:
        """Restore the links that were cut for just these servers."""
        ...

    async def probe_servers(self, sender: int, receiver: int, *, timeout_s: float) -> float | None:
        """Send a probe from one server to another; return the seconds it took, None where it did not arrive in time."""
        ...


@runtime_checkable
class CanAsk(Protocol):
    """Can send a broker what any client may."""

    async def connect(self, broker_id: int, *, timeout_s: float) -> Connection:
        """Connect to a broker's client listener; ends with this process at the latest. Raises ClusterError."""
        ...


@runtime_checkable
class CanSendBytes(Protocol):
    """Can send a broker bytes that are no request."""

    async def open_stream(self, broker_id: int, *, timeout_s: float) -> tuple[StreamReader, StreamWriter]:
        """Connect to a broker's client listener; ends with this process at the latest. Raises ClusterError."""
        ...


@runtime_checkable
class CanSetClock(Protocol):
    """Can set a broker's wall clock; monotonic clocks are not touched."""

    async def set_clock(self, broker_id: int, *, step_s: float, rate: float, at_most_s: float) -> None:
        """Set a broker's wall clock ahead of the machine's (behind if negative); from there it runs at `rate`.

        Return when it is set; a process that starts meanwhile gets the same clock.
        """
        ...

    async def reset_clock(self, broker_id: int) -> None:
        """Set it to the machine's clock; no-op if it has that already."""
        ...


@runtime_checkable
class CanLimit(Protocol):
    """Can limit a resource of a broker."""

    async def limit(self, broker_id: int, resource: Resource, amount: float, *, at_most_s: float) -> None:
        """Limit it (`Resource` defines the amount); for memory, start processes that take the rest.

        `usage` says when the limit is reached.
        """
        ...

    async def lift(self, broker_id: int, resource: Resource) -> None:
        """Lift the limit; no-op if there is none."""
        ...

    async def usage(self, broker_id: int, resource: Resource) -> Usage:
        """Return the kernel's counters of the limit."""
        ...

    async def answers_all(self, broker_id: int, clients: int) -> bool:
        """Return whether a broker answers this many new clients at once, within a second."""
        ...


@runtime_checkable
class CanDropPackets(Protocol):
    """Can drop packets of a broker: no connection is closed, and no new one is answered."""

    async def drop_packets(self, broker_id: int, direction: Direction, *, at_most_s: float) -> None:
        """Drop every packet between it and other hosts."""
        ...

    async def pass_packets(self, broker_id: int) -> None:
        """Stop dropping; no-op if nothing is dropped."""
        ...

    async def dropped_packets(self, broker_id: int) -> int | None:
        """Return the number of packets dropped since `drop_packets`; None if nothing is dropped."""
        ...

    async def answers_all(self, broker_id: int, clients: int) -> bool:
        """Return whether a broker answers this many new clients at once, within a second."""
        ...


@runtime_checkable
class CanDisturbClients(Protocol):
    """Can end and freeze client processes."""

    async def client_state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        ...

    async def kill_client(self, process: str) -> None:
        """End it at once (SIGKILL) and return when it is gone; it can be started again."""
        ...

    async def pause_client(self, process: str, *, at_most_s: float) -> None:
        """Freeze (SIGSTOP); the driver itself resumes it after `at_most_s`, even when the caller has died."""
        ...

    async def resume_client(self, process: str) -> None:
        """Resume (SIGCONT); no-op if it runs."""
        ...
