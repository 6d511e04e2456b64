"""Producers write unique values with known keys, consumers read every partition and commit, through every fault.

Committers only commit: rising positions in a group of their own, which they read back after each of their restarts.
"""

import threading
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from harness.contracts.parameters import Draw, Size, Strict
from harness.contracts.workloads import ClientPlan, Workload
from harness.scenario.seeds import derived_seed
from harness.store.history import JsonlWriter
from harness.values import ACKS_ALL

Acks = Literal[0, 1, "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
MOST_NUMBERED = 5
"""Batches of an idempotent producer that brokers remember, hence the limit of batches in flight."""


class Parameters(Strict):
    """Parameters of the load."""

    producers: Annotated[int, Size(), Field(ge=0, le=32, description="Producer processes")] = 2
    consumers: Annotated[
        int,
        Size(),
        Field(ge=0, le=32, description="Consumer processes; each reads every partition, in a group of its own"),
    ] = 1
    committers: Annotated[
        int,
        Field(ge=0, le=32, description="Processes that only commit offsets, and read them back at each restart"),
    ] = 0
    acks: Annotated[
        Acks | Annotated[list[Acks], Field(min_length=1)],
        Field(description="0, 1 or all; a list gives each producer in turn one of them"),
    ] = "all"
    rate_per_s: Annotated[float, Size(), Field(gt=0, le=100_000, description="Records a second, of each producer")] = (
        50.0
    )
    records: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description="Records of each producer, which then waits; empty: until the end of the load",
        ),
    ] = None
    value_bytes: Annotated[
        int,
        Size(),
        Draw((0, 0, 100, 1000)),
        Field(ge=0, le=900_000, description="Least length of a value; 0: just long enough to be unique"),
    ] = 0
    padding_bytes: Annotated[
        int,
        Draw((100, 3000, 100_000, 400_000), within_segments=True),
        Field(ge=0, le=900_000, description="Most bytes after a value's id; drawn for each record"),
    ] = 0
    nulls: Annotated[
        float, Draw((0.05, 0.3)), Field(ge=0, le=1, description="Share of records without a value, named by a header")
    ] = 0.0
    headers: Annotated[int, Draw((1, 5)), Field(ge=0, le=100, description="Headers of each record")] = 0
    disorder_ms: Annotated[
        int, Draw((100, 5000)), Field(ge=0, le=86_400_000, description="How far timestamps may lie in the past")
    ] = 0
    listers: Annotated[
        int,
        Field(ge=0, le=32, description="Processes that request latest, earliest and timed offsets of every partition"),
    ] = 0
    list_interval_s: Annotated[
        float, Draw((0.05, 0.2, 1.0)), Field(gt=0, le=3600, description="Between two questions of a lister")
    ] = 0.2
    read_share: Annotated[
        float,
        Field(ge=0, le=1, description="Share of the questions of a lister that read records, from a known offset on"),
    ] = 0.0
    delete_records_of: Annotated[
        list[str], Field(description="Topics whose records before an offset are sometimes deleted by listers")
    ] = []
    keys: Annotated[
        int, Size(), Draw((12, 24, 500)), Field(ge=1, le=100_000, description="Number of distinct keys")
    ] = 24
    message_timeout_ms: Annotated[
        int, Field(ge=100, le=600_000, description="After this the outcome of a send is left unknown")
    ] = 5000
    request_timeout_ms: Annotated[
        int, Draw((100, 300, 1000, 3000)), Field(ge=10, le=300_000, description="Of one request")
    ] = 2000
    retries: Annotated[int, Field(ge=0, le=2**31 - 1, description="Retries of one send, within message_timeout_ms")] = (
        1000
    )
    max_in_flight: Annotated[
        int, Draw((1, 2, 5)), Field(ge=1, le=1000, description="Unanswered requests a connection")
    ] = 5
    idempotence: Annotated[
        bool,
        Draw((True,)),
        Field(description="Number batches, so that a retry is written once (KIP-98); acks must be all"),
    ] = False
    linger_ms: Annotated[
        float, Draw((0.0, 50.0, 300.0)), Field(ge=0, le=900_000, description="Wait for more records of a batch")
    ] = 5.0
    batch_records: Annotated[int, Draw((1, 3)), Field(ge=1, le=1_000_000, description="Records of a batch at most")] = (
        10_000
    )
    compression: Annotated[
        Codec, Draw(("gzip", "snappy", "lz4", "zstd")), Field(description="How batches are compressed")
    ] = "none"
    commit_interval_s: Annotated[
        float, Draw((0.1, 2.0)), Field(gt=0, le=3600, description="Between two commits of a consumer")
    ] = 0.5
    restart_interval_s: Annotated[float, Field(gt=0, le=3600, description="Between two restarts of a committer")] = 2.0
    reread: Annotated[
        bool, Field(description="At the end, read everything once more; for topics whose log may be truncated")
    ] = False
    final_read_timeout_s: Annotated[float, Field(gt=0, le=3600, description="Deadline for reading to the end")] = 30.0

    @model_validator(mode="after")
    def _idempotence_has_its_terms(self) -> Self:
        terms = {
            "acks must be all": self.acks == "all",
            f"max_in_flight may be {MOST_NUMBERED} at most": self.max_in_flight <= MOST_NUMBERED,
            "retries must be 1 at least": self.retries >= 1,
        }
        broken = [term for term, met in terms.items() if not met]
        if self.idempotence and broken:
            raise ValueError(f"with idempotence {'; '.join(broken)}")
        return self

    def acks_of(self, producer: int) -> Acks:
        """Return the acks level of one producer, counted from 0."""
        levels = self.acks if isinstance(self.acks, list) else [self.acks]
        return levels[producer % len(levels)]


class ProduceConsume:
    """The load of a plain application: sends, polls, commits."""

    name: ClassVar[str] = "produce-consume"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the producers, which are stopped first, and the others, which then read to the end, or back."""
        assert isinstance(parameters, Parameters)
        unsaid = {"records"} if parameters.records is None else set()
        settings = parameters.model_dump(
            mode="json", exclude={"acks", "producers", "consumers", "committers", "listers"} | unsaid
        )
        roles = [
            (
                "producer",
                number + 1,
                {**settings, "acks": ACKS_ALL if (acks := parameters.acks_of(number)) == "all" else acks},
            )
            for number in range(parameters.producers)
        ]
        roles += [("consumer", number, settings) for number in range(1, parameters.consumers + 1)]
        roles += [("lister", number, settings) for number in range(1, parameters.listers + 1)]
        roles += [("committer", number, settings) for number in range(1, parameters.committers + 1)]
        return [
            ClientPlan(
                process=f"{role}-{number}",
                workload=self.name,
                role=role,
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, role, number),
                parameters=of_role,
                stop_order=0 if role == "producer" else 1,
            )
            for role, number, of_role in roles
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
        """Produce, consume or commit until `stop` is set; then flush, or read to the end, or back."""
        if plan.role == "producer":
            from kafka_chaos.workloads.clients.producer import produce

            produce(plan, operations, stop)
        elif plan.role == "lister":
            from kafka_chaos.workloads.clients.lister import list_offsets

            list_offsets(plan, operations, stop)
        elif plan.role == "committer":
            from kafka_chaos.workloads.clients.group_member import commit

            commit(plan, operations, stop)
        else:
            from kafka_chaos.workloads.clients.group_member import consume

            consume(plan, operations, stop)


PLUGIN: type[Workload] = ProduceConsume
