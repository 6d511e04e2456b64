"""The only orchestration: the phases of a run, each usable alone with only the run folder, and all in sequence.

    start → drive → collect → stop → judge → expectations → report

The cluster is stopped before anything is judged. Whatever fails in a phase, the later ones still do what they can:
faults are healed, everything is stopped, and the history is judged as far as it goes.
"""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from harness.cluster.driver import ClusterDriver, ClusterRequest, RunExecutor
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.errors import ClusterError, HarnessError, Interrupted
from harness.experiment.collect import collect as collect_from
from harness.experiment.drive import drive_cluster
from harness.experiment.stop_previous import end_in_other_process
from harness.judging.assessment import assemble
from harness.judging.judge import Judging, run_checks, run_suites
from harness.judging.needs import require_evidence
from harness.progress import Logged, Progress, number_of
from harness.run.emits import logged_by
from harness.run.run import Run
from harness.scenario.capabilities import (
    needed_by,
    require_capabilities,
    required_capabilities,
    slows_zookeeper,
    traces_syncs,
)
from harness.scenario.draws import with_drawn
from harness.scenario.external import claimed, place_of, require_owned
from harness.scenario.file import scenario_of, scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, load_plan, make_plan
from harness.scenario.used_plugins import write_plugins
from harness.store.folder import RunFolder
from harness.store.phase_log import GATHERING, Phase, record_phase
from harness.store.reserve import give_back, keep_room
from harness.store.result import Remark, RunResult
from harness.store.seal import seal
from harness.store.version import require_version, write_version
from harness.system.extras import require
from harness.system.interruption import ALL_SIGNALS, Background, Interrupts
from harness.system.writable import describe_error
from harness.verdict import ExitCode

SEED_BITS = 32
FORGOTTEN_AFTER_S = 900.0
"""Beyond load and recovery: for pauses between phases, when a scheduler calls them one by one."""


def new_seed() -> int:
    """Return a random seed."""
    return secrets.randbits(SEED_BITS)


def create(scenario: Scenario, plan: Plan, runs: Path, *, owned: bool = False) -> RunFolder:
    """Make the folder of a new run, with the scenario and its plan; nothing is started.

    `owned`: the caller owns the existing cluster that the scenario disturbs.

    Raises:
        Refused: ownership is not confirmed, or this machine cannot do what the scenario needs of its driver.
        NotInstalled: its suites could not be run at the end.
        ClusterError: the folder cannot be written.
    """
    scenario = with_drawn(scenario, plan.drawn)
    require_owned(scenario, owned=owned)
    require_capabilities(scenario)
    require_evidence(scenario)
    require("great_expectations")
    instant = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    base = f"{scenario.name}-{instant}-{plan.seed:08x}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        folder = RunFolder(_new_folder(runs.resolve(), base))
        if scenario.cluster.external is not None:  # commands may hold secrets
            folder.scenario.touch(mode=0o600)
        folder.scenario.write_text(scenario_yaml(scenario), encoding="utf-8")
        folder.plan.write_text(plan.to_json(), encoding="utf-8")
        write_plugins(folder, scenario, plan)
        write_version(folder, logged_by(system_named(scenario.logging_system)))
        keep_room(folder)
    except OSError as error:
        raise ClusterError(f"no run folder can be made in {runs}: {error}") from error
    return folder


