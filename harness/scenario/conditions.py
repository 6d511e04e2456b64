"""What a step waits for: conditions in a few words, with the names of roles."""

import re
from dataclasses import dataclass

CHECKPOINT = "checkpoint"
ALLOWED = "`A leads orders-0`, `ISR of orders-0 is A, B`, or `checkpoint`"
_PARTITION = r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d{1,9})"
_LEADS = re.compile(rf"(?P<roles>\w+) leads {_PARTITION}")
_ISR = re.compile(rf"ISR of {_PARTITION} is (?P<roles>\w+(\s*,\s*\w+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The leader or the ISR that a partition has to have; without a topic: high watermarks are checkpointed."""

    topic: str = ""
    partition: int = -1
    leader: str = ""
    """Role; empty where the ISR is asked for."""
    isr: tuple[str, ...] = ()
    """Roles, in any order."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Those that it names."""
        return (self.leader,) if self.leader else self.isr


def roles_in(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(","))


def parse_condition(text: str) -> Condition:
    """Return what the words mean.

    Raises:
        ValueError: they are none of the allowed forms.
    """
    text = " ".join(text.split())
    if text == CHECKPOINT:
        return Condition()
    if match := _LEADS.fullmatch(text):
        return Condition(topic=match["topic"], partition=int(match["partition"]), leader=match["roles"])
    if match := _ISR.fullmatch(text):
        return Condition(topic=match["topic"], partition=int(match["partition"]), isr=roles_in(match["roles"]))
    raise ValueError(f"not a condition: {text!r}; allowed: {ALLOWED}")
