"""Lost replies: a host's connection breaks after its next write was carried out, or instead of carrying it out."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class LostReplies:
    """Hosts whose next reply will be lost, and the replies that were."""

    lost: dict[str, str] = field(default_factory=dict)
    """By host, the last write whose reply was lost."""
    _armed: dict[str, bool] = field(default_factory=dict)
    """By host, whether its next write is carried out."""

    def arm(self, host: str, *, carried_out: bool) -> None:
        """Lose the reply to the host's next write."""
        self.lost.pop(host, None)
        self._armed[host] = carried_out

    def disarm(self, host: str) -> None:
        """Cancel the loss, if nothing was lost yet."""
        self._armed.pop(host, None)

    def take(self, host: str, writes: Iterable[tuple[str, str]]) -> bool | None:
        """Return whether these writes are carried out before their reply is lost; None if they are answered.

        A write is an operation and its path.
        """
        carried_out = self._armed.pop(host, None)
        if carried_out is not None:
            what = ", ".join(f"{verb} {path}" for verb, path in writes)
            self.lost[host] = f"{what} ({'carried out' if carried_out else 'not carried out'})"
        return carried_out
