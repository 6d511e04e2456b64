"""`--driver simulated`: the phases of any run, of which only the drive phase has something to do."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import phases
from harness.cluster.driver import CAPABILITIES, ClusterDriver, RunExecutor
from harness.contracts import registry
from harness.errors import ClusterError, EvidenceError, PluginError, ScenarioError
from harness.progress import Silent
from harness.reaper.abandoned_runs import State, status_of, supervised
from harness.reaper.reap import reap
from harness.run.holes import missing_evidence
from harness.run.run import Run
from harness.scenario.file import load_scenario, scenario_of
from harness.scenario.model import Scenario
from harness.scenario.plan import load_plan
from harness.scenario.source import options
from harness.simulation.driver import SimulationDriver
from harness.simulation.load import CLIENTS
from harness.simulation.runs import ROLES, SIMULATED, SimulatedRuns
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, ends
from harness.store.result import RunResult, forbidding
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.verdicts import CONFIRMED, INCONCLUSIVE, UNKNOWN

pytestmark = pytest.mark.real_time("real phases, processes and signals around the simulation")

EVIDENCE = ("brokers", "cluster", "journal.jsonl", "operations", "plan.json", "replicas", "scenario.yaml")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([".", "plugins"])}
SILENT = Silent()


class Heard(Silent):
    """Keeps every message."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)


NOTHING_TO_COLLECT = "there is no cluster to collect evidence from"


def small(**changed: object) -> Scenario:
    return scenario(KILL_LEADER, driver="simulated", **changed)


def gathered(declaration: Scenario, seed: int, runs: Path, progress: Silent = SILENT) -> RunFolder:
    """Return the folder of a run that was carried out and not judged."""
    folder = phases.create_from(declaration, seed, runs)
    for phase in (phases.start, phases.drive, phases.collect, phases.stop):
        phase(folder, progress=progress)
    return folder


REFUSED = {
    "kafka-10614": "slow-sync needs slow-syncs, which the driver simulated does not have",
    "kafka-14704": "slow-sync needs slow-syncs, which the driver simulated does not have",
    "kafka-15489": "the driver simulated does not start kafka:3.6.2",
    "hostile-clients": "hostile-client needs bytes, which the driver simulated does not have",
    "pull-23542": "the driver simulated does not start kafka:4.4.0",
    "quorum-links": "the driver simulated does not start kafka:4.4.0",
    "slow-sync": "slow-sync needs slow-syncs, which the driver simulated does not have",
    "dropped-packets": "drop-packets needs packets, which the driver simulated does not have",
    "resources": "cpu-limit needs cpu-limit, which the driver simulated does not have",
    "rolling-upgrade": "upgrade needs upgrade, which the driver simulated does not have",
    "storm": "cpu-limit needs cpu-limit, which the driver simulated does not have",
}
"""What virtual time lacks: connections carry messages, disks have no calls, machines no limits, brokers no other
release, and none runs Kafka."""
INTACT = ["planted_bugs=[]"]
"""Set for every built-in scenario: some leave a broker behind for good."""


@pytest.mark.parametrize("name", [listed.name for listed in registry.plugins(registry.Kind.SCENARIO)])
def test_virtual_time_accepts_a_built_in_scenario_or_says_what_it_lacks(name: str) -> None:
    if why := REFUSED.get(name):
        with pytest.raises(ScenarioError, match=why):
            load_scenario(name, options("simulated", [], INTACT))
    else:
        load_scenario(name, options("simulated", [], INTACT))


