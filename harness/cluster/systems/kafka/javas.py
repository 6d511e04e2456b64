"""With which Java is a release started?

With that of ZooKeeper; one that takes none as new as that, with another, whose home a variable names: `CHAOS_JAVA_11`.
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from harness.cluster import embedded_zookeeper
from harness.cluster.systems.kafka.releases import Release
from harness.errors import ClusterError

VERSION_TIMEOUT_S = 120.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
"""As in 1.8.0_392, 11.0.2 and 17."""


def launcher(release: Release) -> str:
    """Return the path of the Java launcher that starts a release.

    Raises:
        ClusterError: there is none, or none that is old enough.
    """
    if release.last_java is None:
        return embedded_zookeeper.java()
    needs = f"Apache Kafka {release.version} needs Java {release.last_java} or less"
    variable = f"CHAOS_JAVA_{release.last_java}"
    home = os.environ.get(variable)
    if not home:
        raise ClusterError(f"{needs}: set {variable} to the home of one")
    program = Path(home, "bin", "java")
    if not os.access(program, os.X_OK):
        raise ClusterError(f"{needs}: {variable} is {home}, but {program} is not a program")
    version = _version(program)
    if version is None or version > release.last_java:
        seen = "prints no version" if version is None else f"is Java {version}"
        raise ClusterError(f"{needs}: {variable} is {home}, but {program} {seen}")
    return str(program)


@cache
def _version(program: Path) -> int | None:
    """Return the version that a launcher prints of itself; None if it prints none."""
    try:
        printed = subprocess.run(  # noqa: S603  a program that the user names
            [program, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(printed.stderr + printed.stdout)
    return int(match[1]) if match else None
