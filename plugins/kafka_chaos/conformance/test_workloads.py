"""A workload plans the same clients for the same seed, each under a name of its own."""

import json
import re
from dataclasses import asdict

from harness.contracts import registry
from harness.contracts.workloads import ClientPlan

PROCESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


TOPICS = {"orders": 3, "payments": 3}


def planned(name: str, seed: int) -> list[ClientPlan]:
    """Return the clients of the default parameters; a required one has the first of its examples."""
    workload = registry.workload(name)
    fields = workload.Parameters.model_fields.items()
    required = {key: (field.examples or [None])[0] for key, field in fields if field.is_required()}
    without = [key for key, example in required.items() if example is None]
    assert not without, f"a required parameter states examples, with the topics {', '.join(TOPICS)}: {without}"
    parameters = workload.Parameters.model_validate(required)
    return workload.clients(parameters, bootstrap_servers="127.0.0.1:9092", topics=TOPICS, seed=seed)


def test_it_plans_clients_from_its_defaults_and_the_seed_alone(workload_name: str) -> None:
    clients = planned(workload_name, 1)
    assert clients, "a workload without a client writes and reads nothing"
    assert clients == planned(workload_name, 1)
    names = [client.process for client in clients]
    assert len(set(names)) == len(names)
    assert all(PROCESS.fullmatch(name) for name in names)
    assert {client.workload for client in clients} == {workload_name}


def test_a_client_is_plain_data_for_another_process(workload_name: str) -> None:
    for client in planned(workload_name, 1):
        assert ClientPlan(**json.loads(json.dumps(asdict(client)))) == client


def test_every_parameter_is_described(workload_name: str) -> None:
    fields = registry.workload(workload_name).Parameters.model_fields
    undescribed = [name for name, field in fields.items() if not field.description]
    assert not undescribed, f"forms and pages show a sentence for each parameter: {undescribed}"
