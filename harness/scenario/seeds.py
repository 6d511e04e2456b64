"""Seeds of single draws, made from the seed of the run."""

import hashlib


def derived_seed(seed: int, *path: str | int) -> int:
    """Return the seed of one draw; it depends on the run's seed and on what is drawn, and on nothing else."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
