"""What simulated brokers log and the nemesis notes: in memory, and as the lines that a real run has on file."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.cluster.clocks import Clock
from harness.contracts.faults import Injection
from harness.events import Event, encode
from harness.run.journal import entry_of
from harness.simulation.loop import START_S
from harness.simulation.zookeeper.tree import Change
from harness.store.history import InjectionStep, JournalEntry, ZnodeChange

EPOCH_MS = 1_700_000_000_000
"""The wall clock of a simulation when its time begins."""


def now_ns() -> int:
    """Return the virtual time in nanoseconds, the one clock of a simulated run."""
    return in_ns(asyncio.get_running_loop())


def in_ns(loop: asyncio.AbstractEventLoop) -> int:
    """Return a loop's time in nanoseconds; callers that ask at every event keep the loop."""
    return round(loop.time() * 1_000_000_000)


def wall_ms() -> int:
    """Return milliseconds since 1970, by the clock of the simulation."""
    return EPOCH_MS + round((asyncio.get_running_loop().time() - START_S) * 1000)


def wall_ns(time_ns: int) -> int:
    """Return nanoseconds since 1970 at an instant of virtual time, by the clock of the simulation."""
    return EPOCH_MS * 1_000_000 + time_ns - round(START_S * 1_000_000_000)


def session_text(session_id: int) -> str:
    """Return a session id as the history writes it: hexadecimal, empty for none."""
    return f"0x{session_id:x}" if session_id else ""


@dataclass(slots=True)
class LoggedEvent:
    """One event with what its line says beside it."""

    time_ns: int
    ahead_ns: int
    """How far the broker's wall clock was ahead of that of the simulation."""
    sequence: int
    incarnation: str
    session: str
    broker_epoch: int
    event: Event


@dataclass(slots=True)
class BrokerLog:
    """All that one broker has logged, over all its lives."""

    broker_id: int
    events: list[LoggedEvent] = field(default_factory=list)
    clock: Clock | None = None
    """The broker's own wall clock; None while it is that of the simulation."""
    waiting: dict[str, list[asyncio.Future[None]]] = field(default_factory=dict)
    """Who waits for the next event of a kind."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, as this broker sees it."""
        return wall_ms() if self.clock is None else wall_ms() + self.clock.ahead_ns(now_ns()) // 1_000_000

    def incarnation(self, name: str) -> "IncarnationLog":
        """Return the log of one life."""
        return IncarnationLog(self, name)

    def lines(self) -> list[bytes]:
        """Return the state-change log as it would be on file."""
        return [self.line(logged) for logged in self.events]

    def line(self, logged: LoggedEvent) -> bytes:
        """Return one line as it would be on file."""
        common: dict[str, Any] = {
            "ts": wall_ns(logged.time_ns) + logged.ahead_ns,
            "mono": logged.time_ns,
            "seq": logged.sequence,
            "broker": self.broker_id,
            "inc": logged.incarnation,
            "session": logged.session,
            "broker_epoch": logged.broker_epoch,
        }
        return encode(logged.event, common)


@dataclass(slots=True)
class IncarnationLog:
    """Implements the broker's `StateLog` for one life of its process."""

    log: BrokerLog
    name: str
    _sequence: int = 0
    _session: str = ""
    _broker_epoch: int = -1
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @property
    def next_seq(self) -> int:
        """Number of the next line."""
        return self._sequence

    def emit(self, event: Event) -> None:
        """Keep one event."""
        now, log = in_ns(self._loop), self.log
        ahead_ns = 0 if log.clock is None else log.clock.ahead_ns(now)
        log.events.append(
            LoggedEvent(now, ahead_ns, self._sequence, self.name, self._session, self._broker_epoch, event)
        )
        self._sequence += 1
        for waiter in log.waiting.pop(event.ev, ()):
            if not waiter.done():
                waiter.set_result(None)

    def session_changed(self, session_id: int) -> None:
        """Stamp later lines with this ZooKeeper session; 0 for none."""
        self._session = session_text(session_id)

    def registered(self, broker_epoch: int) -> None:
        """Stamp later lines with this registration."""
        self._broker_epoch = broker_epoch


@dataclass(slots=True)
class MemoryJournal:
    """The fault journal of a simulated run."""

    entries: list[JournalEntry] = field(default_factory=list)

    def note(
        self, number: int, fault: str, step: InjectionStep, *, injection: Injection | None = None, detail: str = ""
    ) -> None:
        """Keep one step of one injection."""
        self.entries.append(entry_of(now_ns(), number, fault, step, injection, detail))


def znode_changes(history: Sequence[tuple[float, Change]]) -> list[ZnodeChange]:
    """Return the znode history as a real run has it, from the servers' own log."""
    return [
        ZnodeChange(
            zxid=change.zxid,
            time_ms=EPOCH_MS + round((time_s - START_S) * 1000),
            type=change.type,
            path=change.path,
            data=change.data.decode("utf-8", errors="replace"),
            version=change.version,
            session=session_text(change.session_id),
            ephemeral_owner=session_text(change.owner),
            source="transaction_log",
        )
        for time_s, change in history
    ]
