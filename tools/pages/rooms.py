"""Draws the rooms on their floors with the imports that no others imply: `python -m tools.pages`."""

import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import grimp
from jinja2 import Environment

from tools.pages.page import Page

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
PACKAGES: list[str] = CONTRACTS["root_packages"]
ENTRANCE = "harness.__main__"

WIDTH = 1080
FLOOR_HEIGHT = 64
BOX_WIDTH, BOX_HEIGHT = 150, 30
MARGIN, LANE = 12, 10
"""What an arrow keeps from a box that it passes, and from another arrow beside it."""
TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{ width }} {{ height }}" font-family="sans-serif" font-size="13">
<title>The rooms on their floors; an arrow is an import, and all of them lead down</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 8 4 0 8z" fill="#789"/></marker></defs>
<rect width="100%" height="100%" fill="#fff"/>
{% for floor in range(floors) if floor % 2 %}<rect y="{{ floor * floor_height }}" width="{{ width }}" \
height="{{ floor_height }}" fill="#f4f6f8"/>
{% endfor -%}
{% for way in ways %}<path d="{{ way }}" fill="none" stroke="#789" marker-end="url(#head)"/>
{% endfor -%}
{% for box in boxes %}<rect x="{{ box.left }}" y="{{ box.top }}" width="{{ box_width }}" height="{{ box_height }}" \
rx="5" fill="#e6eef8" stroke="#468"/>\
<text x="{{ box.x }}" y="{{ box.top + 20 }}" text-anchor="middle">{{ box.name }}</text>
{% endfor -%}
</svg>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A room in the picture."""

    name: str
    x: float
    """Its middle."""
    floor: int

    @property
    def left(self) -> float:
        """Its left side."""
        return self.x - BOX_WIDTH / 2

    @property
    def top(self) -> float:
        """Its upper side."""
        return self.floor * FLOOR_HEIGHT + (FLOOR_HEIGHT - BOX_HEIGHT) / 2

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.top + BOX_HEIGHT


class Imports:
    """The imports of all packages, seen as imports between rooms."""

    def __init__(self) -> None:
        self.modules = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)

    @cached_property
    def rooms(self) -> frozenset[str]:
        """Every package but the harness, and what lies directly in the harness."""
        own = set(self.modules.find_children("harness")) - {ENTRANCE}
        return frozenset(own | set(PACKAGES) - {"harness"})

    @cached_property
    def arrows(self) -> dict[str, set[str]]:
        """By room, the rooms that it imports."""
        arrows: dict[str, set[str]] = {room: set() for room in self.rooms}
        for importer in self.modules.modules:
            for imported in self.modules.find_modules_directly_imported_by(importer):
                ends = _room(importer), _room(imported)
                if ends[0] != ends[1] and self.rooms.issuperset(ends):
                    arrows[ends[0]].add(ends[1])
        return arrows

    def reachable(self, room: str) -> set[str]:
        """Return the rooms that a room imports directly or through others."""
        reached: set[str] = set()
        ahead = [room]
        while ahead:
            new = self.arrows[ahead.pop()] - reached
            reached |= new
            ahead.extend(new)
        return reached

    def needed(self) -> Iterator[tuple[str, str]]:
        """Yield the arrows that no others imply, in order."""
        for room, direct in sorted(self.arrows.items()):
            implied = set[str]().union(*map(self.reachable, direct))
            yield from ((room, other) for other in sorted(direct - implied))


def _room(module: str) -> str:
    package, _, rest = module.partition(".")
    return f"{package}.{rest.partition('.')[0]}" if package == "harness" and rest else package


def floors() -> list[list[str]]:
    """Return the rooms of each floor by their names, from the top."""
    contracts = {contract["id"]: contract for contract in CONTRACTS["contracts"]}
    above = contracts["packages"]["layers"][:-1]
    within = [_each(layer, "harness.") for layer in contracts["floors"]["layers"]]
    return [_each(layer) for layer in above] + [floor for floor in within if floor != [ENTRANCE]]


def _each(layer: str, prefix: str = "") -> list[str]:
    return [prefix + name.strip() for name in layer.split("|")]


def ways(boxes: Mapping[str, Box], arrows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the path of each arrow, which passes beside the boxes of the floors between."""
    taken: set[tuple[int, float]] = set()
    for above, below in ((boxes[a], boxes[b]) for a, b in arrows):
        x, path = above.x, f"M{above.x:g} {above.bottom:g}"
        for floor in range(above.floor + 1, below.floor + 1):
            before, top = x, floor * FLOOR_HEIGHT + (FLOOR_HEIGHT - BOX_HEIGHT) / 2
            x += (below.x - x) / (below.floor - floor + 1)
            if floor < below.floor:
                x = _lane(x, floor, boxes.values(), taken)
                taken.add((floor, x))
            path += f"C{before:g} {top - 12:g} {x:g} {top - FLOOR_HEIGHT + BOX_HEIGHT + 12:g} {x:g} {top:g}"
            path += f"V{top + BOX_HEIGHT:g}" if floor < below.floor else ""
        yield path


def _lane(near: float, floor: int, boxes: Iterable[Box], taken: Container[tuple[int, float]]) -> float:
    """Return where an arrow can pass a floor: beside its boxes and the arrows that pass it already."""
    apart = BOX_WIDTH / 2 + MARGIN
    xs = [box.x for box in boxes if box.floor == floor]
    lanes = [x for x in range(0, WIDTH, LANE) if (floor, x) not in taken and all(abs(x - each) >= apart for each in xs)]
    return min(lanes, key=lambda lane: abs(lane - near))


def picture() -> str:
    """Return the picture as SVG."""
    boxes = {
        room: Box(name=room.removeprefix("harness."), x=WIDTH * (place + 0.5) / len(rooms), floor=number)
        for number, rooms in enumerate(floors())
        for place, room in enumerate(rooms)
    }
    return (
        Environment(autoescape=True)
        .from_string(TEMPLATE)
        .render(
            width=WIDTH,
            height=len(floors()) * FLOOR_HEIGHT,
            floors=len(floors()),
            floor_height=FLOOR_HEIGHT,
            box_width=BOX_WIDTH,
            box_height=BOX_HEIGHT,
            boxes=boxes.values(),
            ways=ways(boxes, Imports().needed()),
        )
    )


def upward(imports: Imports) -> list[tuple[str, str]]:
    """Return the arrows that do not lead to a lower floor."""
    number = {room: place for place, rooms in enumerate(floors()) for room in rooms}
    return [(a, b) for a, others in sorted(imports.arrows.items()) for b in sorted(others) if number[b] <= number[a]]


PAGES = (Page(path="docs/rooms.svg", text=picture),)
