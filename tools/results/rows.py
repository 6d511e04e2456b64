"""Where are results kept, and how does a row get there? One row a line in results/*.json, the oldest first."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
MEASUREMENTS, CAMPAIGNS, BUGS = "measurements", "campaigns", "bugs"
AREAS, FIGURES = "areas", "figures"
"""What measurements are about: written by hand."""

Row = dict[str, Any]


def load(name: str, folder: Path = RESULTS) -> list[Row]:
    """Return the rows of results/NAME.json."""
    rows: list[Row] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def save(name: str, rows: Sequence[Row], folder: Path = RESULTS) -> None:
    """Write rows, one a line, so that a new row is one line of a diff."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def append(name: str, row: Mapping[str, Any], folder: Path = RESULTS) -> None:
    """Add one row at the end of results/NAME.json."""
    save(name, [*load(name, folder), dict(row)], folder)


def circumstances() -> Row:
    """Return date, commit, machine and load average of the last minute: what every row begins with."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def record(
    command: str,
    figures: Mapping[str, float],
    peers: Mapping[str, float] | None = None,
    *,
    folder: Path = RESULTS,
) -> None:
    """Append a measurement.

    Args:
        command: What measured, so that a reader can repeat it.
        figures: Values by the ids of results/figures.json, in the units that stand there.
        peers: The same figures of the peer that was measured beside, for example Kafka 3.9.
        folder: Where results are kept.

    Raises:
        KeyError: A figure is not in results/figures.json.
    """
    known = {row["id"] for row in load(FIGURES)}
    if unknown := sorted({*figures, *(peers or {})} - known):
        raise KeyError(f"results/figures.json has no {', '.join(unknown)}: add a row with its area, unit and aim")
    rounded = {name: float(f"{value:.4g}") for name, value in figures.items()}
    row = {**circumstances(), "command": command, "figures": rounded}
    if peers:
        row["peers"] = {name: float(f"{value:.4g}") for name, value in peers.items()}
    append(MEASUREMENTS, row, folder)
