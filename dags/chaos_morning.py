"""The morning after a night: what was not as expected, and the page of all nights."""

import logging
from typing import Any

from airflow.sdk import dag, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from chaos_airflow.tasks.mapped_runs import SHORT, VERDICTS

log = logging.getLogger(__name__)


@dag(
    dag_id="chaos_morning",
    dag_display_name="Chaos morning",
    description="After each night: what was not as expected, and the page of all nights",
    schedule=VERDICTS,
    catchup=False,
    max_active_runs=1,
    tags=["chaos"],
    doc_md="""
### The morning after a night

An example of a DAG that Airflow starts for an event of the asset `kafka-chaos/nightly-verdicts`, whose extra is the
summary of the night: copy it, and do with the verdicts what your team needs. `unexpected` puts each run that ended
otherwise than expected into its log; `trend` writes `trend.html` of all nights into the runs folder.
""",
)
def chaos_morning() -> None:
    """Look at the night's events."""

    @task(execution_timeout=SHORT, retries=0)
    def unexpected() -> list[dict[str, Any]]:
        events = get_current_context()["triggering_asset_events"][VERDICTS]
        entries = [entry for event in events for entry in event.extra.get("entries", ())]
        if events and not entries:
            raise AirflowFailException("the event has no outcome of any run")
        differing = [entry for entry in entries if entry["outcome"] != entry["expect"]]
        for entry in differing:
            log.warning("%(run)s is %(outcome)s, expected was %(expect)s: %(reason)s", entry)
        log.info("%d of %d runs are as expected", len(entries) - len(differing), len(entries))
        return differing

    @task(execution_timeout=SHORT, retries=0)
    def trend() -> str:
        from chaos_airflow.settings import local_runs_folder
        from chaos_airflow.tasks.command import run_command

        page = local_runs_folder() / "trend.html"
        if code := run_command(log.info, "harness", "trend", str(local_runs_folder()), f"--out={page}"):
            raise AirflowFailException(f"the page of all nights was not written: exit code {code}")
        return str(page)

    unexpected()
    trend()


morning = chaos_morning()

if __name__ == "__main__":
    morning.test()
