"""The contract of a workload plugin: its client processes, and the work of each of them."""

import threading
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from harness.store.history import JsonlWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    """One client process: plain data, because it is handed to another process."""

    process: str
    """Unique in the run; names the operations file."""
    workload: str
    role: str
    """The work for the plugin's `run`, e.g. producer or consumer."""
    bootstrap_servers: str
    topics: dict[str, int]
    """Number of partitions by name."""
    seed: int
    parameters: dict[str, Any]
    """Plain data for `run`. A producer's have `acks` (-1 for all), and `idempotence` if it is on: checks use both."""
    stop_order: int = 0
    """Clients of a lower number are stopped, and waited for, before those of a higher one."""
    client: dict[str, str] = field(default_factory=dict)
    """Settings with which it connects, under Kafka's names, with references in place of secrets."""
    first_index: int = 0
    """Index of its first operation: where it continues after a kill."""


class Stop(threading.Event):
    """Set when a client must finish."""

    at_once = False
    """Whether it skips its work for the run's end, as it will be started again."""


class Workload(Protocol):
    """One kind of client load."""

    name: ClassVar[str]
    Parameters: ClassVar[type[BaseModel]]

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the client processes of the load."""
        ...

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
        """Do the work of one process until `stop` is set, then finish it (flush, read to the end) and return."""
        ...
