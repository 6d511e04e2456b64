"""The nightly suite: its runs one after the other, those that proved nothing once more, and a summary of them all."""

import logging
from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, CronTriggerTimetable, Param, dag, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.tasks.request import Request
from chaos_airflow.tasks.run import RUN_NAME, run_phases

log = logging.getLogger(__name__)

AT_NIGHT = CronTriggerTimetable("0 2 * * *", timezone="UTC", run_immediately=timedelta(0))
"""Unpausing the DAG does not make up for last night."""
VERDICTS = Asset("kafka-chaos/nightly-verdicts")
SHORT = timedelta(minutes=5)
NAMED = {"map_index_template": f"{{{{ {RUN_NAME} }}}}"}


@dag(
    dag_id="chaos_nightly",
    dag_display_name="Chaos nightly",
    description="Carry out a suite, run by run, and summarize what held",
    schedule=AT_NIGHT,
    catchup=False,
    max_active_runs=1,
    tags=["chaos"],
    params={"suite": Param("nightly", type="string", description="A suite, or FILE:NAME for one of your own")},
    doc_md="""
### The nightly suite

The runs of a suite in `suites.yaml`, mapped over the task group of a run, one after the other: the pool `chaos` has one
slot, and `start` waits while the cluster of another run is alive.

A run that proved nothing is tried once more, with the same seed. A broken promise never is: it is red, with its report.
`summary` puts the verdicts of all runs together, in its log, in XCom, in a file beside the runs, and as the extra of an
event of the asset `kafka-chaos/nightly-verdicts`; then `verdict` fails if any run did not come to what was expected.
""",
)
def chaos_nightly() -> None:
    """Map the suite over the task group of a run, twice."""
    reports: list[Any] = []

    @task(execution_timeout=SHORT)
    def suite() -> list[Request]:
        from chaos_airflow.tasks.nightly import requests_of

        return requests_of(get_current_context()["params"]["suite"])

    @task_group(default_args=NAMED)
    def run(request: Request) -> None:
        """Carry out one run."""
        reports.append(run_phases(request))

    @task_group(default_args=NAMED)
    def again(request: Request) -> None:
        """Carry out once more what proved nothing."""
        reports.append(run_phases(request))

    @task(execution_timeout=SHORT, trigger_rule="all_done")
    def inconclusive(requests: list[Request]) -> list[Request]:
        from chaos_airflow.tasks.nightly import conclusions, inconclusive

        return inconclusive(requests, conclusions(get_current_context()["ti"], "run", requests))

    @task(execution_timeout=SHORT, outlets=[VERDICTS])
    def summary(requests: list[Request] | None, doubtful: list[Request] | None) -> dict[str, Any]:
        from chaos_airflow.tasks.nightly import conclusions, summary_of, table_lines, write_summary

        context = get_current_context()
        ti: Any = context["ti"]
        first, second = conclusions(ti, "run", requests or []), conclusions(ti, "again", doubtful or [])
        whole = summary_of(context["params"]["suite"], ti.run_id, requests or [], first, second)
        for line in table_lines(whole):
            log.info("%s", line)
        log.info("summary: %s", write_summary(whole, context["dag_run"].run_after))
        extra: dict[str, Any] = dict(whole)
        context["outlet_events"][VERDICTS].extra = extra
        return extra

    @task(execution_timeout=SHORT)
    def verdict(whole: dict[str, Any]) -> None:
        if whole["unexpected"] or not whole["entries"]:
            raise AirflowFailException(f"{whole['unexpected']} of {len(whole['entries'])} runs are not as expected")

    # The last two are teardowns of no setup, as `report` is: a DAG run that is marked by hand has its summary too. What
    # follows a task group does not wait for the teardowns in it unless it is told to.
    requests: Any = suite()
    doubtful: Any = inconclusive(requests)
    whole: Any = summary(requests, doubtful).as_teardown(on_failure_fail_dagrun=True)
    verdict(whole).as_teardown(on_failure_fail_dagrun=True)
    [run.expand(request=requests), reports[0]] >> doubtful
    [again.expand(request=doubtful), reports[1]] >> whole


nightly = chaos_nightly()

if __name__ == "__main__":
    nightly.test()
