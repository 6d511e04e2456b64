"""Python of a test that needs a process of its own, because a DAG can be imported once only or phases are faked."""

import json
import subprocess
import sys
from typing import Any


def python(code: str, *arguments: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run a snippet in a fresh interpreter with this Airflow, and return what it printed last."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(("RESULT ", "{"))][-1:]
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return result
