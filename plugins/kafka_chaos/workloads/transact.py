"""Producers with transactional ids write transactions, commit or abort them; readers read at both isolation levels."""

import threading
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from harness.contracts.parameters import Draw, Idle, Size, Strict
from harness.contracts.workloads import ClientPlan, Workload
from harness.scenario.seeds import derived_seed
from harness.store.history import JsonlWriter
from harness.values import ACKS_ALL

Isolation = Literal["read_committed", "read_uncommitted"]
TRANSACTOR = "transactor"


class Parameters(Strict):
    """Parameters of the load."""

    transactors: Annotated[int, Size(), Field(ge=0, le=32, description="Processes that write transactions")] = 2
    ids: Annotated[
        int, Size(), Draw((1, 2, 4)), Field(ge=1, le=32, description="Transactional ids of each process, used in turn")
    ] = 2
    doubles: Annotated[
        int, Size(), Field(ge=0, le=32, description="Further processes that have the ids of the first ones")
    ] = 0
    consumers: Annotated[
        int,
        Size(),
        Field(ge=0, le=32, description="Consumer processes; each reads every partition, in a group of its own"),
    ] = 2
    isolation: Annotated[
        Isolation | Annotated[list[Isolation], Field(min_length=1)],
        Field(description="Isolation level of the consumers, which take the values of a list in turn"),
    ] = ["read_committed", "read_uncommitted"]
    records_of_transaction: Annotated[
        int, Size(), Draw((1, 5, 30)), Field(ge=1, le=100_000, description="Records of a transaction at most")
    ] = 10
    partitions_of_transaction: Annotated[
        int, Draw((1, 3)), Field(ge=1, le=1000, description="Partitions of a transaction at most")
    ] = 3
    abort_share: Annotated[
        float, Draw((0.0, 0.2, 0.5)), Field(ge=0, le=1, description="Share of transactions that are aborted on purpose")
    ] = 0.2
    pause_share: Annotated[
        float, Draw((0.0, 0.2)), Field(ge=0, le=1, description="Share of transactions with a pause between two records")
    ] = 0.1
    pause_s: Annotated[float, Draw((0.5, 3.0)), Field(ge=0, le=3600, description="The longest of these pauses")] = 1.0
    away_s: Annotated[
        float, Idle(), Field(ge=0, le=3600, description="The longest pause before an id is initialised again")
    ] = 1.0
    rate_per_s: Annotated[
        float, Size(), Field(gt=0, le=100_000, description="Records a second, of each process within a transaction")
    ] = 50.0
    transaction_timeout_ms: Annotated[
        int,
        Draw((1500, 5000)),
        Field(ge=100, le=900_000, description="The coordinator aborts a transaction that is open for longer"),
    ] = 5000
    message_timeout_ms: Annotated[
        int, Field(ge=100, le=600_000, description="After this a record, or the end of a transaction, is given up")
    ] = 4000
    request_timeout_ms: Annotated[
        int, Draw((300, 1000, 3000)), Field(ge=10, le=300_000, description="Of one request")
    ] = 2000
    value_bytes: Annotated[
        int, Size(), Field(ge=0, le=900_000, description="Length of a value at least; 0 is just long enough")
    ] = 0
    keys: Annotated[int, Size(), Field(ge=1, le=100_000, description="Number of distinct keys")] = 24
    linger_ms: Annotated[
        float, Draw((0.0, 50.0)), Field(ge=0, le=900_000, description="Wait for more records of a batch")
    ] = 5.0
    commit_interval_s: Annotated[float, Field(gt=0, le=3600, description="Between two commits of a consumer")] = 0.5
    reread: Annotated[
        bool, Field(description="At the end, read everything once more; for topics whose log may be truncated")
    ] = False
    final_read_timeout_s: Annotated[float, Field(gt=0, le=3600, description="Deadline for reading to the end")] = 30.0

    @model_validator(mode="after")
    def _doubles_have_first_ones(self) -> Self:
        if self.doubles > self.transactors:
            raise ValueError("doubles have the ids of other processes, of one each at most")
        return self


class Transact:
    """The load of applications that write several records at once, or none of them."""

    name: ClassVar[str] = "transact"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the writers, which are stopped first, and the readers, which then read to the end."""
        assert isinstance(parameters, Parameters)
        settings = parameters.model_dump(mode="json", exclude=_OF_ALL)
        levels = [parameters.isolation] if isinstance(parameters.isolation, str) else parameters.isolation
        writers: list[tuple[str, str, dict[str, object]]] = [
            (f"{TRANSACTOR}-{number}", TRANSACTOR, _of_writer(parameters, number))
            for number in range(1, parameters.transactors + parameters.doubles + 1)
        ]
        readers: list[tuple[str, str, dict[str, object]]] = [
            (f"reader-{number}", "consumer", {"isolation": levels[(number - 1) % len(levels)]})
            for number in range(1, parameters.consumers + 1)
        ]
        return [
            ClientPlan(
                process=process,
                workload=self.name,
                role=role,
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, role, process),
                parameters={**settings, **own},
                stop_order=0 if role == TRANSACTOR else 1,
            )
            for process, role, own in [*writers, *readers]
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
        """Write transactions until `stop` is set, or read until then and to the end."""
        if plan.role == TRANSACTOR:
            from kafka_chaos.workloads.clients.transactor import transact

            transact(plan, operations, stop)
        else:
            from kafka_chaos.workloads.clients.group_member import consume

            consume(plan, operations, stop)


_OF_ALL = {"transactors", "ids", "doubles", "consumers", "isolation"}


def _of_writer(parameters: Parameters, number: int) -> dict[str, object]:
    """Return the parameters of one writer, counted from 1; a double has the ids of an earlier one."""
    first = number if number <= parameters.transactors else number - parameters.transactors
    ids = [f"{TRANSACTOR}-{first}-id-{each}" for each in range(1, parameters.ids + 1)]
    return {"transactional_ids": ids, "acks": ACKS_ALL, "idempotence": True}


PLUGIN: type[Workload] = Transact
