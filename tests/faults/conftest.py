from pathlib import Path

import pytest

from tests.fake_cluster import FakeCluster


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(root=tmp_path)
