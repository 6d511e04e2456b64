"""As which release is a broker started, and which one wrote what part of its log? It may change while a run lasts.

Each change is a line in a file beside the broker's properties, for later starts and for readers of its log.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from harness.cluster.layout import ClusterLayout

FILE_NAME = "releases.jsonl"


class Writer(NamedTuple):
    """From where on a broker's log is one release's."""

    position: int
    """In bytes."""
    system: str
    """As scenarios name it."""


def writers(layout: ClusterLayout, broker_id: int) -> tuple[Writer, ...]:
    """Return the writers of a broker's log, in order; the first is the cluster's release at its start."""
    path = layout.config_file(broker_id).with_name(FILE_NAME)
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return (Writer(0, layout.system), *(Writer(**json.loads(line)) for line in lines))


def system_of(layout: ClusterLayout, broker_id: int) -> str:
    """Return what a broker is started as."""
    return writers(layout, broker_id)[-1].system


def change(layout: ClusterLayout, broker_id: int, system: str) -> None:
    """Have a broker that does not run be another release from its next start on; nothing happens if it is that."""
    if system_of(layout, broker_id) == system:
        return
    log = layout.human_log(broker_id)
    changed = Writer(log.stat().st_size if log.exists() else 0, system)
    with layout.config_file(broker_id).with_name(FILE_NAME).open("a", encoding="ascii") as file:
        file.write(json.dumps(changed._asdict()) + "\n")


def parts_of(lines: bytes, position: int, by: Sequence[Writer]) -> list[tuple[str, bytes]]:
    """Return the system and its lines, for lines at a position of a log; a system without lines is left out."""
    ends = [writer.position for writer in by[1:]]
    bounds = zip(by, [*ends, position + len(lines)], strict=True)
    parts = [(each.system, lines[max(each.position - position, 0) : max(end - position, 0)]) for each, end in bounds]
    return [(system, part) for system, part in parts if part]
