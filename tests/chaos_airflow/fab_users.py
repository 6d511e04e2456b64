"""Adds users to the database of an Airflow with FAB, in whose environment this is run.

python -m tests.chaos_airflow.fab_users '{"reader": {"password": "…", "dags": ["chaos_smoke"]}}'

A user with the DAGs `null` is an administrator. All others have a role that reads runs, and these DAGs alone.
"""

import importlib
import json
import sys
from typing import Any


def add_users(security: Any, users: dict[str, dict[str, Any]]) -> None:
    """Add each user with a role."""
    security.sync_roles()
    for name, wanted in users.items():
        role = security.find_role("Admin") if wanted["dags"] is None else reader(security, name, wanted["dags"])
        user = security.add_user(name, name, name, f"{name}@example.org", role, wanted["password"])
        assert user, f"FAB did not add {name}"


def reader(security: Any, name: str, dags: list[str]) -> Any:
    """Add a role that reads the runs of these DAGs."""
    role = security.add_role(name)
    for resource in ("Website", "DAG Runs", *(f"DAG:{dag}" for dag in dags)):
        security.add_permission_to_role(role, security.create_permission("can_read", resource))
    return role


if __name__ == "__main__":
    utils = importlib.import_module("airflow.providers.fab.auth_manager.cli_commands.utils")
    with utils.get_application_builder() as builder:
        add_users(builder.sm, json.loads(sys.argv[1]))
