"""Why are mutants set apart, and why are others not reached? Both are written by hand, from a reading of the broker."""

from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

EQUIVALENT = Path(__file__).parent / "equivalent.yaml"
UNREACHED = Path(__file__).parent / "unreached.yaml"


def equivalent() -> dict[str, str]:
    """Return why mutants are equivalent, by their keys."""
    return _read(EQUIVALENT)


def unreached() -> dict[str, str]:
    """Return why the battery does not reach mutants and functions, by the beginning of their keys."""
    return _read(UNREACHED)


@cache
def _read(path: Path) -> dict[str, str]:
    reasons: dict[str, str] | None = YAML(typ="safe").load(path)
    return reasons or {}
