"""How does a client of the load reach the cluster? Its servers, its own name, and what their listeners ask for."""

from typing import Any

from harness.contracts.workloads import ClientPlan
from harness.kafka.security.settings import for_librdkafka


def connection(plan: ClientPlan) -> dict[str, Any]:
    """Return the part of librdkafka's configuration that connects; raises ClusterError for settings without use."""
    return {"bootstrap.servers": plan.bootstrap_servers, "client.id": plan.process} | for_librdkafka(plan.client)