def _new_folder(parent: Path, base: str) -> Path:
    for number in count(1):
        path = parent / (base if number == 1 else f"{base}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        break
    return path


def create_from(scenario: Scenario, seed: int | None, runs: Path, *, owned: bool = False) -> RunFolder:
    """Make the folder of a new run under a seed; None draws one."""
    scenario = claimed(scenario)
    return create(scenario, make_plan(scenario, new_seed() if seed is None else seed), runs, owned=owned)


def start(
    folder: RunFolder,
    *,
    owner_pid: int | None = None,
    progress: Progress | None = None,
    interrupts: Interrupts | None = None,
) -> None:
    """Start the cluster; it ends by itself when the process `owner_pid` is gone, or stays until `stop`.

    Raises:
        ClusterError: it did not come up, and nothing of it is left.
    """
    scenario = scenario_of(folder)
    request = ClusterRequest(
        brokers=scenario.cluster.brokers,
        properties=scenario.cluster.properties,
        system=scenario.system,
        planted_bugs=tuple(scenario.planted_bugs),
        zookeeper_servers=scenario.cluster.zookeeper_servers,
        controllers=scenario.cluster.controllers,
        separate_controllers=scenario.cluster.separate_controllers,
        needs=required_capabilities(scenario) | needed_by(scenario, load_plan(folder.plan)),
        zookeeper_syncs=slows_zookeeper(scenario),
        sync_traces=traces_syncs(scenario),
        external=place_of(scenario),
        owner_pid=owner_pid,
        expires_after_s=None if owner_pid is not None else longest_life_s(scenario),
    )
    progress = progress or Logged()
    with _interrupts_of(interrupts) as signals, record_phase(folder, Phase.START, progress):
        status = signals.run(driver_of(folder, scenario).start(request))
        keepers = number_of(len(status.controllers), "controller") if status.controllers else "ZooKeeper"
        up = f"{number_of(len(status.brokers), 'broker')} and {keepers} are up: {status.bootstrap_servers}"
        progress.message(up if status.has_metadata else "nothing to start: the cluster exists only under load")


def longest_life_s(scenario: Scenario) -> float:
    """Return after how many seconds the cluster of an abandoned run ends itself, whatever else happened."""
    return scenario.longest_drive_s + scenario.recovery_timeout_s + FORGOTTEN_AFTER_S


def drive(folder: RunFolder, *, progress: Progress | None = None, interrupts: Interrupts | None = None) -> None:
    """Run load and faults against the cluster; when it returns or raises, faults are healed and the load has ended."""
    run = Run.load(folder)
    progress = progress or Logged()
    with _interrupts_of(interrupts) as signals, record_phase(folder, Phase.DRIVE, progress) as notes:
        driver = driver_of(folder, run.scenario)
        if isinstance(driver, RunExecutor):
            driver.carry_out(run, progress, notes)
        else:
            signals.run(drive_cluster(run, driver, progress, notes))


def collect(folder: RunFolder, *, progress: Progress | None = None, interrupts: Interrupts | None = None) -> None:
    """Heal what is left, and copy all evidence into the run folder; an interruption before it does not cut it short.

    A process that still drives the cluster, or collects, is ended first: a scheduler may have given it up without its
    knowledge. Sealed evidence is not touched: a scheduler may retry a phase that was killed after the seal.
    """
    progress = progress or Logged()
    if folder.seal.exists():
        progress.message("the evidence was collected and sealed before")
        return
    with _interrupts_of(interrupts) as signals:
        signals.run(end_in_other_process(folder, GATHERING, progress), tolerated=1)
        with record_phase(folder, Phase.COLLECT, progress) as notes:
            run = Run.load(folder)
            driver = driver_of(folder, run.scenario)
            signals.run(collect_from(run, driver, progress, notes), tolerated=1)


def stop(folder: RunFolder, *, progress: Progress | None = None, interrupts: Interrupts | None = None) -> RunResult:
    """Stop everything in any state, look for leftovers, seal the evidence; no signal cuts this short.

    Returns and saves the result so far, including leftovers.
    """
    from harness.analysis.sources.sealing.sealed import sealed_tables

    progress = progress or Logged()
    with _interrupts_of(interrupts) as signals:
        with record_phase(folder, Phase.STOP, progress) as notes:
            driver = driver_of(folder, scenario_of(folder))  # a plan that cannot be read keeps no cluster up

            async def stop_and_look() -> None:
                try:
                    await driver.stop()
                except ClusterError as error:
                    notes.residue.append(f"the cluster could not be stopped: {error}")
                notes.residue.extend(await driver.residue())

            signals.run(stop_and_look(), tolerated=ALL_SIGNALS)
        try:
            seal(folder)
        except OSError as error:  # without a seal nothing passes, but the result is saved
            progress.message(f"the evidence could not be sealed: {describe_error(error, folder.root)}")
        result = assemble(Run.load(folder))
        result.save(folder.verdict)  # before files that only speed up judging: there may be space for only one
        try:
            sealed_tables(folder)
        except OSError as error:
            progress.message(f"the evidence could not be typed: {describe_error(error, folder.root)}")
    _count(folder, progress)
    return result


def _count(folder: RunFolder, progress: Progress) -> None:
    """Count what a run tried and saw, once its result is saved: no verdict depends on it, and an error changes none."""
    from harness.analysis.coverage.count import DAMAGED, record

    try:
        record(folder)
    except (OSError, *DAMAGED) as error:
        progress.message(f"its coverage could not be counted: {describe_error(error, folder.root)}")


def judge(
    folder: RunFolder,
    *,
    progress: Progress | None = None,
    interrupts: Interrupts | None = None,
    background: Background | None = None,
    judging: Judging | None = None,
) -> RunResult:
    """Run the checks on the run folder, and save and return the result; works on any folder, years later.

    When many are judged, `judging` has the checks' answers about each.

    Raises:
        EvidenceError: another version of this program wrote the run.
    """
    logged = require_version(folder)
    progress = progress or Logged()
    with _interrupts_of(interrupts), _open(background) as thread, record_phase(folder, Phase.JUDGE, progress) as notes:
        run = Run.load(folder, logged)
        checked = thread.run(lambda: run_checks(run, progress, notes, thread.resources, judging))
    result = assemble(run, checked=checked)
    result.save(folder.verdict)
    if not folder.coverage.exists():  # a run of an earlier version
        _count(folder, progress)
    return result


def expectations(
    folder: RunFolder,
    *,
    progress: Progress | None = None,
    interrupts: Interrupts | None = None,
    background: Background | None = None,
) -> RunResult:
    """Run the suites on the facts that `judge` left, and save and return the result; without them nothing passes."""
    progress = progress or Logged()
    with (
        _interrupts_of(interrupts),
        _open(background) as thread,
        record_phase(folder, Phase.EXPECTATIONS, progress) as notes,
    ):
        run = Run.load(folder)
        suites = thread.run(lambda: run_suites(run, progress, notes))
    result = assemble(run, suites=suites)
    result.save(folder.verdict)
    return result


def report(folder: RunFolder, *, progress: Progress | None = None, alone: bool = False) -> Path:
    """Write the page, and save the result with its duration; returns the page's path.

    The page is self-contained if `alone`; else the library of its timeline lies beside the run's folder.
    """
    progress = progress or Logged()
    from harness.report.page import write

    try:
        with record_phase(folder, Phase.REPORT, progress):
            run = Run.load(folder)
            page = write(run, alone=alone)
    finally:
        give_back(folder)
    assemble(run).save(folder.verdict)
    return page


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a whole run."""

    folder: RunFolder
    result: RunResult
    errors: tuple[HarnessError, ...]
    """Errors of the harness or its environment, phase by phase; an interruption included."""

    @property
    def exit_code(self) -> ExitCode:
        """That of `verdict.json`."""
        return self.result.exit_code


def run(folder: RunFolder, *, owner_pid: int | None = None, progress: Progress | None = None) -> Outcome:
    """Carry out all phases; a second Ctrl-C stops everything at once and judges nothing.

    Raises:
        ClusterError: the run folder was moved or removed meanwhile.
    """
    errors: list[HarnessError] = []

    def attempt(phase: Callable[[], object]) -> bool:
        try:
            phase()
        except HarnessError as error:
            errors.append(error)
        except OSError as error:
            errors.append(ClusterError(describe_error(error, folder.root)))
        except KeyboardInterrupt:
            errors.append(Interrupted("interrupted between two phases"))
        else:
            return True
        return False

    with Interrupts() as interrupts:
        try:
            started = attempt(lambda: start(folder, owner_pid=owner_pid, progress=progress, interrupts=interrupts))
            if started:
                attempt(lambda: drive(folder, progress=progress, interrupts=interrupts))
                if interrupts.count <= 1:
                    attempt(lambda: collect(folder, progress=progress, interrupts=interrupts))
        finally:  # a bug in a phase leaves no cluster up either
            attempt(lambda: stop(folder, progress=progress, interrupts=interrupts))
        if started and interrupts.count <= 1:
            if interrupts.count:
                (progress or Logged()).message("the evidence so far is judged; interrupt again to skip that")
            before = len(errors)
            with Background() as thread:
                judged = attempt(lambda: judge(folder, progress=progress, interrupts=interrupts, background=thread))
                if judged:
                    attempt(lambda: expectations(folder, progress=progress, interrupts=interrupts, background=thread))
            if not any(isinstance(error, Interrupted) for error in errors[before:]):
                attempt(lambda: report(folder, progress=progress))
    if not folder.plan.exists() and errors:
        raise errors[0]  # the folder was moved or removed: the rest does not matter
    result = assemble(Run.load(folder))
    if result.exit_code is not ExitCode.ENVIRONMENT:  # errors that a phase could not log either
        unlogged = [str(error) for error in errors if isinstance(error, ClusterError)]
        more = [Remark(text=text, forbids_pass=True, environment=True) for text in unlogged]
        result = result.model_copy(update={"remarks": [*result.remarks, *more]})
    attempt(lambda: result.save(folder.verdict))
    return Outcome(folder=folder, result=result, errors=tuple(errors))


def driver_of(folder: RunFolder, scenario: Scenario) -> ClusterDriver:
    """Return the driver of a run, attached to whatever runs in its folder."""
    driver: ClusterDriver = registry.driver_class(scenario.driver)(folder.root, folder.run_id)
    return driver


def _interrupts_of(interrupts: Interrupts | None) -> AbstractContextManager[Interrupts]:
    """Return the signals as the whole run holds them, or hold them for one phase."""
    return Interrupts() if interrupts is None else nullcontext(interrupts)


def _open(background: Background | None) -> AbstractContextManager[Background]:
    """Return the thread that several phases share, or make one for one phase."""
    return Background() if background is None else nullcontext(background)
