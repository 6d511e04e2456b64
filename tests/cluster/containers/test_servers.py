"""Which process is the server in a container, and when it was started."""

import os
import subprocess
import sys
import time

import pytest

from harness.cluster.containers.servers import child_of, started_ns
from harness.errors import ClusterError

SECOND_NS = 1_000_000_000
TICK_NS = SECOND_NS // os.sysconf("SC_CLK_TCK")
FIRST = "import subprocess, sys; child = subprocess.Popen(['cat']); print(child.pid, flush=True); child.wait()"


def test_a_server_is_the_child_of_the_first_process_and_its_start_is_known() -> None:
    before_ns = time.monotonic_ns()
    with subprocess.Popen([sys.executable, "-c", FIRST], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        server = int(first.stdout.readline())
        assert child_of(first.pid) == server
        assert before_ns - TICK_NS <= started_ns(first.pid) <= started_ns(server) <= time.monotonic_ns()
        with pytest.raises(ClusterError, match=f"process {server} has no server as its child"):
            child_of(server)
        first.communicate()


def test_a_process_that_is_gone_was_never_started() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with pytest.raises(ClusterError, match=f"process {gone.pid} is gone"):
        started_ns(gone.pid)
