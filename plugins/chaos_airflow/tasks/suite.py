"""Which runs are carried out one after the other, how did each end, and which of them not as expected?"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from chaos_airflow.settings import own_file, runs_folder
from chaos_airflow.tasks.request import RunRequest, load
from chaos_airflow.verdicts import PROBLEM_KEY, Problem
from harness.errors import EvidenceError
from harness.phases import new_seed
from harness.report.conclusion import Conclusion, SuiteEntry, concluded, expected
from harness.scenario.suite import load_suite
from harness.store.folder import RunFolder
from harness.verdict import BROKEN, HELD, INCONCLUSIVE

COLUMNS = ("scenario", "driver", "seed", "expect", "outcome", "fault", "system", "environment", "tries")

OTHER_THAN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
LONGEST_NAME = 64


class Summary(TypedDict):
    """How the runs of a suite ended; the extra of the asset event, and a file beside the run folders."""

    suite: str
    dag_run: str
    entries: list[SuiteEntry]
    unexpected: int
    """How many did not end as expected."""


def requests_of(suite: str) -> list[RunRequest]:
    """Return the runs of a suite with driver and seed decided, so that a second try is the same run.

    Raises:
        ScenarioError: there is no such suite, its file may not be run, or something in it is wrong.
    """
    if file := suite.rpartition(":")[0]:
        own_file(file)
    requests = [RunRequest(**run.model_dump()) for run in load_suite(suite).runs]  # type: ignore[typeddict-item]
    for request in requests:
        request["driver"] = load(request).driver
        request["seed"] = new_seed() if request["seed"] is None else request["seed"]
    return requests


def repetitions(request: RunRequest, times: int) -> list[RunRequest]:
    """Return a run so many times, each with the next seed; where bugs are planted, each has to find them.

    Raises:
        ScenarioError: it cannot be run like this.
    """
    scenario = load(request)
    first = request.get("seed")
    seed = new_seed() if first is None else first
    expect = expected(scenario.planted_bugs)
    return [{**request, "driver": scenario.driver, "seed": seed + number, "expect": expect} for number in range(times)]


def conclusions(ti: Any, group: str, requests: Sequence[RunRequest]) -> list[Conclusion]:
    """Return the conclusion of each run of a mapped task group by its folder, whether or not its tasks failed."""
    if not requests:
        return []
    indexes = range(len(requests))
    roots = ti.xcom_pull(task_ids=f"{group}.start", map_indexes=indexes)
    problems = ti.xcom_pull(task_ids=f"{group}.start", key=PROBLEM_KEY, map_indexes=indexes)
    return [_conclusion(*parts) for parts in zip(requests, roots, problems, strict=True)]


def _conclusion(request: RunRequest, root: str | None, problem: Problem | None) -> Conclusion:
    if root is not None:
        try:
            return concluded(RunFolder(Path(root)))
        except EvidenceError as error:
            problem = Problem(outcome=BROKEN, reason=str(error))
    problem = problem or Problem(outcome=BROKEN, reason="the task start did not finish")
    return Conclusion(
        run=root or "",
        scenario=request["scenario"],
        driver=request["driver"] or "",
        seed=request["seed"] or 0,
        outcome=problem["outcome"],
        fault="",
        system="",
        environment="",
        objectives="",
        reason=problem["reason"],
    )


def inconclusive(group: str, requests: Iterable[RunRequest], conclusions: Iterable[Conclusion]) -> list[RunRequest]:
    """Return the runs of a mapped task group that were inconclusive: they may be repeated, a violation never."""
    pairs = enumerate(zip(requests, conclusions, strict=True))
    return [
        {**request, "repeats": (f"{group}.start", index)}
        for index, (request, conclusion) in pairs
        if conclusion["outcome"] == INCONCLUSIVE
    ]


def summary_of(
    suite: str, dag_run: str, requests: Sequence[RunRequest], first: Sequence[Conclusion], second: Sequence[Conclusion]
) -> Summary:
    """Return the summary of a suite, by the last try of each run.

    Args:
        suite: Its name.
        dag_run: The run of the DAG that carried it out.
        requests: Its runs.
        first: The conclusion of each.
        second: Those of the inconclusive ones that were tried again, in the same order.
    """
    second_tries = iter(second)
    entries = []
    for request, conclusion in zip(requests, first, strict=True):
        second_try = next(second_tries, None) if conclusion["outcome"] == INCONCLUSIVE else None
        entries.append(
            SuiteEntry(**second_try or conclusion, expect=request.get("expect", HELD), tries=2 if second_try else 1)
        )
    unexpected = sum(entry["outcome"] != entry["expect"] for entry in entries)
    return Summary(suite=suite, dag_run=dag_run, entries=entries, unexpected=unexpected)


def write_summary(summary: Summary, instant: datetime) -> str:
    """Write the summary beside the run folders, and return its path."""
    folder = runs_folder()
    folder.mkdir(parents=True, exist_ok=True)
    name = OTHER_THAN_A_NAME.sub("-", summary["suite"].rpartition(":")[2])[:LONGEST_NAME]
    path = folder / f"{name}-{instant.astimezone(UTC):%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps(summary, indent=2) + "\n")
    return str(path)


def table_lines(summary: Summary) -> list[str]:
    """Return the summary as lines of a log."""
    rows: list[Sequence[object]] = [COLUMNS, *([entry[name] for name in COLUMNS] for entry in summary["entries"])]  # type: ignore[literal-required]
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    reasons = [
        f"{entry['scenario']} {entry['outcome']}: {entry['reason']}" for entry in summary["entries"] if entry["reason"]
    ]
    return [*lines, *reasons]
