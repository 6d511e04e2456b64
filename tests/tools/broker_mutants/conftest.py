"""Mistakes are planted in functions that the garbage collector knows of."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _known_to_the_collector() -> Iterator[None]:
    """Give it back what it was told to pass over when all tests had been imported."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()
