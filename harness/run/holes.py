"""What is missing from the evidence of a run, and what of it cannot be compared?"""

from collections.abc import Collection

from harness.run.early_metadata import begun_late
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, Quiescence, ends
from harness.store.seal import Hole, damage


def holes_in(folder: RunFolder, scenario: Scenario, plan: Plan, uncollected: Collection[str] = ()) -> list[Hole]:
    """Return what is missing from a run's evidence, and the damage that can be detected.

    Kinds in `uncollected` cannot be collected of the cluster.
    """
    missing = missing_evidence(folder, scenario, plan, uncollected) + under_load(folder) + begun_late(folder)
    known = {hole.place for hole in missing}
    return missing + [hole for hole in damage(folder) if hole.place not in known]


def missing_evidence(
    folder: RunFolder, scenario: Scenario, plan: Plan, uncollected: Collection[str] = ()
) -> list[Hole]:
    """Return the files that every run leaves and this one lacks."""
    expected = [("zookeeper", folder.zookeeper)]
    expected += [("state_changes", folder.state_change_log(number)) for number in scenario.cluster.broker_ids]
    expected += [("operations", folder.operations_of(client.process)) for client in plan.clients]
    expected += [("journal", folder.journal)] if plan.faults else []
    return [
        Hole(place=path.relative_to(folder.root).as_posix(), kind=kind, text="it is missing or empty")
        for kind, path in expected
        if kind not in uncollected
        if not path.is_file() or not path.stat().st_size
    ]


def under_load(folder: RunFolder) -> list[Hole]:
    """Return why evidence of several brokers cannot be compared: it was copied under load, or without a proof of rest.

    Earlier versions recorded no proof. They copied under load if the drive, which ends the load, was cut off.
    """
    phases = ends(folder)
    collected, driven = phases.get(Phase.COLLECT), phases.get(Phase.DRIVE)
    if collected is None:
        return []
    known = collected.quiescence or Quiescence()
    loaded, unsettled = known.loaded, known.unsettled
    if collected.quiescence is None and driven is not None and not driven.over:
        loaded = [f"nothing proves that the load had ended: {driven.error}"]
    elif collected.quiescence is None and collected.error:
        unsettled = [f"nothing proves that they had caught up: {collected.error}"]
    dumps = [Hole(place="replicas", kind="replicas", text=f"not comparable: {text}") for text in (*loaded, *unsettled)]
    logs = [Hole(place="brokers", kind="state_changes", text=f"copied at different times: {text}") for text in loaded]
    return dumps + logs
