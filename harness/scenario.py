"""What a scenario may say: the typed model of a scenario file. Reading YAML into it lives here too.

Unknown keys and wrong types are errors; all errors of a file are reported at once, each with file, line and what is
allowed there.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TopicSpec(Strict):
    """A topic that the run creates before the workload starts."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="Topic name")]
    partitions: Annotated[int, Field(ge=1, le=1000, description="Number of partitions")] = 3
    replication_factor: Annotated[int, Field(ge=1, le=32, description="Replicas a partition")] = 3
    config: Annotated[dict[str, str], Field(description="Kafka topic configuration")] = Field(default_factory=dict)


class ClusterSpec(Strict):
    """The cluster under test."""

    brokers: Annotated[int, Field(ge=1, le=32, description="Number of brokers")] = 3
    properties: Annotated[dict[str, str], Field(description="Kafka broker properties, over the harness's profile")] = (
        Field(default_factory=dict)
    )


class WorkloadSpec(Strict):
    """One kind of client load."""

    kind: Annotated[str, Field(description="Name of a workload plugin")]
    parameters: Annotated[dict[str, Any], Field(description="What that plugin takes")] = Field(default_factory=dict)


class FaultSpec(Strict):
    """One fault of the schedule."""

    kind: Annotated[str, Field(description="Name of a fault plugin")]
    at_s: Annotated[float, Field(ge=0, description="Seconds after the workload is in steady state")]
    jitter_s: Annotated[float, Field(ge=0, description="The seed adds up to this many seconds")] = 0.0
    duration_s: Annotated[float, Field(ge=0, description="Seconds until it is healed")] = 0.0
    target: Annotated[
        str,
        Field(description="leader(topic,partition), followers(topic,partition), controller, one, or broker ids: 1,2"),
    ] = "one"
    parameters: Annotated[dict[str, Any], Field(description="What that plugin takes")] = Field(default_factory=dict)


class Scenario(Strict):
    """One chaos experiment, declared."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    description: str
    driver: Literal["process"] = "process"
    cluster: ClusterSpec = ClusterSpec()
    topics: Annotated[list[TopicSpec], Field(min_length=1)]
    workloads: Annotated[list[WorkloadSpec], Field(min_length=1)]
    faults: list[FaultSpec] = Field(default_factory=list)
    duration_s: Annotated[float, Field(gt=0, le=86_400, description="Seconds of load, faults included")] = 30.0
    recovery_timeout_s: Annotated[
        float, Field(gt=0, description="Deadline for the steady state after the last heal")
    ] = 30.0
    checks: Annotated[list[str], Field(description="Names of checks; empty means all")] = Field(default_factory=list)
    planted_bugs: Annotated[list[str], Field(description="ProtocolRules guards to break")] = Field(default_factory=list)
