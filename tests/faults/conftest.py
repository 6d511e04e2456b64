from pathlib import Path

import pytest

from tests.fake_cluster import FakeCluster
from tests.virtual_time import only_virtual_time, pytest_asyncio_loop_factories

__all__ = ["only_virtual_time", "pytest_asyncio_loop_factories"]


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(root=tmp_path)
