"""Removes what dead runs left behind, and nothing else; `reap` says when a run counts as dead and why that is safe."""

PATIENCE_S = 900.0
"""How long a run may be without a worker before it counts as abandoned. A scheduler notices a killed worker within five
minutes (Airflow's `task_instance_heartbeat_timeout`) and then runs the teardown."""
