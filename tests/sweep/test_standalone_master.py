"""A sweep on a standalone Spark cluster, started from PySpark's own jars, one of whose executors dies in the middle."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark
import pytest

from harness.cluster.ports import LOOPBACK, PortReservations
from harness.contracts import registry
from harness.scenario.file import scenario_yaml
from harness.sweep.jobs import SHARE
from harness.sweep.sweep import schedule_seed
from tests.simulation.scenarios import scenario

pytestmark = pytest.mark.jvm

ROOT = Path(registry.__file__).parents[2]
SHARES = 3
SCHEDULES = SHARES * SHARE
"""For two executors of one core each, one of which dies with the last share."""
END_S = 30
LIGHT_JVMS = {"JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
MURDER = '''"""Kills the executor that it is simulated on, in the middle of the third share, at its first try.

By C's own `kill`: Python's is refused in a simulated run.
"""

import ctypes
import os
import signal

import psutil
from pyspark import TaskContext

from harness.contracts.faults import Fault
from kafka_chaos.faults.pause import Pause

EXECUTOR = psutil.Process(os.getppid()).ppid()
KILL = ctypes.CDLL(None).kill
DONE = 3


class Murder(Pause):
    name = "murder"
    injected = 0

    async def inject(self, arena, injection):
        task = TaskContext.get()
        if (task.partitionId(), task.attemptNumber()) == (2, 0):
            Murder.injected += 1
            if Murder.injected > DONE:
                KILL(EXECUTOR, signal.SIGKILL)
        return await super().inject(arena, injection)


PLUGIN: type[Fault] = Murder
'''


@contextmanager
def daemon(name: str, log: Path, *arguments: str) -> Iterator[psutil.Process]:
    """One of Spark's daemons; afterwards neither it nor anything that it started is left."""
    spark = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        **LIGHT_JVMS,
    }
    command = [str(spark / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", LOOPBACK, *arguments]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environment) as started:
        process = psutil.Process(started.pid)
        try:
            yield process
        finally:
            below = process.children(recursive=True)
            process.terminate()
            started.wait(END_S)
            _, left = psutil.wait_procs(below, timeout=END_S)
            for each in left:
                each.kill()
            assert psutil.wait_procs(left, timeout=END_S)[1] == []


def with_murder(root: Path) -> Path:
    """Return a folder with the project's content and one fault more."""
    shutil.copytree(registry.content_root(), root / "kafka_chaos", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "kafka_chaos/faults/murder.py").write_text(MURDER)
    return root


def tried(workers: Path) -> Counter[tuple[int, int]]:
    """Return how often each share was tried in which attempt, by the executors' own logs."""
    output = "".join(log.read_text() for log in workers.glob("*/app-*/*/stderr"))
    started = re.findall(r"Running task (\d+)\.(\d+) in stage 0\.", output)
    return Counter((int(share), int(attempt)) for share, attempt in started)


@pytest.mark.by_turns(1, of="long")
def test_a_sweep_survives_the_death_of_an_executor(tmp_path: Path) -> None:
    content = with_murder(tmp_path / "content")
    murder = {"kind": "murder", "at_s": 1.0, "duration_s": 1.0, "target": "one"}
    (tmp_path / "small.yaml").write_text(scenario_yaml(scenario(murder)))
    with PortReservations() as ports, ExitStack() as daemons:
        port, page = ports.reserve(2)
        master = f"spark://{LOOPBACK}:{port}"
        at = ["--port", str(port), "--webui-port", str(page)]
        daemons.enter_context(daemon("master.Master", tmp_path / "master.log", *at))
        for name in ("one", "two"):
            of = ["--webui-port", "0", "--cores", "1", "--memory", "1g", "-d", str(tmp_path / "workers" / name), master]
            daemons.enter_context(daemon("worker.Worker", tmp_path / f"{name}.log", *of))
        swept = subprocess.run(
            [
                *[sys.executable, "-m", "harness", "simulate", str(tmp_path / "small.yaml"), "--master", master],
                *["--schedules", str(SCHEDULES), "--seed", "7", "--set", "checks=[lost-write]"],
                *["--out", str(tmp_path / "sweeps"), "--json"],
            ],
            env={**os.environ, **LIGHT_JVMS, "PYTHONPATH": os.pathsep.join([str(content), str(ROOT)])},
            capture_output=True,
            text=True,
            check=False,
        )
    assert swept.returncode == 0, swept.stderr
    summary = json.loads(swept.stdout)
    assert (summary["held"], summary["distinct"], summary["errors"]) == (SCHEDULES, SCHEDULES, 0)
    folder = Path(summary["folder"])
    verdicts = (folder / "verdicts.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in verdicts] == [schedule_seed(7, number) for number in range(SCHEDULES)]
    assert tried(tmp_path / "workers") == Counter([*((share, 0) for share in range(SHARES)), (2, 1)])
    assert not list(folder.glob("judged/*/[0-9]*")), "the batch could be judged only by halves"
    assert "is EXITED" in (tmp_path / "master.log").read_text()
