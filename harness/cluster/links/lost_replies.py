"""Lost replies: a host's connection breaks after one of its writes was carried out, or instead of carrying it out."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class LostReplies:
    """Hosts of which a reply will be lost, and the replies that were."""

    lost: dict[str, str] = field(default_factory=dict)
    """By host, the last write whose reply was lost."""
    _armed: dict[str, tuple[bool, int]] = field(default_factory=dict)
    """By host, whether the write is carried out, and how many writes before it are answered."""

    def arm(self, host: str, *, carried_out: bool, answered: int = 0) -> None:
        """Lose the reply to a write of the host, after so many that are answered."""
        self.lost.pop(host, None)
        self._armed[host] = carried_out, answered

    def disarm(self, host: str) -> None:
        """Cancel the loss, if nothing was lost yet."""
        self._armed.pop(host, None)

    def take(self, host: str, writes: Iterable[tuple[str, str]]) -> bool | None:
        """Return whether these writes are carried out before their reply is lost; None if they are answered.

        A write is an operation and its path.
        """
        if host not in self._armed:
            return None
        carried_out, answered = self._armed.pop(host)
        if answered:
            self._armed[host] = carried_out, answered - 1
            return None
        what = ", ".join(f"{verb} {path}" for verb, path in writes)
        self.lost[host] = f"{what} ({'carried out' if carried_out else 'not carried out'})"
        return carried_out
