"""Members of groups in Go, franz-go and sarama: the same life of a group, with the answers that Kafka 3.9.1 gives too.

Compiling them takes a processor most of a minute the first time, so no day draws these tests: a night takes them, and
naming the module runs it.
"""

import json
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(0)]

SOURCES = Path(__file__).parent / "go_clients"
GO = shutil.which("go")
PATIENCE_S = 120
PARTITIONS, REPLICAS = 4, 3
EVERYTHING = list(range(PARTITIONS))
NONE_OF_A_GROUP = {"error": 0, "state": "Dead", "type": "", "protocol": "", "members": []}
UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, GROUP_SUBSCRIBED_TO_TOPIC = 25, 68, 69, 86


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both programs."""
    if GO is None:
        pytest.skip("no Go here: clients in Go are not tried")
    folder = tmp_path_factory.mktemp("programs")
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        fetched = subprocess.run(
            [GO, "mod", "download"],
            cwd=SOURCES,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("clients in Go cannot be built here: their modules cannot be fetched")
    if fetched.returncode:
        pytest.skip(f"clients in Go cannot be built here: {fetched.stderr.strip()[-300:]}")
    command = [GO, "build", "-mod=readonly", "-o", str(folder), "./franz", "./sarama"]
    subprocess.run(command, cwd=SOURCES, env=environment, timeout=900, check=True)
    return folder


@dataclass
class Member:
    """A process that reads as a member, and what it has written of that."""

    process: subprocess.Popen[str]
    assigned: list[int] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    failed: list[Any] = field(default_factory=list)

    def listen(self) -> None:
        """Take in what it writes, until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            written = json.loads(line)
            self.assigned = written.get("assigned", self.assigned)
            self.read.update(int(value) for values in written.get("read", {}).values() for value in values)
            if written.get("commit", 0) or "failed" in written:
                self.failed.append(written)

    def leave(self) -> None:
        """Have it leave the group and end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0


@dataclass(frozen=True)
class Client:
    """One of the programs at one cluster."""

    program: Path
    servers: str
    topic: str
    """Of this name is the group too."""

    def does(self, command: str, *arguments: object) -> Any:
        """Return what it learns from a command."""
        words = [str(self.program), self.servers, command, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout)

    @contextmanager
    def member(self, strategy: str) -> Iterator[Member]:
        """A member until the end of the block, at which it is killed."""
        words = [str(self.program), self.servers, "member", self.topic, self.topic, strategy]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            member = Member(process)
            listener = threading.Thread(target=member.listen)
            listener.start()
            try:
                yield member
            finally:
                process.kill()
                listener.join()
        assert member.failed == []

    def describes(self) -> dict[str, Any]:
        """Return the group, of each member the partitions alone."""
        described: dict[str, Any] = self.does("describe", self.topic)
        return described | {"members": sorted(each["partitions"] for each in described["members"])}

    def has_committed(self, offset: int) -> bool:
        return bool(self.does("offsets", self.topic) == {str(partition): offset for partition in EVERYTHING})


def until(holds: Callable[[], bool], *members: Member) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        seen = [(each.process.poll(), each.assigned, len(each.read), each.failed) for each in members]
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def share(*members: Member) -> bool:
    """Return whether these members have all partitions, each its own and each the same number."""
    together = sorted(partition for each in members for partition in each.assigned)
    return together == EVERYTHING and len({len(each.assigned) for each in members}) == 1


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("program", ["franz", "sarama"])
def test_members_in_go_share_die_leave_and_their_group_is_deleted(
    cluster: dict[str, Any], programs: Path, program: str, strategy: str
) -> None:
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    client = Client(programs / program, cluster["bootstrap_servers"], topic)
    assert client.does("create", topic, PARTITIONS, REPLICAS) == {"error": 0}
    assert client.does("produce", topic, PARTITIONS, 0, 1000) == {"produced": 1000}
    with client.member(strategy) as first:
        until(lambda: first.assigned == EVERYTHING, first)
        with client.member(strategy) as killed:
            until(lambda: share(first, killed), first, killed)
            until(lambda: first.read | killed.read == set(range(1000)) and client.has_committed(250), first, killed)
            stable = {"error": 0, "state": "Stable", "type": "consumer", "protocol": strategy}
            assert client.describes() == stable | {"members": sorted([first.assigned, killed.assigned])}
            assert client.does("delete", topic) == {"error": NON_EMPTY_GROUP}
            assert client.does("delete-offset", topic, topic, 0) == {"error": GROUP_SUBSCRIBED_TO_TOPIC}
            assert client.does("set-offset", topic, topic, 0, 7) == {"error": UNKNOWN_MEMBER_ID}
        until(lambda: first.assigned == EVERYTHING, first)
        client.does("produce", topic, PARTITIONS, 1000, 1100)
        until(lambda: first.read | killed.read == set(range(1100)), first)
        with client.member(strategy) as last:
            until(lambda: share(first, last), first, last)
            first.leave()
            until(lambda: last.assigned == EVERYTHING, last)
            client.does("produce", topic, PARTITIONS, 1100, 1200)
            until(lambda: last.read >= set(range(1100, 1200)) and client.has_committed(300), last)
            last.leave()
    assert client.describes() == NONE_OF_A_GROUP | {"state": "Empty", "type": "consumer"}
    assert client.does("set-offset", topic, topic, 1, 7) == {"error": 0}
    assert client.does("delete-offset", topic, topic, 0) == {"error": 0}
    assert client.does("offsets", topic) == {"1": 7, "2": 300, "3": 300}
    assert client.does("delete", topic) == {"error": 0}
    assert client.describes() == NONE_OF_A_GROUP
    assert client.does("delete", topic) == {"error": GROUP_ID_NOT_FOUND}
    assert client.does("offsets", topic) == {}
