"""Carry out a scenario, and judge a history, as `chaos run` and `chaos judge` do; importing this starts no engine."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harness import phases
from harness.contracts import registry
from harness.errors import ScenarioError
from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.scenario.source import set_option
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from harness.ingest.answer import HistoryResult

EVIDENCE = ("operations", "zookeeper", "state_changes", "replicas", "journal", "liveness")


def run(
    scenario: str, *, seed: int | None = None, settings: Mapping[str, object] | None = None, runs: Path = Path("runs")
) -> phases.Outcome:
    """Carry out a scenario in all its phases; return its folder, its verdicts and what broke.

    Args:
        scenario: A built-in scenario, or the path of a YAML file.
        seed: Decides all that is drawn; by default a new one.
        settings: Values to override, as `{"driver": "simulated", "duration_s": 10}`.
        runs: Where the run's own folder is made.

    Raises:
        ScenarioError: the scenario is wrong, or cannot be carried out on this machine; nothing was started.
        ClusterError: no run folder can be made.
    """
    overrides = [set_option(f"{key}={value}") for key, value in (settings or {}).items()]
    folder = phases.create_from(load_scenario(scenario, overrides), seed, runs)
    return phases.run(folder, progress=Silent())


async def run_async(
    scenario: str, *, seed: int | None = None, settings: Mapping[str, object] | None = None, runs: Path = Path("runs")
) -> phases.Outcome:
    """Do the same in a thread, without blocking the loop."""
    return await asyncio.to_thread(run, scenario, seed=seed, settings=settings, runs=runs)


def judge(
    operations: Path | str | Sequence[Path | str] = (),
    *,
    checks: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    into: Path | None = None,
    **evidence: Path | str | Sequence[Path | str],
) -> "HistoryResult":
    """Return which promises a recorded history shows to be kept or broken, and which it cannot show.

    Args:
        operations: The folder of a recorder, or files of operations.
        checks: Names of checks; by default all.
        settings: What the cluster was allowed to do, as `{"min_insync_replicas": 2}`.
        into: Where facts, findings and a report are written; by default nowhere.
        **evidence: More of it by kind: `zookeeper`, `state_changes`, `replicas`, `journal`, `liveness`.

    Raises:
        ScenarioError: there is nothing to judge, no such check, no such setting, or `into` is the folder of a run.
        EvidenceError: the evidence cannot be read.
    """
    from harness.analysis.engine.session import spark_session
    from harness.ingest.judging import judge_history, report
    from harness.ingest.local_files import local_bytes
    from harness.ingest.result_folder import result_folder
    from harness.ingest.settings import load_settings

    if unknown := sorted(evidence.keys() - set(EVIDENCE)):
        raise ScenarioError(registry.unknown_message("kind of evidence", unknown[0], list(EVIDENCE)))
    paths = {kind: _texts(places) for kind, places in {"operations": operations, **evidence}.items()}
    if not any(paths.values()):
        raise ScenarioError("nothing to judge: give operations or other evidence")
    keys = registry.check_keys(checks)
    allowed = load_settings(None, [f"{key}={_yaml(value)}" for key, value in (settings or {}).items()])
    every = [place for places in paths.values() for place in places]
    with TemporaryDirectory() as scratch:
        folder = result_folder(into, every) if into else RunFolder(Path(scratch))
        with spark_session(size_bytes=local_bytes(every), anywhere=True) as spark:
            result = judge_history(spark, paths, allowed, folder, checks=keys, progress=Silent())
            if into:
                report(folder, result, ["chaos", "judge", *paths["operations"]])
    return result


async def judge_async(
    operations: Path | str | Sequence[Path | str] = (),
    *,
    checks: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    into: Path | None = None,
    **evidence: Path | str | Sequence[Path | str],
) -> "HistoryResult":
    """Do the same in a thread, without blocking the loop."""
    return await asyncio.to_thread(judge, operations, checks=checks, settings=settings, into=into, **evidence)


def _texts(places: Path | str | Sequence[Path | str]) -> list[str]:
    return [str(places)] if isinstance(places, Path | str) else [str(place) for place in places]


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
