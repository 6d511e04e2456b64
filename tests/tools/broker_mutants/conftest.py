"""Mistakes are planted in functions that the garbage collector lists."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _known_to_the_collector() -> Iterator[None]:
    """Let the collector list what is frozen: it lists no frozen object. A collection of all takes a second."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()
