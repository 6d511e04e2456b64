"""What librdkafka is told by all clients that belong to a group."""

from typing import Any

from harness.contracts.workloads import ClientPlan


def group_configuration(plan: ClientPlan) -> dict[str, Any]:
    """Return librdkafka's configuration: a group of its own, offsets are committed by hand, and it retries soon."""
    return {
        "bootstrap.servers": plan.bootstrap_servers,
        "client.id": plan.process,
        "group.id": plan.process,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "socket.timeout.ms": max(1000, plan.parameters["request_timeout_ms"]),
        "retry.backoff.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 1000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.refresh.interval.ms": 2000,
        "coordinator.query.interval.ms": 500,
    }
