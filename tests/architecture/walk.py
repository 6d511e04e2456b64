"""The way of one call through the rooms: `walk_of(lambda: phases.judge(folder))`.

Each call from one room into another counts once, where it is first made. A stay is a sequence of calls into one room, a
climb a stay that follows one on a lower floor, and a return a stay in a room that was left before. Methods belong to
the values that are handed on, so they do not count; what a step of `ONE_STEP` calls is a walk of its own.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from inspect import CO_NEWLOCALS
from itertools import groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType

from tools.pages.rooms import ROOT, floors

FLOORS = {room: number for number, floor in enumerate(reversed(floors())) for room in floor}
"""Numbers of floors by rooms, from below."""
ONE_STEP = frozenset({"read_scenario", "missing_plugins", "unusable", "check", "fault", "check_title", "record_phase"})
"""Functions that end at a door: reading a scenario file, finding and importing plugins, and the log of phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The functions that other rooms call, in the order of the calls."""

    functions: tuple[tuple[str, str], ...]
    """Room and name."""

    @property
    def stays(self) -> list[str]:
        """The rooms in the order in which they are entered."""
        return [room for room, _ in groupby(room for room, _ in self.functions)]

    @property
    def climbs(self) -> list[tuple[str, str]]:
        """The ways from a room to one on a higher floor."""
        return [(below, above) for below, above in pairwise(self.stays) if FLOORS[above] > FLOORS[below]]

    @property
    def returns(self) -> int:
        """How many stays are in a room that was left before."""
        return len(self.stays) - len(set(self.stays))

    def __str__(self) -> str:
        lines = [
            f"{FLOORS[room]:3} {room}: {', '.join(name for _, name in functions)}"
            for room, functions in groupby(self.functions, key=lambda function: function[0])
        ]
        rooms = len(set(self.stays))
        numbers = f"{len(self.stays)} stays in {rooms} rooms, {len(self.climbs)} climbs, {self.returns} returns"
        return "\n".join([*lines, numbers])


def walk_of(act: Callable[[], object]) -> Walk:
    """Return the walk of one call, in this thread and in those that it starts."""
    calls: dict[tuple[CodeType, CodeType], tuple[str, str]] = {}
    inside = threading.local()

    def profiled(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "return" and getattr(inside, "step", None) is frame:
            inside.step = None
        if event != "call" or getattr(inside, "step", None) is not None or not (room := _room_of(code)):
            return
        caller = _caller_of(frame)
        if _room_in(caller) != room:
            calls.setdefault((caller, code), (room, code.co_name))
        if code.co_name in ONE_STEP:
            inside.step = frame

    before = sys.getprofile()
    threading.setprofile(profiled)
    sys.setprofile(profiled)
    try:
        act()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return Walk(functions=tuple(calls.values()))


def _caller_of(frame: FrameType) -> CodeType:
    """Return the nearest caller in the harness, or the function itself if there is none."""
    caller = frame.f_back
    while caller is not None and not _room_in(caller.f_code):
        caller = caller.f_back
    return caller.f_code if caller is not None else frame.f_code


def _room_of(code: CodeType) -> str:
    """Return the room of a module's function; empty for methods, closures, classes and what is not in a room."""
    named = "." not in code.co_qualname and not code.co_name.startswith("<")
    return _room_in(code) if named and code.co_flags & CO_NEWLOCALS else ""


def _room_in(code: CodeType) -> str:
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT / "harness"):
        return ""
    room = ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
    return room if room in FLOORS else ""
