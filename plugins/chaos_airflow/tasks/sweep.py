"""How does a task carry out a sweep? By `chaos simulate`, with what the form asks for."""

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.runs import Origin
from chaos_airflow.settings import local_runs_folder
from chaos_airflow.tasks.command import run_command
from chaos_airflow.tasks.form import in_range, request_of_form
from harness.errors import ScenarioError
from harness.sweep.summary import Summary
from harness.sweep.sweep import SUMMARY
from harness.verdict import ExitCode

log = logging.getLogger(__name__)

MOST = 100_000
"""Schedules."""
FOLDER = "sweeps"
INSTANT = "%Y%m%dT%H%M%S"
"""Name of a sweep's folder in it, by when its DAG run was due."""
ORIGIN = "origin.json"
"""Within that: which task makes it."""
SUMMARIES = f"*/{SUMMARY}"


def carry_out(params: Mapping[str, Any], instant: datetime, origin: Origin) -> dict[str, Any]:
    """Simulate and judge, and return the summary; what is found, and how to replay it, goes to the log.

    Raises:
        AirflowFailException: the form is wrong; a promise was broken, or nothing was proven; where bugs are planted,
            none was found.
    """
    out = local_runs_folder() / FOLDER / instant.strftime(INSTANT)
    out.mkdir(parents=True, exist_ok=True)
    (out / ORIGIN).write_text(origin.model_dump_json(), encoding="utf-8")
    earlier = set(out.glob(SUMMARIES))  # of this task, before it was cleared
    try:
        command = arguments(params, out)
    except ScenarioError as error:
        raise AirflowFailException(str(error)) from error
    code = run_command(partial(log.info, "%s"), *command)
    summaries = set(out.glob(SUMMARIES)) - earlier
    if not summaries:
        raise AirflowFailException(f"the sweep did not finish: exit code {code}")
    (path,) = summaries
    summary = Summary.model_validate_json(path.read_bytes())
    expected = ExitCode.VIOLATED if summary.planted_bugs else ExitCode.HELD
    if summary.exit_code is not expected:
        raise AirflowFailException(
            f"{summary.held} held, {summary.violated} violated, {summary.inconclusive} inconclusive; "
            f"expected was {expected.name.lower()}; the histories are in {path.parent}"
        )
    return summary.model_dump(mode="json")


def arguments(params: Mapping[str, Any], out: Path) -> list[str]:
    """Return the command line that a filled-in form stands for.

    Raises:
        ScenarioError: a field is filled in that belongs to a fault which is not chosen, or a number is out of range.
    """
    form = dict(params)
    schedules, shrink = in_range("schedules", form.pop("schedules"), 1, MOST), form.pop("shrink")
    request = request_of_form(form)
    seed = request.get("seed")
    return [
        "harness",
        "simulate",
        f"--out={out}",
        f"--schedules={schedules}",
        *([] if seed is None else [f"--seed={seed}"]),
        *chain.from_iterable(("--planted-bug", bug) for bug in request["planted_bugs"]),
        *chain.from_iterable(("--set", text) for text in request["set"]),
        *(["--shrink"] if shrink else []),
        "--",
        request["scenario"],
    ]
