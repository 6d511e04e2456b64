"""A standalone Spark cluster, started from PySpark's own jars: a sweep, one of whose executors dies, and a run."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from harness.cluster.ports import LOOPBACK, PortReservations
from harness.scenario.file import scenario_yaml
from harness.sweep.jobs import SHARE
from harness.sweep.sweep import schedule_seed
from harness.system.plugins import FOLDERS
from tests.analysis.corruptions import CORRUPTIONS
from tests.analysis.model_run import history
from tests.analysis.run_folders import lines_of, sealed_run
from tests.simulation.scenarios import scenario

pytestmark = pytest.mark.jvm

ROOT = Path(__file__).parents[2]
SHARES = 3
SCHEDULES = SHARES * SHARE
"""For two executors of one core each, one of which dies with the last share."""
END_S = 120
LOSS = "an acknowledged record is in no log and was not read"
SEEDS = range(20)
"""Of generated histories; most have a record that can be lost."""
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

    async def inject(self, context, injection):
        task = TaskContext.get()
        if (task.partitionId(), task.attemptNumber()) == (2, 0):
            Murder.injected += 1
            if Murder.injected > DONE:
                KILL(EXECUTOR, signal.SIGKILL)
        return await super().inject(context, injection)


PLUGIN: type[Fault] = Murder
'''
JUDGE = '''"""Judges the run folder that is named, on the master that is named, and prints what was found."""

import json
import sys
from pathlib import Path

import pyarrow.dataset

from harness.analysis.judge import judge
from harness.analysis.engine.session import spark_session
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder

folder = RunFolder(Path(sys.argv[1]))
settings = Settings(
    acks=frozenset({-1, 0, 1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=True
)
with spark_session(sys.argv[2]):
    judgement = judge(folder, settings)
rows = pyarrow.dataset.dataset(folder.findings, partitioning="hive").to_table().to_pylist()
verdicts = {each.check: (each.verdict.name, each.violations, each.expected, each.notes) for each in judgement.checks}
print(json.dumps({"verdicts": verdicts, "counts": judgement.counts, "findings": sorted(map(json.dumps, rows))}))
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
    """Return a folder of plugins with one fault."""
    (root / "faults").mkdir(parents=True)
    (root / "faults/murder.py").write_text(MURDER)
    return root


def tried(workers: Path) -> Counter[tuple[int, int]]:
    """Return how often each share was tried in which attempt, by the logs of the first application's executors."""
    output = "".join(log.read_text() for log in workers.glob("*/app-*-0000/*/stderr"))
    started = re.findall(r"Running task (\d+)\.(\d+) in stage 0\.", output)
    return Counter((int(share), int(attempt)) for share, attempt in started)


def lossy_run(root: Path) -> Path:
    """Return the folder of a run in which one acknowledged record is gone."""
    evidence = next(each for each in map(history, SEEDS) if CORRUPTIONS[LOSS].plant(each))
    return sealed_run(root, "lossy", lines_of(evidence)).root


def judged_on(master: str, run: Path) -> dict[str, Any]:
    """Return what is found in a run, judged on a master by a process of its own."""
    command = [sys.executable, "-c", JUDGE, str(run), master]
    environment = {**os.environ, **LIGHT_JVMS, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


@pytest.mark.rotating(1, of="long")
def test_a_sweep_survives_the_death_of_an_executor_and_a_run_is_judged_as_on_one_machine(tmp_path: Path) -> None:
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
            env={**os.environ, **LIGHT_JVMS, "PYTHONPATH": str(ROOT), FOLDERS: str(content)},
            capture_output=True,
            text=True,
            check=False,
        )
        run = lossy_run(tmp_path)
        on_a_cluster = judged_on(master, run)
    assert on_a_cluster == judged_on("local[2]", run)
    failed = {name for name, answer in on_a_cluster["verdicts"].items() if answer[0] == "FAIL"}
    assert failed == CORRUPTIONS[LOSS].finders
    assert swept.returncode == 0, swept.stderr
    summary = json.loads(swept.stdout)
    assert (summary["held"], summary["distinct"], summary["errors"]) == (SCHEDULES, SCHEDULES, 0)
    folder = Path(summary["folder"])
    verdicts = (folder / "verdicts.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in verdicts] == [schedule_seed(7, number) for number in range(SCHEDULES)]
    assert tried(tmp_path / "workers") == Counter([*((share, 0) for share in range(SHARES)), (2, 1)])
    assert not list(folder.glob("judged/*/[0-9]*")), "the batch could be judged only by halves"
    assert "is EXITED" in (tmp_path / "master.log").read_text()
