"""What does one round of the reaper do as an Airflow task? The fate of each thing goes to the task's log.

A run on an existing cluster is closed with the credentials of the cluster's connection, as its own tasks have them.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.runs import publish
from chaos_airflow.settings import local_runs_folder
from chaos_airflow.tasks.connections import owned
from harness.errors import EvidenceError, ScenarioError
from harness.reaper.reap import reap
from harness.reaper.result import Fate, ItemKind
from harness.scenario.file import scenario_of
from harness.store.folder import RunFolder

log = logging.getLogger(__name__)

LEVELS = {Fate.KEPT: logging.INFO, Fate.FAILED: logging.ERROR}
"""Every other fate is a warning: what was removed or closed had been left by something that broke."""


def reap_runs() -> dict[str, int]:
    """Remove what dead runs of the configured folder left behind; return how many things had which fate.

    Raises:
        AirflowFailException: something could not be removed; the next round tries again.
    """
    runs = local_runs_folder()
    reaped = reap([runs], credentials=credentials)
    for remark in reaped.remarks:
        log.info("%s", remark)
    for item in reaped.items:
        log.log(LEVELS.get(item.fate, logging.WARNING), "%s", item)
        if item.kind is ItemKind.RUN and item.fate in (Fate.CLOSED, Fate.FAILED) and (runs / item.run).is_dir():
            publish(runs / item.run)
    failed = reaped.of(Fate.FAILED)
    if failed:
        raise AirflowFailException("; ".join(map(str, failed)))
    if not reaped.items:
        log.info("nothing is left of any run in %s", runs)
    return dict(Counter(str(item.fate) for item in reaped.items))


@contextmanager
def credentials(run: RunFolder) -> Iterator[None]:
    """Have the credentials of a run's existing cluster in the environment, and those of no other run."""
    before = dict(os.environ)
    try:
        try:
            owned(scenario_of(run))
        except (EvidenceError, OSError, ScenarioError) as error:
            log.info("%s: which cluster it disturbs is not known: %s", run.run_id, error)
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
