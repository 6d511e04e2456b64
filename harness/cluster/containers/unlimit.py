"""How does a container get back what it had before it was limited? Done by the driver, or by a watchdog."""

from pathlib import Path

from harness.cluster.containers.engine import Engine
from harness.cluster.limits import descriptors, pressure
from harness.cluster.limits.resources import Resource

INSIDE = "/opt/kafka-chaos"
"""Where a container has modules of the harness; the image of our broker brings them."""
SERVER = "0"
"""What programs that run beside a server in its container are told instead of its pid."""


ALL_FILES = 0
"""What a process had before it was limited, if nobody knows: it may have as many as the kernel lets it."""


def lift(engine: Engine, container: str, resource: Resource, before: float) -> None:
    """Let a container have what it had before; raises ClusterError."""
    match resource:
        case Resource.CPU:
            engine.limit_cpus(container, before)
        case Resource.MEMORY:
            engine.limit_memory(container, round(before))
        case Resource.FILES:
            state = engine.state(container)
            if state is not None and state.runs:  # who is started later has what it had at first
                argv = in_python(descriptors.__name__, SERVER, "--limit", str(round(before)))
                engine.run_inside(container, argv)


def in_python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module in a broker's container."""
    return ["env", f"PYTHONPATH={INSIDE}", "python3", "-m", module, *arguments]


def programs() -> dict[Path, str]:
    """Return path in the container by path here, of what runs beside a server that is not ours."""
    modules = (descriptors, pressure)
    return {Path(str(each.__file__)): f"{INSIDE}/{each.__name__.replace('.', '/')}.py" for each in modules}
