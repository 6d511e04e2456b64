"""Closes an abandoned run: its evidence is collected, everything is stopped, and a verdict is saved.

All by the functions of the phases, with entries in the phase log, so that the run folder is like any other.
"""

import asyncio

from harness import phases
from harness.errors import EvidenceError, HarnessError, Interrupted, PluginError, ScenarioError
from harness.experiment.collect import collect
from harness.judging.assessment import assemble
from harness.progress import Progress
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, ends, entries, record_phase
from harness.store.result import RunResult


def unreadable(run: RunFolder) -> str:
    """Return why a run's scenario, plan or driver cannot be loaded; empty when they can."""
    try:
        phases.driver_of(run, Run.load(run).scenario)
    except (EvidenceError, OSError, PluginError, ScenarioError) as error:
        return str(error)
    return ""


def collect_remains(run: RunFolder, reason: str, progress: Progress, *, again: bool = False) -> str:
    """Collect the evidence, unless it was collected or the run was judged; return the error, or an empty string.

    The remark that a reaper did it forbids a PASS, also when the run is judged again. `again`: collect once more.
    """
    done = {entry.phase for entry in entries(run) if entry.over}
    if Phase.JUDGE in done or (Phase.COLLECT in done and not again):
        return ""
    try:
        with record_phase(run, Phase.COLLECT, progress) as notes:
            notes.remark(f"{reason}; a reaper collected what was left of it", forbids_pass=True)
            recorded = Run.load(run)
            asyncio.run(collect(recorded, phases.driver_of(run, recorded.scenario), progress, notes))
    except Interrupted:
        raise
    except HarnessError as error:
        return f"its evidence could not be collected: {error}"
    return ""


def stop(run: RunFolder, progress: Progress) -> list[str]:
    """Stop everything of a run and save its verdict; return its residue, a sentence each."""
    try:
        phases.stop(run, progress=progress)
    except Interrupted:
        raise
    except HarnessError as error:
        assemble(Run.load(run)).save(run.verdict)
        return [str(error)]
    return ends(run)[Phase.STOP].residue


def record_residue(run: RunFolder, leftovers: list[str], progress: Progress) -> None:
    """Add to a stopped run's verdict what a reaper found later, removed or not."""
    before = ends(run).get(Phase.STOP)
    with record_phase(run, Phase.STOP, progress) as notes:
        notes.residue.extend(before.residue if before is not None else [])
        notes.residue.extend(f"{what} was left until `chaos reap` or the reaper's DAG removed it" for what in leftovers)
    assemble(Run.load(run)).save(run.verdict)


def refresh_verdict(run: RunFolder, *, dry_run: bool) -> bool:
    """Save the verdict of a run whose last phase was cut off; return whether the saved one was missing or different."""
    log = entries(run)
    if not log or (log[-1].over and run.verdict.exists()):
        return False
    result = assemble(Run.load(run))
    due = not run.verdict.exists() or RunResult.load(run.verdict) != result
    if due and not dry_run:
        result.save(run.verdict)
    return due
