"""How does a container get back what it had before it was limited? Done by the driver, or by a watchdog."""

from harness.cluster import descriptors
from harness.cluster.containers import plans
from harness.cluster.containers.engine import Engine
from harness.cluster.limits import Resource

SERVER = "0"
"""What programs that run beside a server in its container are told instead of its pid."""


def lift(engine: Engine, container: str, resource: Resource, memory_bytes: int) -> None:
    """Let a container have what it had at its start, of memory so much; raises ClusterError."""
    match resource:
        case Resource.CPU:
            engine.limit_cpus(container, plans.LIMITS.cpus)
        case Resource.MEMORY:
            engine.limit_memory(container, memory_bytes)
        case Resource.FILES:
            state = engine.state(container)
            if state is not None and state.runs:  # who is started later has all that it may have
                engine.run_inside(container, in_python(descriptors.__name__, SERVER, "--lift"))


def in_python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module in a container of the broker's image."""
    return ["python3", "-m", module, *arguments]
