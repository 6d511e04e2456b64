"""How are all checks run by few jobs, so that one that breaks, or a run that breaks it, costs no other its answer?"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.check_helpers.excuses import within_power_losses
from harness.analysis.check_helpers.findings import phrase
from harness.analysis.check_helpers.settings import settings_at_once
from harness.analysis.engine.bisection import bisect_rows
from harness.analysis.engine.compat import is_local, to_write
from harness.analysis.engine.hadoop import Folder
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.facts.build import Facts
from harness.analysis.frames import union, union_of
from harness.contracts.checks import Assumption, Check, Settings, Subject, handed_to

logger = logging.getLogger(__name__)

Part = TypeVar("Part", Check, Assumption, Subject)

MESSAGE_LIMIT = 300
"""Characters of an error's first line."""
CHECKS_A_JOB = 8
"""Checks of one job on a cluster, where frames are not stored: one plan of 87 checks does not fit into 1 GB."""

Unknown = dict[tuple[str, str], str]
"""Why a run could not be judged, by run id and check."""


def run_checks(
    spark: SparkSession,
    plugins: Sequence[Check],
    facts: Facts,
    slices: Facts,
    settings: Mapping[str, Settings],
    counts: Mapping[str, Mapping[str, int]],
    folder: Folder,
) -> Unknown:
    """Add the findings of all checks to `folder`; return which runs could not be judged by which check.

    One job does that, on a cluster a few jobs. Where one breaks, its checks are asked one by one, and one that breaks
    about fewer and fewer runs, so that neither a bad check nor a bad run costs the answers of others. Checks that may
    be prefiltered read the `slices`.
    """
    unknown = unknown_runs(plugins, facts, counts)

    def write(checks: Sequence[Check], run_ids: Sequence[str] | None = None) -> None:
        of_runs, prefiltered_facts = (part if run_ids is None else only(part, run_ids) for part in (facts, slices))
        allowed = {run_id: settings[run_id] for run_id in run_ids or settings}
        at_once = settings_at_once(allowed)
        handed = [handed_to(check, prefiltered_facts if check.prefiltered else of_runs) for check in checks]
        made = [partial(check.findings, some, at_once) for check, some in zip(checks, handed, strict=True)]
        rows = union_of(spark, made)
        if any_power_loss(allowed):
            rows = within_power_losses(rows, of_runs, checks)
        if unknown:
            rows = rows.join(_pairs(spark, unknown), on=["run_id", "check"], how="left_anti")
        rows.write.mode("append").partitionBy("check").parquet(to_write(spark, folder))
        if isinstance(folder, Path):
            folder.mkdir(exist_ok=True)  # Sail makes none for no rows, but that nothing was found is evidence

    able = [check for check in plugins if any((run_id, check.name) not in unknown for run_id in counts)]
    size = max(len(able), 1) if is_local(spark) else CHECKS_A_JOB
    jobs = [able[first : first + size] for first in range(0, len(able), size)]
    for check, _ in [each for job in jobs for each in broken_parts(job, write)]:
        of_check = {run_id: settings[run_id] for run_id in counts if (run_id, check.name) not in unknown}
        # a check that decides by a value in Python breaks for columns alone
        for run_ids in _of_same_settings(of_check):
            for part, error in bisect_rows(run_ids, partial(_about, write, check), (Exception,)):
                if isinstance(error, Exception):
                    unknown |= {(run_id, check.name): why_broken(error) for run_id in part}
                    logger.warning("check.failed check=%s runs=%d error=%s", check.name, len(part), _first_line(error))
    return unknown


def _of_same_settings(settings: Mapping[str, Settings]) -> list[list[str]]:
    run_ids: dict[Settings, list[str]] = {}
    for run_id, each in settings.items():
        run_ids.setdefault(each, []).append(run_id)
    return list(run_ids.values())


def _about(write: Callable[[Sequence[Check], Sequence[str]], None], check: Check, run_ids: Sequence[str]) -> None:
    write([check], run_ids)


def any_power_loss(settings: Mapping[str, Settings]) -> bool:
    """Return whether power was cut off in a run."""
    return any(each.power_loss for each in settings.values())


def only(facts: Facts, run_ids: Iterable[str]) -> Facts:
    """Return the facts of some runs."""
    return {name: frame.where(F.col("run_id").isin(list(run_ids))) for name, frame in facts.items()}


def _pairs(spark: SparkSession, unknown: Unknown) -> DataFrame:
    """One row a run and check; from Arrow, because from Python objects Spark would start Python workers."""
    run_ids, checks = zip(*unknown, strict=True)
    return spark.createDataFrame(pa.table({"run_id": list(run_ids), "check": list(checks)}))


def broken_parts(parts: Sequence[Part], job: Callable[[Sequence[Part]], None]) -> list[tuple[Part, Exception]]:
    """Do a job for all parts of plugins at once, or else for each alone; return those for which it cannot be done."""
    if not parts:
        return []
    try:
        job(parts)
    except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises must not stop the others
        raise_if_engine_lost(error)
        if len(parts) == 1:
            return [(parts[0], error)]
        return [each for part in parts for each in broken_parts([part], job)]
    return []


def why_broken(error: Exception) -> str:
    """Return what is answered where a part of a check cannot be run."""
    return f"the check broke: {type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:MESSAGE_LIMIT]


def unknown_runs(checks: Sequence[Check], facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> Unknown:
    """Return why runs cannot be judged by a check: a fact without rows, or an assumption that fails.

    Args:
        checks: The checks; what they assume is tested by one job, once for all that do.
        facts: All facts of all runs.
        counts: Rows a fact, by run id.
    """
    unknown: Unknown = {}
    assuming: dict[Assumption, list[str]] = {}
    for check in checks:
        for each in check.assumes:
            assuming.setdefault(each, []).append(check.name)

    def test(some: Sequence[Assumption]) -> None:
        reasons = [
            each.broken(*(facts[name] for name in each.facts)).select(
                "run_id", F.lit(number).alias("number"), phrase(each.reason).alias("reason")
            )
            for number, each in enumerate(some)
        ]
        rows = union(reasons, apart=False).groupBy("run_id", "number").agg(F.min("reason").alias("reason"))
        for run_id, number, reason in rows.collect():
            for name in assuming[some[number]]:
                unknown[(run_id, name)] = min(reason, unknown.get((run_id, name), reason))

    for assumption, error in broken_parts(list(assuming), test):
        unknown.update({(run_id, name): why_broken(error) for run_id in counts for name in assuming[assumption]})
    for run_id, rows in counts.items():
        for check in checks:
            empty = [name for name in check.needs if not rows[name]]
            if empty:
                unknown[(run_id, check.name)] = f"nothing to judge: no rows in {', '.join(empty)}"
    return unknown