def contents(folder: RunFolder) -> dict[str, bytes]:
    """Return every file of evidence by its place in the run folder."""
    files = [path for name in EVIDENCE for path in [folder.root / name, *(folder.root / name).rglob("*")]]
    return {str(path.relative_to(folder.root)): path.read_bytes() for path in files if path.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(listed.name, marks=() if listed.name == "smoke" else (pytest.mark.whole, pytest.mark.rotating(6)))
        for listed in registry.plugins(registry.Kind.SCENARIO)
        if listed.name not in REFUSED
    ],
)
def test_every_built_in_scenario_runs(name: str, tmp_path: Path) -> None:
    declaration = load_scenario(name, options("simulated", [], INTACT))
    folder = gathered(declaration, 7, tmp_path)
    assert missing_evidence(folder, declaration, load_plan(folder.plan)) == []
    result = RunResult.load(folder.verdict)
    stated = [fault for fault in load_plan(folder.plan).faults if not fault.spare]
    verdicts = [fault.verdict for fault in result.faults]
    if name == "messages":  # some catch nothing, or nothing whose effect is seen
        assert CONFIRMED in verdicts
        assert {*verdicts} <= {CONFIRMED, INCONCLUSIVE}
    else:
        assert verdicts == [CONFIRMED] * len(stated), "and no spare was needed"
    assert (result.remarks, result.residue) == ([], [])
    assert {phase: end.error for phase, end in ends(folder).items()} == dict.fromkeys(
        [Phase.START, Phase.DRIVE, Phase.COLLECT, Phase.STOP], ""
    )


def test_the_same_seed_gives_the_same_evidence_whatever_the_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.simulation.test_runs import gathered, small;"
        " print(gathered(small(), 5, Path(sys.argv[1])).root)"
    )
    evidence = []
    for hash_seed in ("1", "2"):
        ended = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**ENVIRONMENT, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        evidence.append(contents(RunFolder(Path(ended.stdout.strip()))))
    assert evidence[0] == evidence[1]
    assert {path.partition("/")[0] for path in evidence[0]} == set(EVIDENCE)
    assert contents(gathered(small(), 6, tmp_path)) != evidence[0]


def test_a_replay_leaves_the_same_evidence(tmp_path: Path) -> None:
    old = gathered(small(), 5, tmp_path)
    again = phases.create(scenario_of(old), load_plan(old.plan), tmp_path)
    for phase in (phases.start, phases.drive, phases.collect, phases.stop):
        phase(again, progress=SILENT)
    assert contents(again) == contents(old)


def test_whoever_is_told_hears_of_every_step_with_its_virtual_instant(tmp_path: Path) -> None:
    heard = Heard()
    folder = gathered(small(), 5, tmp_path, heard)
    assert heard.messages[0] == "nothing to start: the cluster exists only under load"
    steps_heard = [
        text.partition(" s of virtual time: ")[::2] for text in heard.messages if " s of virtual time: " in text
    ]
    assert [float(instant) for instant, _ in steps_heard] == sorted(float(instant) for instant, _ in steps_heard)
    steps = " | ".join(text for _, text in steps_heard)
    for expected in ("2 clients write to", "steady state:", "): confirmed", ": healed", "again", "the load has ended"):
        assert expected in steps
    assert contents(folder) == contents(gathered(small(), 5, tmp_path)), "being told changes nothing"


def test_the_powers_are_those_of_the_driver_within_and_clients() -> None:
    within = {name for name, protocol in CAPABILITIES.items() if issubclass(SimulationDriver, protocol)}
    assert within | {"clients"} == SIMULATED == registry.capabilities("simulated")


def test_the_roles_are_those_that_there_is_a_client_for() -> None:
    assert SimulatedRuns.roles() == ROLES == set(CLIENTS)


def test_around_the_load_it_is_a_driver_like_any_other(tmp_path: Path) -> None:
    driver = SimulatedRuns(tmp_path, "small")
    as_driver: ClusterDriver = driver
    as_carrier: RunExecutor[Run] = driver
    assert isinstance(as_driver, ClusterDriver)
    assert isinstance(as_carrier, RunExecutor)
    for call in (driver.start_broker(0), driver.stop_broker(0, timeout_s=1)):
        with pytest.raises(ClusterError, match="existed only under its load"):
            asyncio.run(call)


