"""Where do the answers to a script differ first, and in which fields?"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.client_rules.scripts.player import NO_ANSWER, Answers
from harness.client_rules.scripts.script import AWAIT, BEGIN, Script, Step

_LONGEST_VALUE = 40
_MOST_PLACES = 3
MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first step of a script whose answers differ."""

    at: int
    step: Step
    ours: Any
    theirs: Any

    @property
    def places(self) -> tuple[str, ...]:
        """Return the fields that differ, ours ≠ theirs, without positions in lists."""
        return tuple(dict.fromkeys(_places(self.ours, self.theirs, "")))

    @property
    def signature(self) -> str:
        """Return what groups differences of one cause."""
        return f"{self.step.api}: {'; '.join(self.places[:_MOST_PLACES])}"


def difference(
    script: Script, ours: Answers, theirs: Answers, intended: Callable[[Step, Sequence[str]], str] | None = None
) -> Difference | None:
    """Return the first difference of two plays, None if there is none; `intended` gives the reason of one to skip.

    Steps after one that only one broker answers are not compared: the other broker gets them seconds later.
    """
    for at, (step, our, their) in enumerate(zip(_answered(script), ours, theirs, strict=False)):
        if our != their:
            found = Difference(at=at, step=step, ours=our, theirs=their)
            if intended is None or not intended(step, found.places):
                return found
            if NO_ANSWER in (our, their):
                return None
    return None


def _answered(script: Script) -> Iterator[Step]:
    """Yield the step that each answer is about; those that nothing awaits are answered at the end."""
    begun: deque[Step] = deque()
    for step in script:
        if step.how == BEGIN:
            begun.append(step)
        yield begun.popleft() if step.how == AWAIT and begun else step
    yield from begun


def _places(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    if ours == theirs:
        return
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            yield from _places(ours.get(name, MISSING), theirs.get(name, MISSING), f"{path}.{name}" if path else name)
    elif isinstance(ours, list) and isinstance(theirs, list):
        yield from _places_in_lists(ours, theirs, path)
    else:
        yield f"{path} {_short(ours)} ≠ {_short(theirs)}"


def _places_in_lists(ours: Sequence[Any], theirs: Sequence[Any], path: str) -> Iterator[str]:
    if len(ours) == len(theirs):
        for our, their in zip(ours, theirs, strict=True):
            yield from _places(our, their, f"{path}[]")
        return
    only_ours = [each for each in ours if each not in theirs]
    only_theirs = [each for each in theirs if each not in ours]
    yield f"{path} has {len(ours)} ≠ {len(theirs)}: {_short(only_ours)} ≠ {_short(only_theirs)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
