"""Mistakes are planted in functions that the garbage collector lists."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _known_to_the_collector() -> Iterator[None]:
    """Let the collector list what is frozen: it lists no frozen object."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()
