from dataclasses import dataclass

from harness.events import Event


@dataclass(slots=True)
class RecordingStateLog:
    """Keeps events in memory."""

    events: list[Event]

    @property
    def next_seq(self) -> int:
        """How many there are."""
        return len(self.events)

    def emit(self, event: Event) -> None:
        """Keep one event."""
        self.events.append(event)

    def session_changed(self, session_id: int) -> None:
        """Nothing to stamp."""

    def registered(self, broker_epoch: int) -> None:
        """Nothing to stamp."""
