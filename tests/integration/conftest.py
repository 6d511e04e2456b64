"""A cluster that all tests share which only talk to one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest


def chaos_cluster(*arguments: str) -> str:
    """Run `chaos cluster …` and return what it prints."""
    command = [sys.executable, "-m", "harness", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A cluster that stays, as `chaos cluster status --json` describes it; it moves no leader of its own accord."""
    folder = str(tmp_path_factory.mktemp("cluster") / "c")
    chaos_cluster("up", "--dir", folder, "--property", "auto.leader.rebalance.enable=false")
    try:
        yield json.loads(chaos_cluster("status", "--dir", folder, "--json"))
    finally:
        chaos_cluster("down", "--dir", folder)
