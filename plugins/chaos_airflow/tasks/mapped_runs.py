"""Which tasks carry out several runs, one after the other, inconclusive ones once more, and sum them up?"""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from chaos_airflow.tasks.request import RunRequest
from chaos_airflow.tasks.run import RUN_NAME, run_phases

log = logging.getLogger(__name__)

SHORT = timedelta(minutes=5)
VERDICTS = Asset("kafka-chaos/nightly-verdicts")
"""Its events say how each run of a night ended."""
NO_SUITE = "no run was carried out: the log of suite says why"
NAMED = {"map_index_template": f"{{{{ {RUN_NAME} }}}}"}

Params = Mapping[str, Any]


def several_runs(
    requests_of: Callable[[Params], list[RunRequest]], title_of: Callable[[Params], str], verdicts: Asset | None = None
) -> None:
    """Map the runs over the task group of a run, twice, in the current DAG.

    Args:
        requests_of: Makes the runs of the parameters of the DAG run, within the first task.
        title_of: What they are called together.
        verdicts: Gets an event with the summary.
    """
    leaves: list[tuple[Any, Any]] = []
    outlets = [] if verdicts is None else [verdicts]

    @task(execution_timeout=SHORT)
    def suite() -> list[RunRequest]:
        from harness.errors import ScenarioError

        try:
            return requests_of(get_current_context()["params"])
        except ScenarioError as error:
            raise AirflowFailException(str(error)) from error

    @task_group(default_args=NAMED)
    def run(request: RunRequest) -> None:
        """Carry out one run."""
        leaves.append(run_phases(request))

    @task_group(default_args=NAMED)
    def again(request: RunRequest) -> None:
        """Repeat the runs that were inconclusive."""
        leaves.append(run_phases(request))

    @task(execution_timeout=SHORT, trigger_rule="all_done")
    def inconclusive(requests: list[RunRequest] | None) -> list[RunRequest]:
        from chaos_airflow.tasks.suite import conclusions, inconclusive

        if requests is None:
            raise AirflowSkipException(NO_SUITE)
        return inconclusive("run", requests, conclusions(get_current_context()["ti"], "run", requests))

    @task(execution_timeout=SHORT, outlets=outlets)
    def summary(requests: list[RunRequest] | None, doubtful: list[RunRequest] | None) -> dict[str, Any]:
        from chaos_airflow.tasks.suite import conclusions, summary_of, table_lines, write_summary

        if requests is None:  # and no event
            raise AirflowSkipException(NO_SUITE)
        context = get_current_context()
        ti: Any = context["ti"]
        first, second = conclusions(ti, "run", requests), conclusions(ti, "again", doubtful or [])
        whole = summary_of(title_of(context["params"]), ti.run_id, requests, first, second)
        for line in table_lines(whole):
            log.info("%s", line)
        log.info("summary: %s", write_summary(whole, context["dag_run"].run_after))
        extra: dict[str, Any] = dict(whole)
        for asset in outlets:
            context["outlet_events"][asset].extra = extra
        return extra

    @task(execution_timeout=SHORT)
    def verdict(whole: dict[str, Any] | None) -> None:
        if whole is None:
            raise AirflowFailException(NO_SUITE)
        if whole["unexpected"] or not whole["entries"]:
            raise AirflowFailException(f"{whole['unexpected']} of {len(whole['entries'])} runs are not as expected")

    # The last two are teardowns of no setup, as `report` is: a DAG run that is marked by hand has its summary too. What
    # follows a task group does not wait for the teardowns in it by default.
    requests: Any = suite()
    doubtful: Any = inconclusive(requests)
    whole: Any = summary(requests, doubtful).as_teardown(on_failure_fail_dagrun=True)
    verdict(whole).as_teardown(on_failure_fail_dagrun=True)
    [run.expand(request=requests), *leaves[0]] >> doubtful
    [again.expand(request=doubtful), *leaves[1]] >> whole
