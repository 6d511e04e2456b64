"""Whose packets may be dropped: those of another network namespace, never those of this machine."""

import os
import subprocess

import pytest

from harness.cluster.containers import filters
from harness.errors import ClusterError

pytestmark = pytest.mark.skipif(bool(filters.lacking()), reason=filters.lacking() or "it can")


def test_the_harness_never_filters_its_own_network() -> None:
    with pytest.raises(ClusterError, match="has the harness's own network namespace, which is not filtered"):
        filters.dropped(os.getpid())


def test_another_network_namespace_is_looked_at() -> None:
    with subprocess.Popen(["unshare", "-n", "sh", "-c", "echo in; read end"], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        assert filters.dropped(other.pid) is None


def test_of_a_process_that_is_gone_nothing_is_filtered() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with pytest.raises(ClusterError, match=f"for process {gone.pid}"):
        filters.dropped(gone.pid)
