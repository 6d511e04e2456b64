"""Addresses of the plugin's pages, and Airflow's: paths below `[api] base_url`, never with a host.

Paths work behind any proxy and under any name of the host, in the browser that already shows Airflow.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from chaos_airflow.runs import UNMAPPED, Origin

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

MOUNT = "/kafka-chaos"
PLACEHOLDER_BRACES = "{}"
"""Airflow fills placeholders in, so they must not be quoted."""


def airflow_root() -> str:
    """Return the path of Airflow's own pages, without a slash at its end; empty for the root of the host."""
    base_url: str = conf.get("api", "base_url", fallback="")
    return urlsplit(base_url).path.rstrip("/")


def pages_root() -> str:
    """Return the path that the plugin's pages are mounted at."""
    return airflow_root() + MOUNT


def list_page(**filters: str) -> str:
    """Return the address of the list of runs with these filters; empty ones are left out."""
    query = urlencode({name: value for name, value in filters.items() if value})
    return f"{pages_root()}/" + (f"?{query}" if query else "")


def trend_page() -> str:
    """Return the address of the page of all nights."""
    return f"{pages_root()}/trend"


def sweeps_page() -> str:
    """Return the address of the list of sweeps."""
    return f"{pages_root()}/sweeps"


def sweep_page(name: str) -> str:
    """Return the address of a sweep's page."""
    return f"{sweeps_page()}/{name}"


def schedule_page(name: str, seed: int) -> str:
    """Return the address of the page of one schedule of a sweep."""
    return f"{sweep_page(name)}/{seed}"


def run_page(name: str) -> str:
    """Return the address of a run's page; the run's files are below it."""
    return f"{pages_root()}/runs/{name}"


def runs_of(**ids: str | int) -> str:
    """Return the address of the runs of a DAG run, or of one of its task instances.

    Args:
        ids: `dag_id` and `run_id`, and for a task instance `task_id` and `map_index`.
    """
    return f"{pages_root()}/of?{urlencode(ids, safe=PLACEHOLDER_BRACES)}"


def task_instance(origin: Origin) -> str:
    """Return the address of the task instance that made a run, in Airflow's pages."""
    mapped = "" if origin.map_index == UNMAPPED else f"/mapped/{origin.map_index}"
    return f"{dag_run(origin)}/tasks/{quote(origin.task_id, safe='')}{mapped}"


def dag_run(origin: Origin) -> str:
    """Return the address of the DAG run that made a run, in Airflow's pages."""
    return f"{airflow_root()}/dags/{quote(origin.dag_id, safe='')}/runs/{quote(origin.run_id, safe='')}"


def load_of(origin: Origin) -> str:
    """Return the address, in Airflow's REST API, of the task instance that carries out load and faults of a run."""
    mapped = "" if origin.map_index == UNMAPPED else f"/{origin.map_index}"
    dag_id, run_id, task_id = (quote(text, safe="") for text in (origin.dag_id, origin.run_id, origin.load_task))
    return f"{airflow_root()}/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}{mapped}"


def compare_page(*runs: str) -> str:
    """Return the address of the page that shows these runs side by side; without runs that of no page."""
    return f"{pages_root()}/compare" + (f"?{urlencode([('run', run) for run in runs])}" if runs else "")


def external_views() -> list[dict[str, Any]]:
    """Return the entries for Airflow's navigation, for every DAG run and for every task instance."""
    icon = {"icon": f"{pages_root()}/static/icon.svg", "icon_dark_mode": f"{pages_root()}/static/icon-dark.svg"}
    ids = {"dag_id": "{DAG_ID}", "run_id": "{RUN_ID}"}
    return [
        {
            "name": "Chaos runs",
            "href": f"{pages_root()}/",
            "destination": "nav",
            "url_route": "chaos-runs",
            "nav_top_level": True,
            **icon,
        },
        {
            "name": "Chaos run",
            "href": runs_of(**ids),
            "destination": "dag_run",
            "url_route": "chaos-run",
            **icon,
        },
        {
            "name": "Chaos run",
            "href": runs_of(**ids, task_id="{TASK_ID}", map_index="{MAP_INDEX}"),
            "destination": "task_instance",
            "url_route": "chaos-task",
            **icon,
        },
    ]


class ChaosRunLink(BaseOperatorLink):
    """A button on a task of a run that leads to the run's page."""

    name = "Chaos run"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        """Return the address that leads to the run, whether or not its folder is there yet."""
        return runs_of(dag_id=ti_key.dag_id, run_id=ti_key.run_id, task_id=ti_key.task_id, map_index=ti_key.map_index)
