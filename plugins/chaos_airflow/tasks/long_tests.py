"""How does Airflow carry out `make nightly`? Each step is a process of `python -m tools.nightly`, in one folder.

A step that is ended leaves no result; the page then says that it was not run.
"""

import logging
from collections.abc import Callable
from datetime import UTC
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.tasks.command import ROOT, run_command

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

NEEDED = ("tools/nightly", "tests/mutation")
FOLDERS = Path("artifacts", "long-tests")


def step_names(context: "Context") -> list[str]:
    """Return the steps of a night.

    Raises:
        AirflowFailException: they cannot be carried out here.
    """
    missing = [f"{ROOT / place} is missing" for place in NEEDED if not (ROOT / place).is_dir()]
    if find_spec("pytest") is None:
        missing.append("pytest is not installed (requirements-dev.txt)")
    if missing:
        raise AirflowFailException(f"the long tests need a checkout with its tests: {'; '.join(missing)}")
    names: list[str] = []
    run_night(context, names.append, "--list")
    return names


def carry_out(context: "Context", *what: str) -> None:
    """Run one step, or write the page; what it says goes to the task's log.

    Raises:
        AirflowFailException: the step failed, or the page says that one did or was not run.
    """
    run_night(context, partial(log.info, "%s"), *what)


def run_night(context: "Context", listener: Callable[[str], None], *what: str) -> None:
    """Run the command of a night, and pass its output on line by line; it is ended when the listener raises."""
    params: Any = context["params"]
    began = context["dag_run"].run_after.astimezone(UTC)
    seed = f"{began:%Y%m%d}" if params["seed"] is None else str(params["seed"])
    folder = ROOT / FOLDERS / f"{began:%Y%m%dT%H%M%S}"
    options = ("--scale", str(params["scale"]), "--seed", seed, "--out", str(folder))
    environment = {"CHAOS_DAY": f"{began:%Y-%m-%d}"}
    code = run_command(listener, "tools.nightly", *options, *what, environment=environment, checkout=ROOT)
    if code:
        raise AirflowFailException(f"{what[-1].removeprefix('--')}: exit code {code}, see {folder}")
