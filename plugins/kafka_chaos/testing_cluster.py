"""The cluster that the fixture `kafka_cluster` gives a test, and the clusters of a session behind it."""

import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from kafka_chaos.api import Cluster

__all__ = ["Clusters", "KafkaCluster"]

NAME_LENGTH = 40
OF_BROKERS = ("broker_start", "broker_registered", "broker_stop", "zk_session", "controller_elected", "log_dir_failure")
STEPS = ("replica_state", "partition_state")
"""Steps of a controller's state machines, of which an election is the result; a line for each replica."""
UNSAID = {"broker", "ts", "ev", "mono", "seq", "inc", "session", "broker_epoch"}
"""Fields of a state change that its line for people does not have."""


class KafkaCluster(Cluster):
    """A cluster that tests share, as one of them sees it: with a prefix, and what the brokers did meanwhile."""

    def __init__(self, **wanted: Any) -> None:
        super().__init__(**wanted)
        self.prefix = ""
        """How names of topics and groups begin that are this test's."""
        self._begun_ns = 0

    def begin(self, prefix: str) -> None:
        """Be the cluster of another test."""
        self.prefix, self._begun_ns = prefix, time.time_ns()

    def name(self, name: str) -> str:
        """Return a name that only this test has, of a topic, a group or a transactional id."""
        return f"{self.prefix}{name}"

    def topic(self, name: str, *, partitions: int = 1, replication_factor: int | None = None) -> str:
        """Create a topic and return its name, with the prefix of this test."""
        self.create_topic(self.name(name), partitions=partitions, replication_factor=replication_factor)
        return self.name(name)

    def changes_of_test(self) -> list[dict[str, Any]]:
        """Return what the brokers say that they did since the test began, by time."""
        return [line for line in self.state_changes() if line.get("ts", self._begun_ns) >= self._begun_ns]

    def describe_changes(self, limit: int) -> str:
        """Return the last of them that are about this test's topics or about a whole broker, a line each."""
        own = [line for line in self.changes_of_test() if self._is_own(line)]
        lines = [f"... and {len(own) - limit} before"] if len(own) > limit else []
        return "\n".join(lines + [self._line(line) for line in own[-limit:]])

    def _is_own(self, line: Mapping[str, Any]) -> bool:
        own = line.get("ev") not in STEPS and str(line.get("topic", "")).startswith(self.prefix)
        return own or line.get("ev") in OF_BROKERS

    def _line(self, line: Mapping[str, Any]) -> str:
        seconds = (line.get("ts", self._begun_ns) - self._begun_ns) / 1e9
        said = " ".join(f"{name}={value}" for name, value in line.items() if name not in UNSAID)
        return f"{seconds:8.3f} s  broker {line['broker']}  {line.get('ev', '')}  {said}"


class Clusters:
    """The clusters of a session: one for each that tests ask for, started when the first of them does."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: dict[str, KafkaCluster] = {}
        self._tests = 0

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop all of them."""
        self._stack.close()

    def of_test(self, test: str, wanted: Mapping[str, Any]) -> KafkaCluster:
        """Return the cluster that a test asks for, with a prefix of this test.

        Raises:
            HarnessError: it cannot be had.
        """
        key = repr(sorted(wanted.items()))
        if key not in self._running:
            self._running[key] = self._stack.enter_context(KafkaCluster(**wanted))
        cluster = self._running[key]
        self._tests += 1
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", test)[:NAME_LENGTH].strip("-")
        cluster.begin(f"{name}-{self._tests}-")
        return cluster
