"""Writes the broker's state-change log: one event, one line, one write, readable after SIGKILL."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.events import Event, encode
from harness.system.chain import Link, chained


class StateLog(Protocol):
    """The broker's log of its state changes; the event is on file when `emit` returns."""

    @property
    def next_seq(self) -> int:
        """Number of the next line."""
        ...

    def emit(self, event: Event) -> None:
        """Write one event."""
        ...

    def session_changed(self, session_id: int) -> None:
        """Stamp later lines with this ZooKeeper session; 0 for none."""
        ...

    def registered(self, broker_epoch: int) -> None:
        """Stamp later lines with this registration."""
        ...


@dataclass(slots=True)
class LineStateLog:
    """Encodes events and passes each line to `write_line`, which must not return before it is on file."""

    broker_id: int
    incarnation: str
    write_line: Callable[[bytes], None]
    wall_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]
    _sequence: int = 0
    _session: str = ""
    _broker_epoch: int = -1
    _link: Link = field(default_factory=Link)

    @property
    def next_seq(self) -> int:
        """Number of the next line."""
        return self._sequence

    def emit(self, event: Event) -> None:
        """Write one event."""
        common: dict[str, Any] = {
            "ts": self.wall_ns(),
            "mono": self.monotonic_ns(),
            "seq": self._sequence,
            "broker": self.broker_id,
            "inc": self.incarnation,
            "session": self._session,
            "broker_epoch": self._broker_epoch,
        }
        self._sequence += 1
        line, self._link = chained(encode(event, common), self._link)
        self.write_line(line)

    def session_changed(self, session_id: int) -> None:
        """Stamp later lines with this ZooKeeper session; 0 for none."""
        self._session = f"0x{session_id & (2**64 - 1):x}" if session_id else ""

    def registered(self, broker_epoch: int) -> None:
        """Stamp later lines with this registration."""
        self._broker_epoch = broker_epoch