def test_a_run_that_waits_for_its_load_holds_nobody_up_and_is_not_reaped(tmp_path: Path) -> None:
    folder = phases.create_from(small(), 1, tmp_path)
    phases.start(folder, progress=SILENT)
    assert not supervised(folder)
    assert status_of(folder, remember=False).state is State.ACTIVE
    reap([tmp_path], progress=SILENT)
    assert set(ends(folder)) == {Phase.START}
    phases.drive(folder, progress=SILENT)
    phases.collect(folder, progress=SILENT)
    result = phases.stop(folder, progress=SILENT)
    assert not forbidding(result.remarks)


def test_what_cannot_be_simulated_is_an_error_of_the_phase_and_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.simulation.load.CLIENTS", {})
    folder = phases.create_from(small(), 1, tmp_path)
    phases.start(folder, progress=SILENT)
    with pytest.raises(PluginError, match="no simulated producer"):
        phases.drive(folder, progress=SILENT)
    with pytest.raises(EvidenceError, match=NOTHING_TO_COLLECT):
        phases.collect(folder, progress=SILENT)
    result = phases.stop(folder, progress=SILENT)
    assert "did not" in " ".join(map(str, forbidding(result.remarks)))


@contextmanager
def driving(folder: RunFolder) -> Iterator["subprocess.Popen[str]"]:
    """Drive a run in a process of its own; yields when its load is on."""
    code = (
        "import sys; from pathlib import Path\n"
        "from harness import phases; from harness.progress import Silent; from harness.store.folder import RunFolder\n"
        "class Told(Silent):\n"
        "    def message(self, text): print(text, flush=True)\n"
        "folder = RunFolder(Path(sys.argv[1]))\n"
        "phases.start(folder, progress=Told())\n"
        "phases.drive(folder, progress=Told())\n"
    )
    arguments = [sys.executable, "-c", code, str(folder.root)]
    with subprocess.Popen(
        arguments, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "steady state:" in line:
                    break
            yield process
        finally:
            process.kill()


def endless(tmp_path: Path) -> RunFolder:
    return phases.create_from(small(duration_s=3000.0), 1, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_signal_ends_a_simulation_at_once(number: signal.Signals, tmp_path: Path) -> None:
    folder = endless(tmp_path)
    with driving(folder) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert "Interrupted: the phase drive was interrupted" in errors
    assert ends(folder)[Phase.DRIVE].error == "interrupted"
    with pytest.raises(EvidenceError, match=NOTHING_TO_COLLECT):
        phases.collect(folder, progress=SILENT)
    result = phases.stop(folder, progress=SILENT)
    assert result.verdicts.system is UNKNOWN
    assert any("leaves its evidence when it ends" in remark.text for remark in result.remarks)


def test_a_run_whose_simulation_was_killed_is_closed_as_unknown(tmp_path: Path) -> None:
    folder = endless(tmp_path)
    with driving(folder) as process:
        assert status_of(folder).state is State.ACTIVE
        process.kill()
        process.wait()
        reap([tmp_path], progress=SILENT)
    result = RunResult.load(folder.verdict)
    assert (result.verdicts.system.name, result.verdicts.environment.name) == ("UNKNOWN", "CLEAN")
    assert "the phase drive was cut off" in map(str, result.remarks)
    assert [fault.verdict for fault in result.faults] == [INCONCLUSIVE]


def test_collecting_ends_a_simulation_that_another_process_still_carries_out(tmp_path: Path) -> None:
    folder = endless(tmp_path)
    with driving(folder) as process:
        with pytest.raises(EvidenceError, match=NOTHING_TO_COLLECT):
            phases.collect(folder, progress=SILENT)
        assert process.poll() is not None or process.wait(timeout=120)
    assert ends(folder)[Phase.DRIVE].error == "interrupted"


def test_an_endless_simulation_keeps_its_evidence_and_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.simulation.schedule.MARGIN_S", -60.0)
    folder = phases.create_from(small(), 1, tmp_path)
    phases.start(folder, progress=SILENT)
    phases.drive(folder, progress=SILENT)
    assert "of virtual time" in " ".join(map(str, forbidding(ends(folder)[Phase.DRIVE].remarks)))
