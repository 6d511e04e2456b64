"""Answers that never come: a host's connection is lost instead, once its next write has been carried out, or not."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class LostReplies:
    """Whose next answer is to be lost, and what was."""

    lost: dict[str, str] = field(default_factory=dict)
    """By host, the last write whose answer was lost."""
    _armed: dict[str, bool] = field(default_factory=dict)
    """By host, whether its next write is carried out."""

    def arm(self, host: str, *, carried_out: bool) -> None:
        """Lose the answer to the host's next write."""
        self.lost.pop(host, None)
        self._armed[host] = carried_out

    def disarm(self, host: str) -> None:
        """Lose nothing, if nothing was lost yet."""
        self._armed.pop(host, None)

    def take(self, host: str, writes: Iterable[tuple[str, str]]) -> bool | None:
        """Return whether these are carried out before their answer is lost; None when they are answered.

        A write is what is done, and the path that it is done to.
        """
        carried_out = self._armed.pop(host, None)
        if carried_out is not None:
            what = ", ".join(f"{verb} {path}" for verb, path in writes)
            self.lost[host] = f"{what} ({'carried out' if carried_out else 'not carried out'})"
        return carried_out
