"""Restores a limit of a container; used by the driver and by a watchdog."""

from pathlib import Path

from harness.cluster.containers.engine import Engine
from harness.cluster.limits import descriptors, pressure
from harness.cluster.limits.resources import Resource

INSIDE = "/opt/kafka-chaos"
"""Where a container has modules of the harness; the image of our broker brings them."""
SERVER = "0"
"""What programs that run beside a server in its container are told instead of its pid."""
"""Stands for the server's pid in programs that run beside it in its container."""

ALL_FILES = 0
"""Limit of open files before the fault, if unknown: the most that the kernel allows."""


def lift(engine: Engine, container: str, resource: Resource, before: float) -> None:
    """Restore a container's earlier limit; raises ClusterError."""
    match resource:
        case Resource.CPU:
            engine.limit_cpus(container, before)
        case Resource.MEMORY:
            engine.limit_memory(container, round(before))
        case Resource.FILES:
            state = engine.state(container)
            if state is not None and state.runs:  # a process started later has the original limits
                argv = in_python(descriptors.__name__, SERVER, "--limit", str(round(before)))
                engine.run_inside(container, argv)


def in_python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module in a broker's container."""
    return ["env", f"PYTHONPATH={INSIDE}", "python3", "-m", module, *arguments]


def programs() -> dict[Path, str]:
    """Return path in the container by path here, of programs that run beside a server of Apache Kafka."""
    modules = (descriptors, pressure)
    return {Path(str(each.__file__)): f"{INSIDE}/{each.__name__.replace('.', '/')}.py" for each in modules}
