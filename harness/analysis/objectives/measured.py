"""What was measured for one objective."""

from dataclasses import dataclass

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value of one objective, or why there is none."""

    value: float | None = None
    reason: str = ""
    """Where and when it was measured, or why it could not be."""
    open: bool = False
    """Whether the true value is the measured one or more: the evidence ends before it is known."""
    cut_off: bool = False
    """Whether the next fault is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time in which a fault was in force."""

    fault: str
    begin_ns: int
    healed_ns: int | None
    """None if it never was."""
