"""Small scenarios for schedules."""

from typing import Any

from harness.scenario.model import Scenario


def scenario(*faults: dict[str, Any], **changed: Any) -> Scenario:
    """Return a short scenario of one partition, with a producer and a consumer."""
    load = {"producers": 1, "consumers": 1, "rate_per_s": 10, "final_read_timeout_s": 10, **changed.pop("load", {})}
    return Scenario.model_validate(
        {
            "name": "small",
            "description": "A small schedule.",
            "cluster": {"properties": {"offsets.topic.num.partitions": 1}},
            "topics": [{"name": "orders", "partitions": 1, "config": {"min.insync.replicas": 2}}],
            "workloads": [{"kind": "produce-consume", "parameters": load}],
            "faults": list(faults),
            "duration_s": 9.0,
            **changed,
        }
    )


KILL_LEADER = {"kind": "kill", "at_s": 1.0, "jitter_s": 1.0, "duration_s": 4.0, "target": "leader(orders,0)"}
PAUSE_LEADER = {"kind": "pause", "at_s": 1.0, "jitter_s": 1.0, "duration_s": 6.0, "target": "leader(orders,0)"}
EXPIRE_CONTROLLER = {"kind": "expire-session", "at_s": 1.0, "jitter_s": 1.0, "target": "controller"}
SHUT_DOWN = {"kind": "controlled-shutdown", "at_s": 1.0, "jitter_s": 1.0, "duration_s": 2.0, "target": "controller"}
UNCLEAN = {
    "kind": "unclean-election",
    "at_s": 1.0,
    "jitter_s": 1.0,
    "duration_s": 2.0,
    "target": "leader(orders,0)",
    "parameters": {"lag_records": 5},
}
