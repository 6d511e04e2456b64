"""The contract a workload plugin fulfils: which client processes it needs, and what each of them does."""

import threading
from dataclasses import dataclass
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
    """What the plugin's `run` is to do, e.g. producer or consumer."""
    bootstrap_servers: str
    topics: dict[str, int]
    """Name to number of partitions."""
    seed: int
    parameters: dict[str, Any]
    stop_order: int = 0
    """Clients of a lower number are stopped, and waited for, before those of a higher one."""
    first_index: int = 0
    """Of its first operation: where it goes on after it was killed."""


class Stop(threading.Event):
    """Set when a client is to finish."""

    at_once = False
    """Whether what it would still do for the run's end is left out: it will be started again."""


class Workload(Protocol):
    """One kind of client load."""

    name: ClassVar[str]
    Parameters: ClassVar[type[BaseModel]]

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the client processes that the load consists of."""
        ...

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
        """Do the work of one process until `stop` is set, then finish it (flush, read to the end) and return."""
        ...
