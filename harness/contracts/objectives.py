"""What may a scenario demand of the service, beyond Kafka's promises? Limits on time, latency, lag and availability."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from harness.contracts.parameters import Strict

SHORTEST_GAP_S = 0.25
"""Shorter times without an acknowledged write are not recorded as facts."""
UNITS = {"s": "s", "ms": "ms", "records": "records", "percent": "%"}
"""By the last part of a name."""

Milliseconds = Annotated[float, Field(gt=0, le=86_400_000)]
Records = Annotated[int, Field(ge=0)]


class Objectives(Strict):
    """Limits that a run must keep; one that is left out is not judged."""

    no_write_s: Annotated[
        float | None,
        Field(
            ge=SHORTEST_GAP_S,
            le=86_400,
            description="Seconds, at most, that a partition is without an acknowledged write although some are tried",
        ),
    ] = None
    available_percent: Annotated[
        float | None,
        Field(gt=0, le=100, description="Percent, at least, of the load's time outside such gaps, over all partitions"),
    ] = None
    p99_outside_ms: Annotated[
        Milliseconds | None,
        Field(description="Milliseconds, at most, that 99 % of acknowledged sends outside of fault windows take"),
    ] = None
    p99_inside_ms: Annotated[
        Milliseconds | None,
        Field(description="Milliseconds, at most, that 99 % of acknowledged sends in fault windows take"),
    ] = None
    recovery_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=86_400,
            description="Seconds, at most, from a heal until each partition under load has all replicas in its ISR and"
            " acknowledged writes",
        ),
    ] = None
    lag_records: Annotated[
        Records | None,
        Field(description="Acknowledged records of a partition, at most, that a consumer or group has yet to read"),
    ] = None
    end_lag_records: Annotated[
        Records | None, Field(description="The same when the load has ended and consumers have read what they could")
    ] = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.stated:
            raise ValueError(f"no objective is stated; allowed: {', '.join(type(self).model_fields)}")
        return self

    @property
    def stated(self) -> dict[str, float]:
        """The limits by name."""
        return {name: limit for name, limit in self if limit is not None}


def at_least(name: str) -> bool:
    """Return whether the limit of an objective is a least value; all others are largest values."""
    return name == "available_percent"


def unit_of(name: str) -> str:
    """Return the unit of an objective."""
    return UNITS[name.rsplit("_", 1)[1]]
