"""A schedule that ends the worker it is simulated in costs itself, not its share and not the sweep."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.contracts import registry
from harness.scenario.file import scenario_yaml
from tests.simulation.scenarios import scenario

pytestmark = [pytest.mark.jvm, pytest.mark.rotating(2, of="sessions")]

ROOT = Path(registry.__file__).parents[2]

RUIN = '''"""Ends the process that simulates, when it hits broker 0."""

import os

from harness.contracts.faults import Fault
from kafka_chaos.faults.pause import Pause


class Ruin(Pause):
    name = "ruin"

    async def inject(self, context, injection):
        if 0 in injection.targets:
            os._exit(1)
        return await super().inject(context, injection)


PLUGIN: type[Fault] = Ruin
'''
SWEEP = """
import sys
from pathlib import Path

from harness.analysis.engine.session import spark_session
from harness.sweep.jobs import patient, simulate
from harness.scenario.plan import make_plan
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.sweep.sweep import Sweep, schedule_seed


class Deaf:
    def done(self, what, schedules, of):
        pass


root = Path(sys.argv[1])
made = load_scenario(str(root / "ruin.yaml"), options("simulated", [], []))
with spark_session(patient("local[2]")) as spark:
    simulate(spark, Sweep(scenario=made, seed=7, schedules=20, root=root), Deaf())
    for row in spark.read.parquet(str(root / "schedules.parquet")).select("number", "digest", "error").collect():
        (fault,) = make_plan(made, schedule_seed(7, row.number)).faults
        print("schedule", row.number, fault.brokers, "simulated" if row.digest else row.error, sep=":")
"""


def test_a_sweep_goes_on_past_schedules_that_end_their_worker(tmp_path: Path) -> None:
    (tmp_path / "plugins/faults").mkdir(parents=True)
    (tmp_path / "plugins/faults/ruin.py").write_text(RUIN)
    ruin = {"kind": "ruin", "at_s": 1.0, "duration_s": 1.0, "target": "one"}
    text = scenario_yaml(scenario({**ruin, "kind": "kill"})).replace("kind: kill", "kind: ruin")
    (tmp_path / "ruin.yaml").write_text(text)
    swept = subprocess.run(
        [sys.executable, "-c", SWEEP, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert swept.returncode == 0, swept.stderr
    schedules = [line.split(":")[1:] for line in swept.stdout.splitlines() if line.startswith("schedule:")]
    assert sorted(int(number) for number, _, _ in schedules) == list(range(20))
    assert {(target == "[0]", came_to) for _, target, came_to in schedules} == {
        (True, "its process ended by itself, with exit code 1"),
        (False, "simulated"),
    }
