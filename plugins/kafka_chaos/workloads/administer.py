"""Administrators create, extend, configure and delete topics of their own, and query leaders, groups and more.

Offsets of groups of their own expire or are deleted. A scenario names `produce-consume` beside it for records. On a
real cluster librdkafka 2.16 may crash (a failed assertion) when the broker that it asks dies; the run is inconclusive
then. Administrators in virtual time do not use it.
"""

import threading
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.parameters import Draw, Size, Strict
from harness.contracts.workloads import ClientPlan, Workload
from harness.scenario.seeds import derived_seed
from harness.store.history import JsonlWriter


class Parameters(Strict):
    """What the scenario may say about administrators."""

    administrators: Annotated[int, Size(), Draw((2,)), Field(ge=1, le=32, description="Administrator processes")] = 1
    interval_s: Annotated[
        float, Draw((0.05, 0.1, 0.2)), Field(gt=0, le=3600, description="Between two requests of an administrator")
    ] = 0.2
    configures: Annotated[
        list[str],
        Field(description="Topics of the load whose properties change, if that loses no records, e.g. flush.messages"),
    ] = []
    transacts: Annotated[
        bool, Field(description="Write to topics of their own, and commit offsets, in transactions; in virtual time")
    ] = False
    request_timeout_ms: Annotated[
        int, Draw((300, 1000, 3000)), Field(ge=10, le=300_000, description="Of one request")
    ] = 2000


class Administer:
    """The load of tools and operators."""

    name: ClassVar[str] = "administer"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the administrators, which are stopped first."""
        assert isinstance(parameters, Parameters)
        return [
            ClientPlan(
                process=f"administrator-{number}",
                workload=self.name,
                role="administrator",
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, "administrator", number),
                parameters=parameters.model_dump(mode="json", exclude={"administrators"}),
            )
            for number in range(1, parameters.administrators + 1)
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
        """Make one request after the other until `stop` is set."""
        from kafka_chaos.workloads.clients.administrator import administer

        administer(plan, operations, stop)


PLUGIN: type[Workload] = Administer
