"""The nightly suite: its runs one after the other, inconclusive ones once more, and a summary of them all."""

from collections.abc import Mapping
from datetime import timedelta
from operator import itemgetter
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag

from chaos_airflow.tasks.mapped_runs import VERDICTS, several_runs
from chaos_airflow.tasks.request import RunRequest

AT_NIGHT = CronTriggerTimetable("0 2 * * *", timezone="UTC", run_immediately=timedelta(0))
"""Unpausing the DAG does not make up for last night."""


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

An inconclusive run is repeated once with the same seed. A broken promise never is: it is red, with its report.
`summary` puts the verdicts of all runs together, in its log, in XCom, in a file beside the runs, and as the extra of an
event of the asset `kafka-chaos/nightly-verdicts`; then `verdict` fails if any run did not come to what was expected.
""",
)
def chaos_nightly() -> None:
    """Carry out the suite."""
    several_runs(requests_of_suite, title_of=itemgetter("suite"), verdicts=VERDICTS)


def requests_of_suite(params: Mapping[str, Any]) -> list[RunRequest]:
    """Return the runs of the suite that is asked for."""
    from chaos_airflow.tasks.suite import requests_of

    return requests_of(params["suite"])


nightly = chaos_nightly()

if __name__ == "__main__":
    nightly.test()
