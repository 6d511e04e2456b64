"""Optional powers of a cluster driver beyond ending and freezing brokers: network, disks, ZooKeeper.

Whatever is in force ends by itself after `at_most_s`, whatever becomes of the caller.
"""

from enum import StrEnum
from typing import Protocol, runtime_checkable


class Side(StrEnum):
    """With whom a broker talks."""

    PEERS = "peers"
    CLIENTS = "clients"
    ZOOKEEPER = "zookeeper"


class Direction(StrEnum):
    """Which way of a broker's links, as the broker has it."""

    BOTH = "both"
    INBOUND = "inbound"
    OUTBOUND = "outbound"

    @property
    def ways(self) -> tuple["Direction", ...]:
        """The single ways that it consists of."""
        return (Direction.INBOUND, Direction.OUTBOUND) if self is Direction.BOTH else (self,)


@runtime_checkable
class CanProbe(Protocol):
    """Can say whether a network link carries anything."""

    async def probe(self, broker_id: int, side: Side, way: Direction, *, timeout_s: float) -> dict[str, float | None]:
        """Send something over every link of one side, one way, and return the seconds it took, None for not in time.

        By the host at the other end; empty when that side has none.
        """
        ...


@runtime_checkable
class CanIsolate(Protocol):
    """Can cut links: what is sent over them vanishes, and nobody is told."""

    async def isolate(self, broker_id: int, sides: tuple[Side, ...], direction: Direction, *, at_most_s: float) -> None:
        """Cut a broker's links; connections stay half open."""
        ...

    async def rejoin(self, broker_id: int) -> None:
        """Heal all links that were cut for this broker, and that no other one's isolation holds."""
        ...


@runtime_checkable
class CanDelay(Protocol):
    """Can make links slow."""

    async def delay(
        self, broker_id: int, sides: tuple[Side, ...], direction: Direction, *, extra_s: float, at_most_s: float
    ) -> None:
        """Let everything on a broker's links take longer."""
        ...

    async def hasten(self, broker_id: int) -> None:
        """Let everything on this broker's links be as fast as usual."""
        ...


@runtime_checkable
class CanReset(Protocol):
    """Can break connections."""

    async def connections(self, broker_id: int, sides: tuple[Side, ...]) -> set[str]:
        """Return the names of the connections that a broker has open; no two ever have the same name."""
        ...

    async def reset_connections(self, broker_id: int, sides: tuple[Side, ...]) -> None:
        """Break every connection; both ends are told."""
        ...


@runtime_checkable
class CanCutPower(Protocol):
    """Can end a broker with its whole host."""

    async def cut_power(self, broker_id: int, *, torn: bool) -> None:
        """End it; what was not synced is gone, or with `torn` a part of it is there, its end perhaps garbled."""
        ...

    async def bytes_on_disk(self, broker_id: int) -> int:
        """Return how much is in a broker's files, whether it runs or not."""
        ...


@runtime_checkable
class CanFillDisk(Protocol):
    """Can take a broker's disk space away."""

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        """Leave no space on a broker's disk."""
        ...

    async def free_disk(self, broker_id: int) -> None:
        """Give the space back."""
        ...

    async def disk_is_full(self, broker_id: int) -> bool:
        """Return whether anything more fits on a broker's disk."""
        ...


@runtime_checkable
class CanLoseReplies(Protocol):
    """Can break a broker's connection to ZooKeeper at the worst moment: when the answer to a write is on its way."""

    async def lose_reply(self, broker_id: int, *, carried_out: bool, at_most_s: float) -> None:
        """Lose the connection instead of answering the broker's next write, which is carried out first, or is not."""
        ...

    async def lost_reply(self, broker_id: int) -> str | None:
        """Return the write whose answer was lost last since `lose_reply`, in a few words; None while none was."""
        ...

    async def spare_replies(self, broker_id: int) -> None:
        """Lose no answer, if none was lost yet."""
        ...


@runtime_checkable
class CanPauseZookeeper(Protocol):
    """Can freeze a ZooKeeper server."""

    async def pause_zookeeper(self, server_id: int, *, at_most_s: float) -> None:
        """Freeze a server with all its connections."""
        ...

    async def resume_zookeeper(self, server_id: int) -> None:
        """Thaw it; nothing happens when it runs."""
        ...
