"""Answers that never come: a host's connection is lost instead, once its next write has been carried out, or not."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.broker.zookeeper.client import Op


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

    def take(self, host: str, ops: Sequence[Op]) -> bool | None:
        """Return whether this write is carried out before its answer is lost; None when it is answered."""
        carried_out = self._armed.pop(host, None)
        if carried_out is not None:
            what = ", ".join(f"{type(op).__name__.lower()} {op.path}" for op in ops)
            self.lost[host] = f"{what} ({'carried out' if carried_out else 'not carried out'})"
        return carried_out
